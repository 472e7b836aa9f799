"""Values of the interpreter, and their counterparts in tvm-ffi, which packed functions see.

Tensors are NumPy arrays, shapes are `Shape`, tuples are Python tuples, prim values are `int`, `float` and `bool`,
strings `str`, element types `DType`, null is `None`, and functions are Python callables. Anything else is an opaque
object.

NumPy does not exchange the dtypes of `ml_dtypes` through DLPack: such arrays travel as `uint16` or `uint8`, and the
type in the swapped descriptor is set right on the way.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import tvm_ffi
from numpy.typing import NDArray
from typing_extensions import TypeIs

from tir_dialect import dtypes
from tir_dialect.dtypes import from_numpy, lookup, numpy_dtype, parse_dtype
from vm_dialect.strings import StringArray, is_string_array

# Offset of the type in DLManagedTensor and in DLManagedTensorVersioned (dlpack.h).
_DTYPE_OFFSET = {b"dltensor": 20, b"dltensor_versioned": 52}

_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype = ctypes.c_char_p
_capsule_name.argtypes = [ctypes.py_object]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class _Renamed:
    """An array that says through DLPack that its elements are of another dtype of the same size."""

    def __init__(self, array: NDArray[Any], dtype: dtypes.DType):
        self._array = array
        self._dtype = dtype

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._array.__dlpack__(**options)
        name = _capsule_name(capsule)
        dtype = (ctypes.c_uint8 * 2).from_address(_capsule_pointer(capsule, name) + _DTYPE_OFFSET[name])
        dtype[0], dtype[1] = self._dtype.dlpack
        return capsule


class _Memory:
    """The memory of a tensor as NumPy's array interface, under unsigned integers."""

    def __init__(self, tensor: tvm_ffi.Tensor, size: int):
        self._tensor = tensor  # keeps the memory
        strides = None if tensor.is_contiguous() else tuple(size * stride for stride in tensor.strides)
        kind, data = f"<u{size}", (tensor.data_ptr(), False)
        shape = tuple(tensor.shape)
        self.__array_interface__ = {"shape": shape, "strides": strides, "typestr": kind, "data": data, "version": 3}


def to_array(tensor: tvm_ffi.Tensor) -> NDArray[Any]:
    """The array on the memory of a tensor, which it keeps alive."""
    try:
        return np.from_dlpack(tensor)
    except (BufferError, RuntimeError):
        # Only now: asking a tensor for its dtype takes longer than all of the exchange.
        dtype = numpy_dtype(parse_dtype(str(tensor.dtype)))
        if not _is_foreign(dtype):
            raise
    if not tensor.numel():
        return np.empty(tuple(tensor.shape), dtype)
    return np.asarray(_Memory(tensor, dtype.itemsize)).view(dtype)


def to_tensor(array: NDArray[Any]) -> tvm_ffi.Tensor:
    """The tensor on the memory of an array, which is copied only if it has to be: with gaps, or not writeable."""
    if not array.flags.c_contiguous or not array.flags.writeable:
        array = array.copy()  # of no dimensions, it keeps none, unlike with np.ascontiguousarray
    if _is_foreign(array.dtype):
        raw = array.view(f"u{array.dtype.itemsize}")
        return tvm_ffi.from_dlpack(_Renamed(raw, lookup(from_numpy(array.dtype))))
    return tvm_ffi.from_dlpack(array)


def _is_foreign(dtype: np.dtype[Any]) -> bool:
    """Whether NumPy itself lacks the dtype."""
    return dtype.type.__module__ != "numpy"


Value: TypeAlias = Any

Array: TypeAlias = NDArray[Any]
"""A tensor."""


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


def is_tensor(value: Value) -> TypeIs[Array]:
    """Whether a value is a tensor."""
    return isinstance(value, np.ndarray)


def is_int(value: Value) -> TypeIs[int]:
    """Whether a value is an integer of the language, which has 64 bits and a sign."""
    return isinstance(value, int) and -(1 << 63) <= value < 1 << 63


