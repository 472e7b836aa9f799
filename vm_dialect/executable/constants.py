"""Constants of an executable: values known when it is made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import numpy as np
import tvm_ffi

from vm_dialect.dtypes import ElementType
from vm_dialect.integers import fits_int64
from vm_dialect.tensors import Array, tensor_element, to_numpy

Value: TypeAlias = tvm_ffi.Tensor | tvm_ffi.Shape | ElementType | str | bool | int | float
"""The Python form of a constant; an element type is an `ElementType`."""


class ConstantKind(IntEnum):
    """What a constant is; the number is its tag in the file."""

    TENSOR = 0
    SHAPE = 1
    STRING = 2
    INT = 3
    FLOAT = 4
    DTYPE = 5
    BOOL = 6


@dataclass(frozen=True, eq=False)
class Constant:
    """A constant and, for tensors that come from outside, its name."""

    value: Value
    name: str = ""

    @property
    def kind(self) -> ConstantKind:
        """What it is."""
        return constant_kind(self.value)

    def key(self) -> object:
        """Equal for constants that may be shared; tensors are shared by name or identity only."""
        if isinstance(self.value, tvm_ffi.Tensor):
            return (ConstantKind.TENSOR, self.name or id(self.value))
        # The sign of zero and the payload of a NaN matter, so floats are compared as they are written.
        value = self.value.hex() if isinstance(self.value, float) else self.value
        return (self.kind, self.name, value)


def constant_kind(value: object) -> ConstantKind:
    """The kind of a constant's value; `TypeError` if it cannot be one, `ValueError` for an integer beyond 64 bits."""
    match value:
        case tvm_ffi.Tensor():
            tensor_element(value)
            return ConstantKind.TENSOR
        case ElementType():
            return ConstantKind.DTYPE
        case tvm_ffi.Shape():
            return ConstantKind.SHAPE
        case str():
            return ConstantKind.STRING
        case bool():
            return ConstantKind.BOOL
        case int():
            if not fits_int64(value):
                raise ValueError(f"integer constant {value} does not fit into 64 bits")
            return ConstantKind.INT
        case float():
            return ConstantKind.FLOAT
        case _:
            raise TypeError(f"a {type(value).__name__} cannot be a constant of an executable")


def constant_text(constant: Constant) -> str:
    """One line for people: kind, and the value or, for tensors, dtype and shape."""
    value = constant.value
    name = f" @{constant.name}".replace("\0", " ") if constant.name else ""
    match value:
        case tvm_ffi.Tensor():
            return f"tensor{name} {tensor_element(value).name}{list(value.shape)}"
        case ElementType():
            return f"dtype{name} {value.name}"
        case tvm_ffi.Shape():
            return f"shape{name} {list(value)}"
        case _:
            return f"{constant.kind.name.lower()}{name} {value!r}"


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def same_constant(left: Constant, right: Constant) -> bool:
    """Whether two constants have the same name, kind and contents."""
    if (left.name, left.kind) != (right.name, right.kind):
        return False
    if isinstance(left.value, tvm_ffi.Tensor) and isinstance(right.value, tvm_ffi.Tensor):
        a, b = to_numpy(left.value), to_numpy(right.value)
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        return left.value.data_ptr() == right.value.data_ptr() or np.array_equal(_bytes(a), _bytes(b))
    return left.key() == right.key()
