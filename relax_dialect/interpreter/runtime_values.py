"""Values of the interpreter, and their counterparts in tvm-ffi, which packed functions see.

Tensors are NumPy arrays, shapes are `Shape`, tuples are Python tuples, prim values are `int`, `float` and `bool`,
strings `str`, element types `DType`, null is `None`, and functions are Python callables. Anything else is an opaque
object.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import tvm_ffi

from tir_dialect import dtypes

Value: TypeAlias = Any


class Shape(tuple[int, ...]):
    """A shape value: not a tuple of the language."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Shape({', '.join(map(str, self))})"


@dataclass(frozen=True)
class DType:
    """An element type as a value."""

    name: str
    """As in the text of the IR: `f32`."""


def from_python(value: Any) -> Value:
    """A value given from outside: arrays of any DLPack library, tvm-ffi objects, sequences, numbers, strings,
    callables.
    """
    match value:
        case None | bool() | int() | float() | str() | np.ndarray() | Shape() | DType():
            return value
        case np.generic():
            return value.item()
        case tvm_ffi.Shape():
            return Shape(int(dim) for dim in value)
        case tvm_ffi.dtype():
            return DType(_ir_dtype(str(value)))
        case tvm_ffi.Function():
            return packed(value)
        case tuple() | list() | tvm_ffi.Array():
            return tuple(from_python(item) for item in value)
        case _ if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        case _:
            return value


def to_ffi(value: Value) -> Any:
    """The value as a packed function receives it; a tensor shares its memory."""
    match value:
        case np.ndarray():
            return _tensor(value)
        case Shape():
            return tvm_ffi.Shape(value)
        case tuple():
            return tvm_ffi.convert([to_ffi(item) for item in value])
        case DType():
            return tvm_ffi.dtype(str(dtypes.numpy_dtype(dtypes.parse_dtype(value.name))))
        case _ if callable(value) and not isinstance(value, tvm_ffi.Function):
            return tvm_ffi.convert(lambda *args: to_ffi(value(*map(from_python, args))))
        case _:
            return value


def packed(function: Callable[..., Any]) -> Callable[..., Value]:
    """A packed function as a callable on values of the interpreter."""

    def call(*args: Value) -> Value:
        return from_python(function(*map(to_ffi, args)))

    return call


def _tensor(array: np.ndarray) -> tvm_ffi.Tensor:
    """A tensor on the memory of `array`, which is copied only if it has to be."""
    if not array.flags.c_contiguous or not array.flags.writeable:
        array = np.ascontiguousarray(array).copy()
    return tvm_ffi.from_dlpack(array)


def _ir_dtype(name: str) -> str:
    return dtypes.dtype_name(dtypes.from_numpy(np.dtype(name)))


def kind_of(value: Value) -> str:
    """What an error calls a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case np.ndarray():
            return f"tensor of dtype {value.dtype} and shape {list(value.shape)}"
        case Shape():
            return f"shape of rank {len(value)}"
        case tuple():
            return f"tuple of {len(value)} fields"
        case int() | float() | str():
            return type(value).__name__
        case _:
            return "function" if callable(value) else "object"
