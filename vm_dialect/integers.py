"""Integer functions of the virtual machine: the meaning of `vm.int`, on Python integers. No IR."""

from __future__ import annotations

import operator
from collections.abc import Callable

LOGICAL = frozenset(("and", "or"))
"""Kinds from booleans to a boolean."""

COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
"""Kinds from integers to a boolean."""


def wrap_int64(value: int) -> int:
    """`value` modulo 2^64, as a signed number of 64 bits."""
    if -(1 << 63) <= value < (1 << 63):
        return value
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def _add(a: int, b: int) -> int:
    return wrap_int64(a + b)


def _sub(a: int, b: int) -> int:
    return wrap_int64(a - b)


def _mul(a: int, b: int) -> int:
    return wrap_int64(a * b)


def _floordiv(a: int, b: int) -> int:
    if b == 0:
        raise ValueError("division by zero")
    return wrap_int64(a // b)


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
"""What each kind of `vm.int` computes. `ValueError` on division by zero."""
