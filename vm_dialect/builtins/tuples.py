"""Builtins on tuples."""

from __future__ import annotations

from typing import Any

import tvm_ffi

from vm_dialect import messages
from vm_dialect.builtins.checks import check_tuple_kind
from vm_dialect.builtins.table import builtin
from vm_dialect.messages import render


@builtin("make_tuple", 0, None)
def make_tuple(*fields: Any) -> Any:
    """A tuple of values."""
    return tvm_ffi.Array(fields)


@builtin("tuple_get", 2)
def tuple_get(value: Any, index: int) -> Any:
    """A field of a tuple; `TypeError` if it is no tuple, `ValueError` if it has no such field."""
    check_tuple_kind(value, "tuple_get")
    if not 0 <= index < len(value):
        raise ValueError(render(messages.no_such_field(index), len(value)))
    return value[index]
