"""Values of Python as TVM's calling conventions hand them over."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tir_dialect.calling_conventions import Kind, OldKind
from tir_dialect.dtypes import from_numpy, lookup
from tir_dialect.interpreter.boxed import Box, Payload, Tensor

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
