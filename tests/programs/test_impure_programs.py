"""Programs that write between reads: every pass, and every way to run them, gives what the interpreter gives.

A write between two evaluations of equal ops makes them different, and what is read after a write is what was written.
"""

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings

from tests.support.impure import (
    COMMON,
    IN_MEMORY,
    PIPELINES,
    PROGRAMS,
    arguments,
    check_pipelines,
    impure_bodies,
    text,
)
from tests.support.programs import Tolerance, run_everywhere
from tests.support.sweeps import examples

NEAR = Tolerance(1e-4, 1e-5)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
def test_common_passes(body: str):
    check_pipelines(body, COMMON, NEAR)


@pytest.mark.parametrize(
    "body",
    [pytest.param(body, marks=pytest.mark.slow if place else ()) for place, body in enumerate(PROGRAMS.values())],
    ids=PROGRAMS,
)
def test_all_passes(body: str):
    check_pipelines(body, PIPELINES, NEAR)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
def test_modes(body: str):
    run_everywhere(text(body), "main", arguments(), NEAR)


@given(impure_bodies())
@examples(6)
def test_random_programs(body: str):
    check_pipelines(body, COMMON, NEAR)


@pytest.mark.slow
@given(impure_bodies())
@examples(100)
def test_many_random_programs(body: str):
    check_pipelines(body, PIPELINES, NEAR)


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
            check_pipelines(body, (IN_MEMORY,), NEAR)
        except AssertionError:
            return True
        return False

    options = settings(
        phases=[Phase.generate], max_examples=100, database=None, deadline=None, suppress_health_check=[*HealthCheck]
    )
    assert find(impure_bodies(), is_wrong, settings=options, random=Random(0))