def is_tuple(value: Value) -> TypeIs[tuple[Value, ...]]:
    """Whether a value is a tuple of the language."""
    return isinstance(value, tuple) and not isinstance(value, Shape)


def _is_numpy_scalar(value: Any) -> TypeIs[np.generic[Any]]:
    return isinstance(value, np.generic)


def _is_sequence(value: Any) -> TypeIs[list[Any] | tvm_ffi.Array[Any]]:
    return isinstance(value, list | tvm_ffi.Array)


def from_python(value: Any) -> Value:
    """A value given from outside: arrays of any DLPack library, tvm-ffi objects, sequences, numbers, strings,
    callables.
    """
    if isinstance(value, tvm_ffi.Tensor):
        return to_array(value)
    if _is_numpy_scalar(value):
        return value.item()
    if is_string_array(value):
        return StringArray(value)
    match value:
        # Before `str` and `tuple`, of which they are subclasses.
        case tvm_ffi.dtype():
            return DType(dtypes.dtype_name(dtypes.parse_dtype(str(value))))
        case tvm_ffi.Shape():
            dims: Any = value
            return Shape(int(dim) for dim in dims)
        case tvm_ffi.Function():
            return packed(value)
        case None | bool() | int() | float() | str() | Shape() | DType():
            return value
        case _ if is_tensor(value):
            return value
        case _ if _is_sequence(value) or is_tuple(value):
            return tuple(from_python(item) for item in value)
        case _ if hasattr(value, "__dlpack__"):
            return to_array(tvm_ffi.from_dlpack(value))
        case _:
            return value


def to_ffi(value: Value) -> Any:
    """The value as a packed function receives it; a tensor shares its memory."""
    if is_tensor(value):
        return to_tensor(value)
    if isinstance(value, Shape):
        return tvm_ffi.Shape(value)
    if is_tuple(value):
        return tvm_ffi.convert([to_ffi(item) for item in value])
    if isinstance(value, DType):
        return tvm_ffi.dtype(str(dtypes.numpy_dtype(dtypes.parse_dtype(value.name))))
    if callable(value) and not isinstance(value, tvm_ffi.Function):
        return tvm_ffi.convert(_outside(value))
    return value


def _outside(function: Callable[..., Value]) -> Callable[..., Any]:
    """A function of the interpreter as a callable on tvm-ffi values."""

    def call(*arguments: Any) -> Any:
        return to_ffi(function(*map(from_python, arguments)))

    return call


def packed(function: Callable[..., Any]) -> Callable[..., Value]:
    """A packed function as a callable on values of the interpreter."""

    def call(*arguments: Value) -> Value:
        return from_python(function(*map(to_ffi, arguments)))

    return call


def kind_of(value: Value) -> str:
    """What an error calls the kind of a value, as in the virtual machine."""
    if value is None:
        return "null"
    if is_tensor(value):
        return "tensor"
    if isinstance(value, int) and not is_int(value):
        return "object"
    for kind, types in _KINDS.items():
        if isinstance(value, types):
            return kind
    return "function" if callable(value) else "object"


_KINDS: dict[str, type] = {
    "shape": Shape,
    "tuple": tuple,
    "dtype": DType,
    "bool": bool,
    "int": int,
    "float": float,
    "string": str,
    "bytes": bytes,
    "map": Mapping,
}


def text_of(value: Value) -> str:
    """What `relax.print` and `relax.assert` write for a value: `3`, `true`, `[2, 4]`, NumPy's text of a tensor,
    `(a, b)`, `null`.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Shape):
        return f"[{', '.join(map(str, value))}]"
    if is_tuple(value):
        return f"({', '.join(map(text_of, value))})"
    if is_tensor(value) or isinstance(value, int | float | str):
        return str(value)
    if isinstance(value, DType):
        return value.name
    return f"<{kind_of(value)}>"
