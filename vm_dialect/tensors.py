"""Tensors as tvm-ffi holds them, made, viewed and read through NumPy without copies; what values are called in errors,
and how Python's become tvm-ffi's.

NumPy does not exchange the dtypes of `ml_dtypes` through DLPack, so such tensors travel as `uint16` or `uint8` and
change their name on the way. Elements narrower than a byte have one each: no tensor of the machine is packed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import tvm_ffi

from vm_dialect.dtypes import BY_FFI_NAME, ElementType, element_type
from vm_dialect.host_memory import aligned_bytes, aligned_copy
from vm_dialect.strings import StringArray, is_string_array

Array = npt.NDArray[Any]

_RAW = {1: element_type("ui8"), 2: element_type("ui16")}
"""Under which type memory is swapped of which NumPy does not know the elements, by their size."""

# Offset of the dtype in DLManagedTensor and in DLManagedTensorVersioned (dlpack.h).
_DTYPE_OFFSET = {b"dltensor": 20, b"dltensor_versioned": 52}

# The same of the flags, and the one which says that elements narrower than a byte are padded to one.
_FLAGS_OFFSET = {b"dltensor_versioned": 24}
_PADDED = 1 << 2

_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype = ctypes.c_char_p
_capsule_name.argtypes = [ctypes.py_object]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class _Renamed:
    """A tensor whose elements are called by another type of the same width when it is swapped through DLPack."""

    def __init__(self, source: Any, element: ElementType):
        self._source = source
        self._element = element

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._source.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._source.__dlpack__(**options)
        name = _capsule_name(capsule)
        address = _capsule_pointer(capsule, name)
        dtype = (ctypes.c_uint8 * 2).from_address(address + _DTYPE_OFFSET[name])
        dtype[0], dtype[1] = self._element.code, self._element.bits
        return capsule


@cache
def numpy_dtype(element: ElementType) -> np.dtype[Any]:
    """The NumPy dtype; those that NumPy lacks are of `ml_dtypes`."""
    if _is_foreign(element):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, element.ffi_name))
    return np.dtype(element.ffi_name)


def _is_foreign(element: ElementType) -> bool:
    """Whether NumPy lacks the dtype."""
    return element.is_narrow or element.name == "bf16"


@cache
def array_element(dtype: np.dtype[Any]) -> ElementType | None:
    """The element type of a NumPy dtype of any byte order; `None` if the virtual machine has no such type."""
    return BY_FFI_NAME.get(dtype.name)


@cache
def exchange_dtype(element: ElementType) -> np.dtype[Any]:
    """The NumPy dtype under which memory of such elements is swapped: `uint16` for `bfloat16`."""
    return np.dtype(_RAW[element.itemsize].ffi_name) if _is_foreign(element) else numpy_dtype(element)


def tensor_element(tensor: tvm_ffi.Tensor) -> ElementType:
    """The element type of a tensor; `TypeError` if the virtual machine has no such type."""
    element = BY_FFI_NAME.get(tensor.dtype)
    if element is None:
        raise TypeError(f"tensors of dtype {tensor.dtype} are not supported")
    return element


def from_numpy(array: Array) -> tvm_ffi.Tensor:
    """The tensor on the memory of `array`; a read-only array is copied.

    `TypeError` if the virtual machine has no such element type.
    """
    element = array_element(array.dtype)
    if element is None:
        raise TypeError(f"arrays of dtype {array.dtype} are not supported")
    if not array.flags.writeable or not array.dtype.isnative:
        array = aligned_copy(array)
    return _exchange(array.view(exchange_dtype(element)), element)


def to_numpy(tensor: tvm_ffi.Tensor) -> Array:
    """The array on the memory of `tensor`, which it keeps alive. What NumPy lacks has a dtype of `ml_dtypes`."""
    try:
        return np.from_dlpack(cast("Any", tensor))
    except (BufferError, RuntimeError):
        # Only now: asking a tensor for its dtype takes longer than all of the exchange.
        element = BY_FFI_NAME.get(tensor.dtype)
        if element is None or not _is_foreign(element):
            raise
    return _raw(tensor, element).view(numpy_dtype(element))


def _raw(tensor: tvm_ffi.Tensor, element: ElementType) -> Array:
    """The array on the memory of a tensor, under the dtype of exchange."""
    source: Any = _Renamed(tensor, _RAW[element.itemsize]) if _is_foreign(element) else tensor
    return np.from_dlpack(source)


def new_tensor(
    shape: Sequence[int], element: ElementType, memory: Callable[[int], Array] = aligned_bytes
) -> tvm_ffi.Tensor:
    """A tensor with memory of its own, aligned to `ALIGNMENT`; `memory` gives it, by default not initialised."""
    return tensor_on(memory(prod(shape) * element.itemsize), shape, element)


def tensor_at(storage: tvm_ffi.Tensor, offset: int, shape: Sequence[int], element: ElementType) -> tvm_ffi.Tensor:
    """The tensor that starts `offset` bytes into `storage`, a tensor of `uint8`; it keeps the storage alive.

    The caller has checked that it fits and that `offset` is aligned to the element.
    """
    size = prod(shape) * element.itemsize
    return tensor_on(to_numpy(storage)[offset : offset + size], shape, element)


def view(tensor: tvm_ffi.Tensor, shape: Sequence[int]) -> tvm_ffi.Tensor:
    """The same memory with another shape of as many elements; `tensor` is contiguous."""
    element = tensor_element(tensor)
    return _exchange(_raw(tensor, element).reshape(tuple(shape)), element)


def tensor_on(memory: Array, shape: Sequence[int], element: ElementType) -> tvm_ffi.Tensor:
    """The tensor on `memory`, bytes of exactly its size aligned to the element."""
    return _exchange(memory.view(exchange_dtype(element)).reshape(tuple(shape)), element)


def _exchange(array: Array, element: ElementType) -> tvm_ffi.Tensor:
    return tvm_ffi.from_dlpack(_Renamed(array, element) if _is_foreign(element) else array)


def from_dlpack(source: Any) -> tvm_ffi.Tensor:
    """The tensor on the memory of what speaks DLPack; `TypeError` if its elements share bytes."""
    tensor = tvm_ffi.from_dlpack(source)
    if tvm_ffi.dtype(tensor.dtype).bits % 8 and not _is_padded(source):
        raise TypeError(
            f"tensors of packed {tensor.dtype} are not supported: give each element a byte of its own, "
            "as NumPy arrays of ml_dtypes have them"
        )
    return tensor


def _is_padded(source: Any) -> bool:
    """Whether elements narrower than a byte have one each, as tensors since DLPack 1.1 can say."""
    try:
        capsule = source.__dlpack__(max_version=(1, 1))
    except TypeError:  # of an older protocol, which cannot say it
        return False
    name = _capsule_name(capsule)
    if name not in _FLAGS_OFFSET:
        return False
    flags = ctypes.c_uint64.from_address(_capsule_pointer(capsule, name) + _FLAGS_OFFSET[name])
    return bool(flags.value & _PADDED)


_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (int, "int"),
    (float, "float"),
    (tvm_ffi.dtype, "dtype"),
    (str, "string"),
    (bytes, "bytes"),
    (tvm_ffi.Tensor, "tensor"),
    (tvm_ffi.Shape, "shape"),
    (tvm_ffi.Function, "function"),
    (tvm_ffi.Array, "tuple"),
    (tvm_ffi.Map, "map"),
    (tvm_ffi.Module, "module"),
    (tvm_ffi.Device, "device"),
)


def kind_of(value: object) -> str:
    """The name of a value's kind, as errors print it: those of `vm_dialect.messages.KINDS`."""
    if value is None:
        return "null"
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:  # tvm-ffi passes it as an object of Python
        return "object"
    return next((name for python_type, name in _KINDS if isinstance(value, python_type)), "object")


