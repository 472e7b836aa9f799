"""Libraries on a processor without the instructions that their code may use: an error names them, in any process."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi

from lowering import build
from lowering.llvm.binding import enable_inline_assembler
from lowering.llvm.compiler import CompileOptions, compile_object
from lowering.llvm.features import FEATURES, code_features
from lowering.runtime.loading import object_symbols, renamed
from lowering.vm_to_llvm.library import CHECKED, check_text, library_code
from relax_dialect.builder import BlockBuilder
from tir_dialect.target import NAMED_TARGETS, Target
from vm_dialect import Executable

HOST = Target.host()
NOWHERE = {"x86_64": "x86-64-v3 features=+xop,+amx-fp16", "aarch64": "neoverse-n2 features=+mops,+cssc"}[HOST.arch]
"""No processor has both; of ARM's few."""

USER = """
import sys
import numpy as np
import tvm_ffi

library = tvm_ffi.load_module(sys.argv[1])
for name in ("main", "other"):
    for _ in range(2):
        try:
            print(np.from_dlpack(library[name](np.ones(3, "f4"))).tolist())
        except RuntimeError as error:
            print(error)
assert "lowering" not in sys.modules and "llvmlite" not in sys.modules and "vm_dialect" not in sys.modules
"""

needs_linker = pytest.mark.skipif(shutil.which("cc") is None, reason="no linker")


def executable(target: Target) -> Executable:
    bb = BlockBuilder()
    for name in ("main", "other"):
        with bb.function(name, {"x": ("n",)}) as (x,):
            bb.emit_func_output(x + x)
    return build(bb.get(), target=target)


def run(library: Path) -> list[str]:
    command = [sys.executable, "-c", USER, str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def features(target: Target) -> frozenset[str]:
    found = code_features(target)
    assert found is not None
    return found


@needs_linker
def test_a_library_for_another_processor_refuses(tmp_path: Path):
    target = Target.parse(NOWHERE)
    executable(target).export_library(tmp_path / "m.so")
    missing = [name for name in FEATURES[HOST.arch] if name in features(target) - features(HOST)]
    assert missing
    begin = f"the library is compiled for the processor {target.cpu}, and this one lacks {', '.join(missing)}: build it"
    lines = run(tmp_path / "m.so")
    assert len(lines) == 4
    assert all(line.startswith(begin) for line in lines)


@pytest.mark.sampled(2)
@needs_linker
@pytest.mark.parametrize("target", ["host", "x86-64" if HOST.arch == "x86_64" else "aarch64"])
def test_a_library_for_this_processor_runs(target: str, tmp_path: Path):
    made = executable(Target.parse(target))
    made.export_library(tmp_path / "m.so")
    assert run(tmp_path / "m.so") == ["[2.0, 2.0, 2.0]"] * 4
    symbols = {name for code in library_code(made).objects for name in object_symbols(code).defined}
    assert (f"{CHECKED}__tvm_ffi_main" in symbols) == (target == "host")


@needs_linker
def test_the_check_reads_what_llvm_reads(tmp_path: Path):
    """Each extension that LLVM knows of, asked for by a library."""
    real = "define i32 @real(ptr %self, ptr %args, i32 %count, ptr %ret) {\n  ret i32 0\n}"
    baseline = Target.parse("x86-64" if HOST.arch == "x86_64" else "aarch64")
    enable_inline_assembler()
    check = check_text(HOST.arch, [("any", FEATURES[HOST.arch])], {"__tvm_ffi_f": ["real"]})
    objects = [compile_object(text, baseline, CompileOptions(as_written=True)) for text in (check, real)]
    for index, data in enumerate(objects):
        (tmp_path / f"{index}.o").write_bytes(data)
    subprocess.run(["cc", "-shared", "-o", "f.so", "0.o", "1.o"], cwd=tmp_path, check=True)
    load: Any = getattr(tvm_ffi, "load_module")  # noqa: B009
    with pytest.raises(RuntimeError) as caught:
        load(str(tmp_path / "f.so")).f()
    match = re.search(r"this one lacks (.*): build", str(caught.value))
    assert match is not None
    assert match[1].split(", ") == [name for name in FEATURES[HOST.arch] if name not in features(HOST)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMED_TARGETS)
def test_features_of_named_processors(name: str):
    target = Target.parse(name)
    found = features(target)
    assert bool(found) == (name not in ("x86-64", "aarch64", "cortex-a53", "cortex-a72"))
    assert target.extensions & FEATURES[target.arch].keys() <= found
    assert ("avx512f" in found) == (target.vector_bits == 512)


def test_features_are_what_the_processor_has_and_the_settings_change():
    assert features(Target.parse("x86-64-v3 features=-fma")) == features(Target.parse("x86-64-v3")) - {"fma"}
    assert features(Target.parse("x86-64 features=+avx2")) >= {"avx2", "avx", "sse4.2"}
    assert features(Target.parse("x86-64-v3 features=-sse4.1")).isdisjoint({"avx", "avx2", "fma", "sse4.1"})
    assert code_features(Target.parse("x86-64-v2"), {"sse3", "ssse3", "avx2"}) == {"sse4.1", "sse4.2", "popcnt"}
    assert code_features(replace(HOST, triple="riscv64-unknown-linux-gnu")) is None


def test_the_check_of_each_architecture_is_code_of_its_baseline():
    for arch, baseline in (("x86_64", "x86-64"), ("aarch64", "aarch64")):
        if arch != HOST.arch and arch == "x86_64":
            continue  # inline assembler is that of this machine
        enable_inline_assembler()
        text = check_text(arch, [("any", FEATURES[arch]), ("other", ())], {"__tvm_ffi_é\n": ["real", "other"]})
        assert "__tvm_ffi_é\n" in object_symbols(compile_object(text, Target.parse(baseline))).defined


def test_symbols_get_other_names():
    text = """
    define i32 @b() {
      %r = call i32 @a_b()
      ret i32 %r
    }
    declare i32 @a_b()
    define i32 @other() {
      ret i32 0
    }"""
    data = compile_object(text, HOST)
    made = renamed(data, {"b": "a much longer name", "a_b": "x"})
    assert object_symbols(made).defined == ("a much longer name", "other")
    assert object_symbols(made).undefined == ("x",)
    assert object_symbols(renamed(made, {"x": "b"})).undefined == ("b",)
    assert renamed(data, {"unknown": "c"}) == data


@pytest.mark.slow
@needs_linker
def test_the_name_of_the_real_entry_is_nobody_elses(tmp_path: Path):
    bb = BlockBuilder()
    for name in ("main", "other", "a__tvm_ffi_main", "checked.__tvm_ffi_main", 'a"b\n'):
        with bb.function(name, {"x": ("n",)}) as (x,):
            bb.emit_func_output(x + x)
    build(bb.get()).export_library(tmp_path / "m.so")
    assert run(tmp_path / "m.so") == ["[2.0, 2.0, 2.0]"] * 4
