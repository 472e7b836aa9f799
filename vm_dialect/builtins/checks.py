"""Builtins of the check ops. Tensors are checked for kind, rank, dtype, device, size, contiguity, then alignment."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import tvm_ffi

from vm_dialect import messages
from vm_dialect.builtins.table import builtin
from vm_dialect.dtypes import BY_FFI_NAME
from vm_dialect.messages import render
from vm_dialect.tensors import kind_of, to_numpy

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
    _check_memory(tensor, subject)
    return tensor


def _check_memory(tensor: tvm_ffi.Tensor, subject: str) -> None:
    """Contiguity, then alignment to the element size; a tensor without elements has neither."""
    if tensor.numel() == 0:
        return
    check_contiguous(tensor, subject)
    element = BY_FFI_NAME.get(tensor.dtype)
    remainder = 0 if element is None else tensor.data_ptr() % element.itemsize
    if element is not None and remainder:
        raise ValueError(render(messages.not_aligned(subject, element.itemsize), remainder))


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
