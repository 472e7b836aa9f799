"""A rule that is required of many subjects fails for those that break it, and names them."""

import pytest

from tests.support.rules import each


@each([2, 3, 4, 5], lambda number: f"number {number}")
def _is_even(number: int):
    """No odd numbers."""
    assert number % 2 == 0, "odd"


@each([("a", 1), ("b", 2)])
def _is_first(letter: str, number: int):
    if number != 1:
        pytest.fail(f"{letter} is not the first")


def test_all_that_break_a_rule_are_named():
    with pytest.raises(pytest.fail.Exception) as failure:
        _is_even()
    assert [line.partition(":")[0] for line in str(failure.value).splitlines() if "odd" in line] == [
        "number 3",
        "number 5",
    ]
    with pytest.raises(pytest.fail.Exception, match=r"\('b', 2\): b is not the first"):
        _is_first()


def test_the_test_of_a_rule_says_what_the_rule_says():
    assert (_is_even.__name__, _is_even.__doc__) == ("_is_even", "No odd numbers.")
    each([1], str)(lambda number: None)()
