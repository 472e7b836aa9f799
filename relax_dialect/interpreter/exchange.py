"""Tensors between NumPy and tvm-ffi, on the same memory.

NumPy does not exchange the dtypes of `ml_dtypes` through DLPack: such arrays travel as `uint16` or `uint8`, and the
type in the swapped descriptor is set right on the way.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import tvm_ffi
from numpy.typing import NDArray

from tir_dialect.dtypes import DType, from_numpy, lookup, numpy_dtype, parse_dtype

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

    def __init__(self, array: NDArray[Any], dtype: DType):
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
