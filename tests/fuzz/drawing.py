"""One random example of a strategy of Hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

Value = TypeVar("Value")


def check_one(number: int, strategy: st.SearchStrategy[Value], check: Callable[[Value], None]) -> None:
    """Calls `check` with the example of the seed `number`.

    The first example of Hypothesis is always the simplest one of all, so that the second is taken. The integer beside
    the strategy has it go on to a second one though the check has drawn nothing from the first.
    """
    count = 0

    @seed(number)
    @settings(
        max_examples=2,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**32), strategy)
    def each(_: int, value: Value) -> None:
        nonlocal count
        count += 1
        if count > 1:  # not only the second: what fails runs again
            check(value)

    each()
