"""Packed functions that take their arguments out of memory, as `tir.call_boxed` has them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from tir_dialect.calling_conventions import ANY_BYTES, TENSOR_OBJECT_HEADER, Kind, OldKind
from tir_dialect.dtypes import from_dlpack, from_numpy, lookup, numpy_dtype
from tir_dialect.interpreter.numerics import UnsupportedOpError, memory_at, read_text

CPU = 1
_TO_OLD = {
    Kind.NONE: OldKind.NULL,
    Kind.INT: OldKind.INT,
    Kind.BOOL: OldKind.INT,
    Kind.FLOAT: OldKind.FLOAT,
    Kind.TENSOR: OldKind.TENSOR,
    Kind.TEXT: OldKind.TEXT,
}


class Packed:
    """Arguments in memory, which lives as long as this object."""

    def __init__(self, name: str, arguments: Sequence[object]):
        """Raises `TypeError` for a value that has no form there."""
        self._kept: list[object] = []
        self.boxes = (Box * (len(arguments) + 1))()
        for index, argument in enumerate(arguments):
            self._fill(f"{name}: argument #{index}", self.boxes[index], argument)
        self.values = (Payload * len(self.boxes))(*(box.payload for box in self.boxes))
        kinds = [_TO_OLD[Kind(box.kind)] for box in self.boxes]
        self.kinds = np.array(kinds, np.int32)

    def _fill(self, position: str, box: Box, value: object) -> None:
        match value:
            case None:
                box.kind = Kind.NONE
            case bool() | np.bool_():
                box.kind, box.payload.integer = Kind.BOOL, int(value)
            case int() | np.integer():
                box.kind, box.payload.integer = Kind.INT, int(value)
            case float() | np.floating():
                box.kind, box.payload.number = Kind.FLOAT, float(value)
            case str():
                text = ctypes.create_string_buffer(value.encode())
                self._kept.append(text)
                box.kind, box.payload.address = Kind.TEXT, ctypes.addressof(text)
            case _:
                box.kind, box.payload.address = Kind.TENSOR, ctypes.addressof(self._tensor(position, value))

    def _tensor(self, position: str, value: object) -> Tensor:
        array = self._array(position, value)
        shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        steps = (step // array.itemsize for step in array.strides)
        strides = (ctypes.c_int64 * max(array.ndim, 1))(*steps)
        code, bits = lookup(from_numpy(array.dtype)).dlpack
        where = ctypes.addressof(shape), 0 if array.flags.c_contiguous else ctypes.addressof(strides)
        tensor = Tensor(array.ctypes.data, CPU, 0, array.ndim, code, bits, 1, *where, 0)
        self._kept += [array, shape, strides, tensor]
        return tensor

    @staticmethod
    def _array(position: str, value: Any) -> np.ndarray:
        if isinstance(value, np.ndarray):
            return cast("np.ndarray", value)
        if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        raise TypeError(f"{position} expected an array, a number, a text or None, got a {type(value).__name__}")


class Tensor(ctypes.Structure):
    """A `DLTensor`."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("type_bits", ctypes.c_uint8),
        ("type_lanes", ctypes.c_uint16),
        ("shape", ctypes.c_uint64),
        ("strides", ctypes.c_uint64),
        ("byte_offset", ctypes.c_uint64),
    )


class Payload(ctypes.Union):
    """The eight bytes of a value."""

    _fields_ = (("integer", ctypes.c_int64), ("number", ctypes.c_double), ("address", ctypes.c_uint64))


class Box(ctypes.Structure):
    """A `TVMFFIAny`."""

    _fields_ = (("kind", ctypes.c_int32), ("padding", ctypes.c_int32), ("payload", Payload))


def call_boxed(name: str, function: Callable[..., Any], values: int, count: int) -> None:
    """Calls a function with the values at an address; the result goes after them."""
    boxes = [Box.from_address(values + index * ANY_BYTES) for index in range(count + 1)]
    box_result(name, boxes[-1], function(*(unboxed(name, each) for each in boxes[:-1])))


def unboxed(name: str, box: Box) -> Any:
    """What a box holds, as Python has it; a tensor is an array on its memory."""
    match box.kind:
        case Kind.NONE:
            return None
        case Kind.INT:
            return box.payload.integer
        case Kind.BOOL:
            return bool(box.payload.integer)
        case Kind.FLOAT:
            return box.payload.number
        case Kind.POINTER:
            return ctypes.c_void_p(box.payload.address)
        case Kind.TEXT:
            return read_text(box.payload.address)
        case Kind.TENSOR:
            return array_of(Tensor.from_address(box.payload.address))
        case Kind.TENSOR_OBJECT:
            return array_of(Tensor.from_address(box.payload.address + TENSOR_OBJECT_HEADER))
        case other:
            raise UnsupportedOpError(f"'tir.call_boxed' of \"{name}\" with a value of type index {other}")


def array_of(tensor: Tensor) -> np.ndarray:
    """The array that a tensor describes; `TypeError` or `ValueError` for elements that NumPy does not have."""
    if tensor.type_lanes != 1:
        raise TypeError(f"expected a tensor of elements with one lane, got {tensor.type_lanes}")
    dtype = numpy_dtype(from_dlpack(tensor.type_code, tensor.type_bits))
    shape = _integers(tensor.shape, tensor.ndim)
    strides = _integers(tensor.strides, tensor.ndim) if tensor.strides else _row_major(shape)
    if 0 in shape:
        return np.empty(shape, dtype)
    return memory_at(tensor.data + tensor.byte_offset, shape, strides, dtype)


def _integers(address: int, count: int) -> list[int]:
    return list((ctypes.c_int64 * count).from_address(address)) if count else []


def _row_major(shape: list[int]) -> list[int]:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return strides


def box_result(name: str, box: Box, value: object) -> None:
    """Puts a result into a box: a number, a truth value or nothing."""
    box.padding, box.payload.integer = 0, 0
    match value:
        case None:
            box.kind = Kind.NONE
        case bool():
            box.kind, box.payload.integer = Kind.BOOL, int(value)
        case int():
            box.kind, box.payload.integer = Kind.INT, value
        case float():
            box.kind, box.payload.number = Kind.FLOAT, value
        case _:
            raise UnsupportedOpError(f"'tir.call_boxed' of \"{name}\", which returned a {type(value).__name__}")
