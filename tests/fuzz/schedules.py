"""Random primitives on random kernels: the values stay, in the interpreter and as native code, also in a replay."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.fuzz.drawing import check_one
from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.random_programs import RandomProgram
from tests.tir_dialect.schedule.random_schedules import PROGRAMS, check_code, check_random_schedule
from tir_dialect.ops.function import PrimFuncOp

NAME = "schedules"

MOST_STEPS = 10


def _function(data: st.DataObject) -> PrimFuncOp:
    """One of random stages, or of those that models have."""
    if data.draw(st.booleans()):
        return PROGRAMS[data.draw(st.sampled_from(sorted(PROGRAMS)))]()
    return parse_prim_func(RandomProgram(data.draw(st.integers(0, 2**32 - 1))).text())


def check(data: st.DataObject) -> None:
    """A function and its schedule."""
    function = _function(data)
    check_code(check_random_schedule(function, data.draw(st.integers(1, MOST_STEPS)), data.draw).func)


def run(number: int) -> None:
    """The schedule of a seed."""
    check_one(number, st.data(), check)
