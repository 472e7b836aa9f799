from dataclasses import fields, replace
from typing import Any

import llvmlite.binding as binding
import pytest

from tir_dialect.target import NAMED_TARGETS, PROCESSORS, ScheduleOptions, Target, _host


def test_host_is_usable():
    host = Target.host()
    assert host is Target.host()
    assert host.cores >= 1
    assert host.lanes(32) * 32 == host.vector_bits
    assert min(host.l1_bytes, host.l2_bytes, host.l3_bytes) > 0


def test_the_host_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch):
    host, named = Target.host(), "x86-64-v2" if Target.host().arch == "x86_64" else "neoverse-n1"
    other = "neoverse-n1" if named == "x86-64-v2" else "x86-64-v2"
    _host.cache_clear()
    try:
        monkeypatch.setenv("RELAX_TARGET", named)
        found = Target.host()
        assert found.code_key() == replace(Target.parse(named), triple=host.triple).code_key()
        assert (found.cores, found.l2_bytes) == (host.cores, host.l2_bytes)
        _host.cache_clear()
        monkeypatch.setenv("RELAX_TARGET", other)
        with pytest.raises(ValueError, match=f"RELAX_TARGET expected a processor of {host.arch}, got {other}"):
            Target.host()
    finally:
        _host.cache_clear()


@pytest.mark.parametrize("name", NAMED_TARGETS)
def test_named_targets(name: str):
    target = Target.parse(name)
    assert target.cpu == PROCESSORS.get(name, name)
    assert target.arch in ("x86_64", "aarch64")


def test_texts_of_tvm_are_read():
    assert Target.parse("llvm -mcpu=znver3 cores=2") == Target.parse("znver3 cores=2")
    assert Target.parse("llvm") == Target.host()


def test_settings_override_fields():
    target = Target.parse("x86-64-v3 cores=8 l2-bytes=1048576 vector_bits=128 features=+fma,-sgx")
    assert (target.cores, target.l2_bytes, target.vector_bits, target.features) == (8, 1048576, 128, "+fma,-sgx")
    assert target.lanes(64) == 2
    assert target.lanes(256) == 1


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("x86-64-v2", False),
        ("x86-64-v3", True),
        ("znver4", True),
        ("aarch64", True),
        ("x86-64-v3 features=-fma", False),
    ],
)
def test_fused_multiply_add_comes_with_avx2_and_neon(text: str, has: bool):
    assert ("fma" in Target.parse(text).extensions) == has


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'unknown target ""'),
        ("pentium", 'unknown target "pentium"'),
        ("x86-64 speed=9", 'unknown target setting "speed=9"'),
        ("x86-64 cores", 'unknown target setting "cores"'),
        ("x86-64 cores=many", 'target setting "cores" expects an integer, got "many"'),
        ("x86-64 cores=0", "expects an integer of at least 1, got 0"),
        ("x86-64 features=+avx,avx2", '"features" expects \\+ or - before a feature, got "avx2"'),
        ("x86-64-v3 tile-rows=40", "for 16 vector registers, got 40 rows of 2 sums and one of 2 factors, which is 82"),
        (
            "x86-64-v4 tile-vectors=3",
            "for 32 vector registers, got 14 rows of 3 sums and one of 3 factors",
        ),
        ("aarch64 tile-rows=10", '"tile_rows" expects a tile for 30 vector registers, got 10 rows of 3 sums'),
        ("x86-64 cores=-1", '"cores" expects an integer of at least 1, got -1'),
        ("x86-64 map-vectors=17", '"map_vectors" expects at most 16, got 17'),
        ("x86-64 tile-steps=65", '"tile_steps" expects an integer of at most 64, got 65'),
        ("x86-64 vector-bits=100", '"vector_bits" expects a power of two of at least 64, got 100'),
    ],
)
def test_bad_target_text(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        Target.parse(text)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"tile_rows": 40}, "for 16 vector registers, got 40 rows of 2 sums"),
        ({"vector_bits": 100}, "power of two of at least 64, got 100"),
        ({"cores": 0}, '"cores" expects an integer of at least 1, got 0'),
        ({"l1_bytes": 1.5}, '"l1_bytes" expects an integer of at least 1, got 1.5'),
        ({"cpu": None}, '"cpu" expects a text, got None'),
    ],
)
def test_targets_of_python_are_checked(numbers: Any, message: str):
    with pytest.raises(ValueError, match=message):
        Target.parse("x86-64-v3").with_settings(numbers)


def test_settings_name_every_field():
    target = Target.parse("x86-64-v3 tile-rows=4")
    settings = " ".join(f"{name}={value}" for name, value in target.settings().items())
    assert Target.parse(f"host {settings}") == target
    assert target.settings().keys() == {field.name for field in (*fields(Target), *fields(ScheduleOptions))} - {
        "schedule"
    }


def test_code_key_ignores_what_code_does_not_depend_on():
    assert Target.parse("x86-64-v3").code_key() == Target.parse("x86-64-v3 cores=64 l1-bytes=1").code_key()
    assert Target.parse("x86-64-v3").code_key() != Target.parse("x86-64-v3 vector-bits=128").code_key()


def test_tile_registers_that_the_system_refuses_are_no_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RELAX_TARGET", raising=False)
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: {"avx2": True, "amx-tile": True, "amx-int8": True})
    try:
        for permitted in (True, False):
            _host.cache_clear()
            monkeypatch.setattr("tir_dialect.target._permits_tile_registers", lambda given=permitted: given)
            assert ("+amx-int8" in _host().features) is permitted
            assert ("amx-int8" in _host().extensions) is permitted
    finally:
        _host.cache_clear()


def test_what_is_seen_of_a_target_in_python():
    target = Target.parse("znver3 cores=8")
    assert repr(target) == "<Target znver3: 16 registers of 256 bits, 8 cores, x86_64-unknown-linux-gnu>"
    assert str(target) != str(target.with_settings({"l1_bytes": 1024}))
