"""Random programs that write between reads: no pass changes what they give, and all modes give the same."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.fuzz.drawing import check_one
from tests.support.impure import PIPELINES, arguments, check_pipelines, impure_bodies, text
from tests.support.programs import Tolerance, run_everywhere

NAME = "effects"

NEAR = Tolerance(1e-4, 1e-5)

MOST_PIPELINES = 12
"""Of the about hundred there are, for each program: many programs find more than many passes of one."""

CASES = st.tuples(
    impure_bodies(statements=14), st.lists(st.sampled_from(PIPELINES), max_size=MOST_PIPELINES, unique=True)
)


def check(case: tuple[str, list[str]]) -> None:
    """Interprets a program before and after each of the pipelines, and runs it in all modes."""
    body, pipelines = case
    check_pipelines(body, pipelines, NEAR)
    run_everywhere(text(body), "main", arguments(), NEAR)


def run(number: int) -> None:
    """The program of a seed."""
    check_one(number, CASES, check)
