"""Builtins on memory. A storage is a tensor of `uint8`; a tensor inside keeps it alive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import tvm_ffi

from vm_dialect import messages
from vm_dialect.builtins.checks import check_contiguous
from vm_dialect.builtins.table import builtin
from vm_dialect.dtypes import ElementType, element_type
from vm_dialect.messages import render
from vm_dialect.tensors import Array, aligned_bytes, new_tensor, tensor_at, tensor_element, to_numpy, view

_BYTE = element_type("ui8")


def _checked_size(dims: Sequence[int], element: ElementType) -> int:
    """Bytes of a tensor; `ValueError` if a dimension is negative, `MemoryError` if others are too large."""
    for axis, dim in enumerate(dims):
        if dim < 0:
            raise ValueError(render(messages.negative_dimension(), axis, dim))
    if prod(max(dim, 1) for dim in dims) * element.itemsize > messages.MOST_BYTES:
        raise MemoryError(messages.too_large())
    return prod(dims) * element.itemsize


@builtin("alloc_storage", 1)
def alloc_storage(size: int, memory: Callable[[int], Array] = aligned_bytes) -> tvm_ffi.Tensor:
    """New memory of `size` bytes; `ValueError` if it is negative."""
    if size < 0:
        raise ValueError(render(messages.negative_size(), size))
    if size > messages.MOST_BYTES:
        raise MemoryError(render(messages.negative_size(), size))
    return new_tensor((size,), _BYTE, memory)


@builtin("alloc_tensor", 3, None)
def alloc_tensor(storage: tvm_ffi.Tensor, offset: int, dtype: str, *dims: int) -> tvm_ffi.Tensor:
    """The tensor `offset` bytes into a storage; `ValueError` if it does not fit or is not aligned."""
    element = element_type(dtype)
    size, capacity = _checked_size(dims, element), storage.numel()
    if offset < 0 or offset + size > capacity:
        raise ValueError(render(messages.out_of_storage(), size, offset, capacity))
    if offset % element.itemsize:
        raise ValueError(render(messages.not_aligned("alloc_tensor", element.itemsize), offset % element.itemsize))
    return tensor_at(storage, offset, dims, element)


@builtin("new_tensor", 1, None)
def new_tensor_(dtype: str, *dims: int, memory: Callable[[int], Array] = aligned_bytes) -> tvm_ffi.Tensor:
    """A tensor with memory of its own; `ValueError` if a dimension is negative."""
    element = element_type(dtype)
    _checked_size(dims, element)
    return new_tensor(dims, element, memory)


@builtin("new_tensor_of_shape", 2)
def new_tensor_of_shape(dtype: str, shape: Sequence[int]) -> tvm_ffi.Tensor:
    """`new_tensor` with the dimensions of a shape whose rank the program does not know."""
    return new_tensor_(dtype, *shape)


@builtin("view", 1, None)
def view_(tensor: tvm_ffi.Tensor, *dims: int) -> tvm_ffi.Tensor:
    """The same memory with another shape; `ValueError` if it is not contiguous or the number of elements differs."""
    check_contiguous(tensor, "view")
    elements = _checked_size(dims, _BYTE)
    if elements != tensor.numel():
        raise ValueError(render(messages.wrong_element_count(), tensor.numel(), elements))
    return view(tensor, dims)


@builtin("reshape", 2)
def reshape(tensor: tvm_ffi.Tensor, shape: Sequence[int]) -> tvm_ffi.Tensor:
    """`view` with the dimensions of a shape."""
    return view_(tensor, *shape)


@builtin("read_cond", 1)
def read_cond(tensor: tvm_ffi.Tensor) -> bool:
    """The boolean held by a tensor of rank 0."""
    array = to_numpy(tensor)
    if array.ndim != 0 or tensor_element(tensor).name != "i1":
        raise TypeError(f"read_cond: expected a bool tensor of rank 0, got {tensor.dtype}{list(tensor.shape)}")
    return bool(array)


@builtin("copy", 1)
def copy(value: Any) -> Any:
    """The value itself: moves it from register to register."""
    return value


@builtin("kill", 0)
def kill() -> None:
    """Null, for the register of a value that is not used any more."""


@builtin("null_value", 0)
def null_value() -> None:
    """Null."""
