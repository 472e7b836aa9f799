"""Programs and schedules of them as TVMScript, read back: they compute the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sweeps import examples
from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule import support
from tests.tir_dialect.schedule.random_programs import RandomProgram
from tests.tir_dialect.schedule.random_schedules import PROGRAMS, SIZES
from tests.tir_dialect.schedule.random_steps import step
from tests.tir_dialect.tvmscript.test_operators import again
from tir_dialect.schedule import Schedule


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    func = PROGRAMS[name]()
    support.check_same(func, again(func), SIZES)


@examples(20)
@given(st.integers(0, 1 << 30), st.integers(0, 4), st.data())
def test_random_programs_and_schedules(seed, steps, data):
    before = parse_prim_func(RandomProgram(seed).text())
    sch = Schedule(before.clone())
    for _ in range(steps):
        step(data.draw, sch)
    support.check_same(before, again(sch.func), SIZES)
