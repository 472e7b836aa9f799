"""Builtins on shapes and dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import tvm_ffi

from vm_dialect import messages
from vm_dialect.builtins.table import builtin
from vm_dialect.dtypes import element_type
from vm_dialect.messages import render
from vm_dialect.tensors import new_tensor, to_numpy


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
