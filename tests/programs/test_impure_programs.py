"""Programs that write between reads: every pass, and every way to run them, gives what the interpreter gives.

A write between two evaluations of equal ops makes them different, and what is read after a write is what was written.
"""

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings

from lowering.parsing import parse_module
from tests.support.impure import COMMON, IN_MEMORY, PIPELINES, PROGRAMS, arguments, impure_bodies, text
from tests.support.programs import Tolerance, assert_same, run_everywhere, run_pipeline, run_with_copies, runner
from tests.support.sweeps import examples

NEAR = Tolerance(1e-4, 1e-5)


def check(body: str, pipelines: tuple[str, ...]) -> None:
    """Interprets a program before and after each of some lists of passes."""
    module = parse_module(text(body))
    expected = run_with_copies(runner(module, "main", "interpret"), arguments())
    for pipeline in pipelines:
        made = module.clone()
        run_pipeline(made, pipeline)
        assert_same(run_with_copies(runner(made, "main", "interpret"), arguments()), expected, NEAR, pipeline)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
def test_common_passes(body: str):
    check(body, COMMON)


@pytest.mark.parametrize(
    "body",
    [pytest.param(body, marks=pytest.mark.slow if place else ()) for place, body in enumerate(PROGRAMS.values())],
    ids=PROGRAMS,
)
def test_all_passes(body: str):
    check(body, PIPELINES)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
def test_modes(body: str):
    run_everywhere(text(body), "main", arguments(), NEAR)


@given(impure_bodies())
@examples(6)
def test_random_programs(body: str):
    check(body, COMMON)


@pytest.mark.slow
@given(impure_bodies())
@examples(100)
def test_many_random_programs(body: str):
    check(body, PIPELINES)


@given(impure_bodies())
@examples(3)
def test_modes_of_random_programs(body: str):
    run_everywhere(text(body), "main", arguments(), NEAR)


def _comes_first(*_: object) -> bool:
    """As if no store before a copy touched the slice that it writes."""
    return True


def _all_before(_: object, ops: Iterable[object]) -> Iterable[object]:
    """As if all loads of a block came before its store."""
    return ops


PLANTED = {
    "a slice is written before what fills the whole": ("write_parts_in_place._may_come_first", _comes_first),
    "a result is where an operand is that another result needs": ("use_inplace_calls.takewhile", _all_before),
}
"""Faults that the memory passes had."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "fault"), PLANTED.values(), ids=PLANTED)
def test_random_programs_find_faults(name: str, fault: object, monkeypatch: pytest.MonkeyPatch):
    """A fault that is planted shows in one of some random programs."""
    monkeypatch.setattr(f"lowering.relax.memory.{name}", fault)

    def is_wrong(body: str) -> bool:
        try:
            check(body, (IN_MEMORY,))
        except AssertionError:
            return True
        return False

    options = settings(
        phases=[Phase.generate], max_examples=100, database=None, deadline=None, suppress_health_check=[*HealthCheck]
    )
    assert find(impure_bodies(), is_wrong, settings=options, random=Random(0))
