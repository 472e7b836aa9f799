"""Builtins on values: `int_add`, `int_eq`, ..., tuples, shapes and dimensions, those whose results have shapes that
depend on data, and those of the check ops. Tensors are checked for kind, rank, dtype, device, size, contiguity, then
alignment.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, cast

import numpy as np
import tvm_ffi

from vm_dialect import messages
from vm_dialect.builtins.table import builtin
from vm_dialect.dtypes import BY_FFI_NAME, element_type
from vm_dialect.integers import COMPARISONS, INT_FUNCTIONS, LOGICAL
from vm_dialect.messages import render
from vm_dialect.tensors import Array, from_numpy, kind_of, new_tensor, to_numpy

_CPU = 1


def _expect(value: object, kind: str, subject: str) -> None:
    got = kind_of(value)
    if got != kind:
        raise TypeError(render(messages.wrong_kind(subject, kind), name=got))


@builtin("check_tensor", 4)
def check_tensor(value: Any, rank: int, dtype: str | None, subject: str) -> tvm_ffi.Tensor:
    """The value, if it is a contiguous, aligned CPU tensor of this rank (-1: any) and dtype (null: any)."""
    _expect(value, "tensor", subject)
    tensor: tvm_ffi.Tensor = value
    if rank not in (-1, tensor.ndim):
        raise TypeError(render(messages.wrong_rank(subject, rank), tensor.ndim))
    if dtype is not None and tensor.dtype != dtype:
        raise TypeError(render(messages.wrong_dtype(subject, dtype), name=tensor.dtype))
    device = tensor.__dlpack_device__()[0]
    if device != _CPU:
        raise ValueError(render(messages.wrong_device(subject), device))
    if prod(max(size, 1) for size in tensor.shape) * ((tensor.dtype.bits + 7) // 8) > messages.MOST_BYTES:
        raise ValueError(messages.too_large_argument(subject))
    # Contiguity, then alignment to the element size; a tensor without elements has neither.
    if tensor.numel() != 0:
        check_contiguous(tensor, subject)
        element = BY_FFI_NAME.get(tensor.dtype)
        remainder = 0 if element is None else tensor.data_ptr() % element.itemsize
        if element is not None and remainder:
            raise ValueError(render(messages.not_aligned(subject, element.itemsize), remainder))
    return tensor


def check_contiguous(tensor: tvm_ffi.Tensor, subject: str) -> None:
    """`ValueError` if the elements of a tensor are not one after the other."""
    if tensor.numel() != 0 and not tensor.is_contiguous():
        raise ValueError(render(messages.not_contiguous(subject), first_gap(tensor.shape, tensor.strides)))


def first_gap(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """The last axis, counted from 0, along which elements are not where compact memory has them; -1 if none."""
    expected = 1
    for axis in range(len(shape) - 1, -1, -1):
        if shape[axis] != 1 and strides[axis] != expected:
            return axis
        expected *= shape[axis]
    return -1


@builtin("check_shape", 3)
def check_shape(value: Any, rank: int, subject: str) -> tvm_ffi.Shape:
    """The value, if it is a shape of this rank (-1: any)."""
    _expect(value, "shape", subject)
    if rank not in (-1, len(value)):
        raise TypeError(render(messages.wrong_rank(subject, rank), len(value)))
    return value


@builtin("check_int", 2)
def check_int(value: Any, subject: str) -> int:
    """The value, if it is an integer."""
    _expect(value, "int", subject)
    return value


@builtin("check_float", 2)
def check_float(value: Any, subject: str) -> float:
    """The value as a float, if it is a float or an integer."""
    if kind_of(value) != "int":
        _expect(value, "float", subject)
    return float(value)


@builtin("check_bool", 2)
def check_bool(value: Any, subject: str) -> bool:
    """The value, if it is a boolean."""
    _expect(value, "bool", subject)
    return value


def check_tuple_kind(value: Any, subject: str) -> None:
    """`TypeError` if the value is not a tuple."""
    _expect(value, "tuple", subject)


@builtin("check_tuple", 3)
def check_tuple(value: Any, size: int, subject: str) -> Any:
    """The value, if it is a tuple of `size` fields."""
    check_tuple_kind(value, subject)
    if len(value) != size:
        raise TypeError(render(messages.wrong_size(subject, size), len(value)))
    return value


@builtin("check_func", 2)
def check_func(value: Any, subject: str) -> tvm_ffi.Function:
    """The value, if it is a function."""
    _expect(value, "function", subject)
    return value


@builtin("check_apart", 3)
def check_apart(first: tvm_ffi.Tensor, second: tvm_ffi.Tensor, message: str) -> None:
    """`ValueError` with the message if two contiguous tensors have bytes in common."""
    if np.may_share_memory(to_numpy(first), to_numpy(second)):
        raise ValueError(message)


@builtin("assert", 2, None)
def assert_(condition: bool, message: str, *integers: int) -> None:
    """`ValueError` with the message, its `{}` replaced by the integers, unless the condition holds."""
    if not condition:
        raise ValueError(render(message, *integers))


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
