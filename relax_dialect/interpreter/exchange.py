"""Tensors between NumPy and tvm-ffi, on the same memory.

NumPy does not exchange `bfloat16` through DLPack: such arrays travel as `uint16`, and the type code in the exchanged
descriptor is set right on the way.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import tvm_ffi
from numpy.typing import NDArray
from xdsl.dialects.builtin import BFloat16Type

from tir_dialect.dtypes import lookup, numpy_dtype

_BFLOAT16 = BFloat16Type()

# Offset of the type code in DLManagedTensor and in DLManagedTensorVersioned (dlpack.h).
_CODE_OFFSET = {b"dltensor": 20, b"dltensor_versioned": 52}

_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype = ctypes.c_char_p
_capsule_name.argtypes = [ctypes.py_object]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class _AsBFloat16:
    """An array of `uint16` that says through DLPack that it is of `bfloat16`."""

    def __init__(self, array: NDArray[Any]):
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._array.__dlpack__(**options)
        name = _capsule_name(capsule)
        code = ctypes.c_uint8.from_address(_capsule_pointer(capsule, name) + _CODE_OFFSET[name])
        code.value = lookup(_BFLOAT16).code
        return capsule


class _Memory:
    """The memory of a tensor of `bfloat16` as NumPy's array interface, under `uint16`."""

    def __init__(self, tensor: tvm_ffi.Tensor):
        self._tensor = tensor  # keeps the memory
        strides = None if tensor.is_contiguous() else tuple(2 * stride for stride in tensor.strides)
        shape = tuple(tensor.shape)
        data = (tensor.data_ptr(), False)
        self.__array_interface__ = {"shape": shape, "strides": strides, "typestr": "<u2", "data": data, "version": 3}


def to_array(tensor: tvm_ffi.Tensor) -> NDArray[Any]:
    """The array on the memory of a tensor, which it keeps alive."""
    if str(tensor.dtype) != "bfloat16":
        return np.from_dlpack(tensor)
    dtype = numpy_dtype(_BFLOAT16)
    return np.asarray(_Memory(tensor)).view(dtype) if tensor.numel() else np.empty(tuple(tensor.shape), dtype)


def to_tensor(array: NDArray[Any]) -> tvm_ffi.Tensor:
    """The tensor on the memory of an array, which is copied only if it has to be: with gaps, or not writeable."""
    if not array.flags.c_contiguous or not array.flags.writeable:
        array = np.ascontiguousarray(array).copy()
    if array.dtype == numpy_dtype(_BFLOAT16):
        return tvm_ffi.from_dlpack(_AsBFloat16(array.view(np.uint16)))
    return tvm_ffi.from_dlpack(array)
