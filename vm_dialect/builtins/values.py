"""Builtins on values: `int_add`, `int_eq`, ..., and tuples."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import tvm_ffi

from vm_dialect import messages
from vm_dialect.builtins.checks import check_tuple_kind
from vm_dialect.builtins.table import builtin
from vm_dialect.integers import COMPARISONS, INT_FUNCTIONS, LOGICAL
from vm_dialect.messages import render

for _kind, _function in INT_FUNCTIONS.items():
    _result = "bool" if _kind in LOGICAL | COMPARISONS else "int"
    builtin(f"int_{_kind}", 2, kinds=f"int int -> {_result}")(_function)


MOST_NESTED = 1000
"""Tuples inside each other: releasing a tuple takes stack for each of them."""


@builtin("make_tuple", 0, None)
def make_tuple(*fields: Any) -> Any:
    """A tuple of values; `ValueError` if too many are inside each other."""
    inner = _tuples_in(fields)
    for _ in range(MOST_NESTED):
        if not inner:
            return tvm_ffi.Array(fields)
        # One that is in several positions is looked at once.
        inner = list({each.__chandle__(): each for each in _tuples_in(itertools.chain(*inner))}.values())
    raise ValueError(f"make_tuple: more than {MOST_NESTED} tuples inside each other")


def _tuples_in(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, tvm_ffi.Array)]


@builtin("tuple_get", 2)
def tuple_get(value: Any, index: int) -> Any:
    """A field of a tuple; `TypeError` if it is no tuple, `ValueError` if it has no such field."""
    check_tuple_kind(value, "tuple_get")
    if not 0 <= index < len(value):
        raise ValueError(render(messages.no_such_field(index), len(value)))
    return value[index]
