"""Random sequences of primitives: whatever is accepted keeps the values, whatever is refused changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.sweeps import examples
from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.random_programs import RandomProgram
from tests.tir_dialect.schedule.random_schedules import PROGRAMS, check_code, check_random_schedule


@settings(max_examples=60)
@given(st.sampled_from(sorted(PROGRAMS)), st.integers(1, 7), st.data())
def test_random_schedules(program, steps, data):
    check_random_schedule(PROGRAMS[program](), steps, data.draw)


@pytest.mark.slow
@examples(9)
@given(st.integers(0, 2**32 - 1), st.integers(2, 10), st.data())
def test_random_schedules_of_random_programs(seed, steps, data):
    check_random_schedule(parse_prim_func(RandomProgram(seed).text()), steps, data.draw)


@examples(3)
@given(st.integers(0, 2**32 - 1), st.integers(0, 8), st.data())
def test_code_of_random_schedules(seed, steps, data):
    check_code(check_random_schedule(parse_prim_func(RandomProgram(seed).text()), steps, data.draw).func)
