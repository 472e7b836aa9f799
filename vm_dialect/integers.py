"""Integer functions of the virtual machine: the meaning of `vm.int`, on Python integers. No IR."""

from __future__ import annotations

import operator
from collections.abc import Callable

from vm_dialect.messages import overflow

LOGICAL = frozenset(("and", "or"))
"""Kinds from booleans to a boolean."""

COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
"""Kinds from integers to a boolean."""

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
"""Of the numbers that a register holds."""


def fits_int64(value: int) -> bool:
    """Whether a signed number of 64 bits can hold `value`."""
    return LEAST <= value <= GREATEST


def exact(value: int) -> int:
    """`value`; `ValueError` if 64 bits do not hold it: a size that wraps is a wrong one, and its memory too small."""
    if not fits_int64(value):
        raise ValueError(overflow())
    return value


def saturated(value: int) -> int:
    """The nearest number that 64 bits hold."""
    return min(max(value, LEAST), GREATEST)


def _add(a: int, b: int) -> int:
    return exact(a + b)


def _sub(a: int, b: int) -> int:
    return exact(a - b)


def _mul(a: int, b: int) -> int:
    return exact(a * b)


def _add_sat(a: int, b: int) -> int:
    return saturated(a + b)


def _mul_sat(a: int, b: int) -> int:
    return saturated(a * b)


def _floordiv(a: int, b: int) -> int:
    if b == 0:
        raise ValueError("division by zero")
    return exact(a // b)


def _mod(a: int, b: int) -> int:
    if b == 0:
        raise ValueError("division by zero")
    return a % b


def broadcast(a: int, b: int) -> int:
    """The extent of an axis after broadcasting extents `a` and `b`."""
    return b if a == 1 else a


def _and(a: int, b: int) -> bool:
    return bool(a and b)


def _or(a: int, b: int) -> bool:
    return bool(a or b)


INT_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "add_sat": _add_sat,
    "mul_sat": _mul_sat,
    "floordiv": _floordiv,
    "mod": _mod,
    "min": min,
    "max": max,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "and": _and,
    "or": _or,
    "broadcast": broadcast,
}
"""What each kind of `vm.int` computes. `ValueError` on division by zero, and for results beyond 64 bits."""
