"""Targets find a fault that is planted: one of the kind that their inputs are for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz.isolation import outcome
from tests.fuzz.registry import fuzzers


def _never(*_: object, **__: object) -> bool:
    return False


def _nothing(*_: object, **__: object) -> None:
    return None


def _no_python(text: str) -> Any:
    raise KeyError(text)


def _like(hint: str) -> str:
    """Letters, as Python's `str` has them, are not those of its names."""
    return "".join(letter if letter.isalnum() else "_" for letter in hint) or "v"


PLANTED = {
    "effects": ("lowering.relax.redundant_ops.may_be_written", _never),
    "schedules": ("tir_dialect.schedule.primitives.annotating.check_parallel", _nothing),
    "scripts": ("relax_dialect.frontend.tvmscript.source._statements", _no_python),
    "executables": ("vm_dialect.executable.contents._verify_operand", _nothing),
    "names": ("tir_dialect.tvmscript.text.python_name", _like),
}
"""By target: what is replaced, and by what."""

QUICK = ("scripts", "executables")
"""Targets that find it in a second or two."""

SEEDS = range(40)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in PLANTED]
)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch):
    (fuzzer,) = [each for each in fuzzers() if each.name == name]
    monkeypatch.setattr(*PLANTED[name])
    assert any(outcome(lambda seed=seed: fuzzer.run(seed), 60) is not None for seed in SEEDS)