_PLAIN: tuple[type, ...] = (
    type(None),
    bool,
    int,
    float,
    str,
    bytes,
    tvm_ffi.Tensor,
    tvm_ffi.Shape,
    tvm_ffi.Function,
    tvm_ffi.Array,
)


def to_value(value: Any) -> Any:
    """A value of the virtual machine from one of Python's.

    Tensors of NumPy, torch and others that speak DLPack keep their memory; a read-only NumPy array is copied.
    Arrays of strings become opaque. Sequences become tuples, mappings maps, callables functions. `TypeError` for
    anything else.
    """
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, StringArray):
        return tvm_ffi.convert(value)
    if is_string_array(value):
        return tvm_ffi.convert(StringArray(value))
    if isinstance(value, np.ndarray):
        return from_numpy(cast("np.ndarray[Any, Any]", value))
    if isinstance(value, np.generic):
        return _scalar(cast("np.generic[Any]", value))
    if hasattr(value, "__dlpack__"):
        return from_dlpack(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return tvm_ffi.Map({to_value(key): to_value(item) for key, item in items})
    if isinstance(value, Sequence):
        return tvm_ffi.Array([to_value(item) for item in cast("Sequence[object]", value)])
    if isinstance(value, tvm_ffi.Object | tvm_ffi.Device) or callable(value):
        return tvm_ffi.convert(value)
    raise TypeError(f"expected an array, a number, a text or a tuple of these, got {type(value).__name__}")


def _scalar(value: np.generic) -> bool | int | float:
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(cast("Any", value))
    if isinstance(value, np.floating) or ((element := array_element(value.dtype)) is not None and element.is_float):
        return float(cast("Any", value))
    if element is not None:
        return int(cast("Any", value))
    raise TypeError(f"expected a number of a dtype of tensors, got one of {value.dtype}")
