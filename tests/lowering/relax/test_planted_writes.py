"""Passes on the programs of their own tests with a write between two ops: they compute what was computed before.

A quick run plants one write in each of some functions; `slow` ones plant all, and two of each form.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from zlib import crc32

import pytest
from xdsl.ir import BlockArgument, SSAValue

from relax_dialect.analysis.effects import is_never_written
from tests.support.planted_writes import PlantedWrite, Subject, Sweep, function_of, subjects, visible_writes
from tests.support.write_forms import FORMS

FOLDERS = (
    "lowering/relax/rewrites/",
    "lowering/relax/layout/",
    "lowering/relax/f",
    "lowering/relax/",
    "relax_dialect/",
)
"""Beginnings of the paths of tests."""

EVERY = 4
"""A quick run has one in so many functions."""


@cache
def _of(folder: str) -> tuple[Subject, ...]:
    return tuple(subjects(folder, [each for each in FOLDERS if each.startswith(folder) and each != folder]))


def _number(subject: Subject) -> int:
    return crc32(f"{subject.name} {subject.function}".encode())


def _some(subject: Subject, count: int) -> Sequence[PlantedWrite]:
    """Some of the writes that may be seen in a function, others for each."""
    found = list(visible_writes(function_of(subject.module, subject.function)))
    return (
        [found[(_number(subject) + each * len(found) // count) % len(found)] for each in range(count)] if found else ()
    )


@pytest.mark.parametrize("folder", FOLDERS)
def test_some_writes(folder: str):
    sweep = Sweep()
    for subject in _of(folder):
        if _number(subject) % EVERY == 0:
            sweep.add(subject, _some(subject, 1), [list(FORMS)[_number(subject) // EVERY % len(FORMS)]])
    assert not sweep.faults, "\n".join(sweep.faults)
    assert sweep.compared


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_all_forms(folder: str):
    sweep = Sweep()
    for subject in _of(folder):
        sweep.add(subject, _some(subject, 2), FORMS)
    assert not sweep.faults, "\n".join(sweep.faults)


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_all_writes(folder: str):
    sweep = Sweep()
    for subject in _of(folder):
        sweep.add(subject)
    assert not sweep.faults, "\n".join(sweep.faults)


@pytest.mark.parametrize("folder", FOLDERS)
def test_results_have_their_own_memory(folder: str):
    """A value that is returned too is not made the memory of an argument or of another result."""
    sweep = Sweep()
    for subject in _of(folder):
        ops = len(list(function_of(subject.module, subject.function).body.walk()))
        if _number(subject) % EVERY == 1:
            sweep.add_returned(subject, _number(subject) // EVERY % ops)
    assert not sweep.faults, "\n".join(sweep.faults)
    assert sweep.compared


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_all_results_have_their_own_memory(folder: str):
    sweep = Sweep()
    for subject in _of(folder):
        for number, _ in enumerate(function_of(subject.module, subject.function).body.walk()):
            sweep.add_returned(subject, number)
    assert not sweep.faults, "\n".join(sweep.faults)


# Faults that are planted: the analysis is not asked


def _of_file(name: str) -> Iterator[Subject]:
    yield from subjects(f"lowering/relax/{name}.mlir")


def _unless_parameter(value: SSAValue) -> bool:
    """As if nobody wrote into parameters: chains of operators have asked of what they compute, but not of the first."""
    return isinstance(value, BlockArgument) or is_never_written(value)


PARAMETERS = {
    "use-byte-tables": ("rewrites.simplify_quantization", "rewrites/use_byte_tables"),
    "fold-requantization": ("rewrites.fold_requantization", "rewrites/fold_requantization"),
    "propagate-quantization": ("rewrites.simplify_quantization", "rewrites/propagate_quantization"),
}
"""Passes that did not ask of the first operand."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("module", "file"), PARAMETERS.values(), ids=PARAMETERS)
def test_what_was_not_asked_is_found(module: str, file: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(import_module(f"lowering.relax.{module}"), "is_never_written", _unless_parameter)
    assert _finds_one(file)


NEVER = {
    "layout.channels_last": "layout/channels_last",
    "layout.convert_layout": "layout/convert_layout",
    "rewrites.fold_batch_norm": "rewrites/fold_batch_norm",
    "rewrites.fold_requantization": "rewrites/fold_requantization",
    "rewrites.rewrite_layers": "rewrites/rewrite_attention",
    "rewrites.rewrite_matmul": "rewrites/adjust_matmul_order",
    "rewrites.simplify_shape_ops": "rewrites/simplify_permute_dims",
    "rewrites.simplify_quantization": "rewrites/propagate_quantization",
    "rewrites.to_mixed_precision": "rewrites/to_mixed_precision",
}
"""Modules that ask whether a value is written, and the tests of a pass of theirs."""


def _always(_: SSAValue) -> bool:
    return True


@pytest.mark.slow
@pytest.mark.parametrize(("module", "file"), NEVER.items(), ids=NEVER)
def test_every_pass_asks(module: str, file: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(import_module(f"lowering.relax.{module}"), "is_never_written", _always)
    assert _finds_one(file)


def _finds_one(file: str) -> bool:
    sweep = Sweep()
    for subject in _of_file(file):
        sweep.add(subject)
        if sweep.faults:
            return True
    return False
