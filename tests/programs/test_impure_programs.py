"""Programs that write between reads: every pass, and every way to run them, gives what the interpreter gives.

A write between two evaluations of equal ops makes them different, and what is read after a write is what was written.
"""

import pytest
from hypothesis import given, settings

from lowering.parsing import parse_module
from tests.support.impure import COMMON, PIPELINES, PROGRAMS, arguments, impure_bodies, text
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


@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
def test_common_passes(body: str):
    check(body, COMMON)


@pytest.mark.slow
@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
def test_all_passes(body: str):
    check(body, PIPELINES)


@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
def test_modes(body: str):
    run_everywhere(text(body), "main", arguments(), NEAR)


@given(impure_bodies())
@examples(10)
def test_random_programs(body: str):
    check(body, COMMON)


@pytest.mark.slow
@given(impure_bodies())
@settings(max_examples=200)
def test_many_random_programs(body: str):
    check(body, PIPELINES)


@given(impure_bodies())
@examples(3)
def test_modes_of_random_programs(body: str):
    run_everywhere(text(body), "main", arguments(), NEAR)
