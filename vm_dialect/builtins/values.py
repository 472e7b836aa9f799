"""Builtins on values: `int_add`, `int_eq`, ..., tuples, shapes and dimensions, and those whose results have shapes that
depend on data.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
import tvm_ffi

from vm_dialect import messages
from vm_dialect.builtins.checks import check_tuple_kind
from vm_dialect.builtins.table import builtin
from vm_dialect.dtypes import element_type
from vm_dialect.integers import COMPARISONS, INT_FUNCTIONS, LOGICAL
from vm_dialect.messages import render
from vm_dialect.tensors import Array, from_numpy, new_tensor, to_numpy

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


@builtin("tensor_dim", 2)
def tensor_dim(tensor: tvm_ffi.Tensor, axis: int) -> int:
    """Extent of an axis of a tensor; `ValueError` if there is no such axis."""
    return shape_dim(tensor.shape, axis)


@builtin("shape_dim", 2)
def shape_dim(shape: Sequence[int], axis: int) -> int:
    """A dimension of a shape; `ValueError` if there is no such axis."""
    if not 0 <= axis < len(shape):
        raise ValueError(render(messages.no_such_axis(axis), len(shape)))
    return shape[axis]


@builtin("read_int", 2)
def read_int(tensor: tvm_ffi.Tensor, index: int) -> int:
    """An element of a vector of `int64`; `ValueError` if there is none of this index."""
    array = to_numpy(tensor)
    if array.ndim != 1 or array.dtype != "int64":
        raise TypeError(f"read_int: expected a vector of int64, got {tensor.dtype}{list(tensor.shape)}")
    if not 0 <= index < array.size:
        raise ValueError(render(messages.no_such_element(index), array.size))
    return int(array[index])


@builtin("shape_of", 1)
def shape_of(tensor: tvm_ffi.Tensor) -> tvm_ffi.Shape:
    """The shape of a tensor."""
    return tvm_ffi.Shape(tensor.shape)


@builtin("make_shape", 0, None)
def make_shape(*dims: int) -> tvm_ffi.Shape:
    """A shape from integers."""
    return tvm_ffi.Shape(dims)


@builtin("shape_from_tensor", 1)
def shape_from_tensor(tensor: tvm_ffi.Tensor) -> tvm_ffi.Shape:
    """The shape whose dimensions are the elements of a tensor of rank 1; TVM's `tensor_to_shape`."""
    array = to_numpy(tensor)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TypeError(f"shape_from_tensor: expected a vector of integers, got {tensor.dtype}{list(tensor.shape)}")
    return tvm_ffi.Shape(tuple(int(dim) for dim in array))


@builtin("shape_to_tensor", 1)
def shape_to_tensor(shape: Sequence[int]) -> tvm_ffi.Tensor:
    """The dimensions of a shape as a tensor of `int64`."""
    tensor = new_tensor((len(shape),), element_type("i64"))
    to_numpy(tensor)[...] = shape
    return tensor


@builtin("unique", 2, 5)
def unique(
    tensor: tvm_ffi.Tensor, axis: int | None, index: bool = False, inverse: bool = False, counts: bool = False
) -> Any:
    """The sorted distinct elements or slices; with flags, a tuple of what NumPy's `unique` gives for them."""
    found: Any = np.unique(to_numpy(tensor), bool(index), bool(inverse), bool(counts), axis=axis)
    if not isinstance(found, tuple):
        return from_numpy(np.ascontiguousarray(found))
    values, *extra = cast("tuple[Array, ...]", found)
    parts = [values, *(part.astype(np.int64).reshape(-1) for part in extra)]
    return tvm_ffi.convert([from_numpy(np.ascontiguousarray(part)) for part in parts])


@builtin("nonzero", 1)
def nonzero(tensor: tvm_ffi.Tensor) -> tvm_ffi.Tensor:
    """The indices of the elements that are not zero: one row for each dimension, one column for each position."""
    array = to_numpy(tensor)
    positions = np.array(np.nonzero(np.atleast_1d(array)), np.int64)
    return from_numpy(np.ascontiguousarray(positions[: array.ndim]))
