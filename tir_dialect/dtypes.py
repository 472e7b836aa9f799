"""Element types of buffers and tensors: one table from xDSL types to names, NumPy, DLPack and byte sizes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
    i1,
)
from xdsl.ir import Attribute

# NumPy is loaded on first use: importing the dialect must stay cheap.
if TYPE_CHECKING:
    import numpy as np

ElementType: TypeAlias = AnyFloat | IntegerType
"""The xDSL type of an element; one of `DTYPES`."""


class DLPackCode(IntEnum):
    """Type codes of DLPack."""

    INT = 0
    UINT = 1
    FLOAT = 2
    BFLOAT = 4
    BOOL = 6


@dataclass(frozen=True, slots=True)
class DType:
    """One row of the table: what is known about an element type."""

    name: str
    """The spelling in text and in error messages, such as `f32`."""

    type: ElementType
    """The xDSL type; unsigned integers are `ui8` etc., signed ones are signless."""

    code: DLPackCode
    bits: int
    """Width as DLPack counts it; a bool has 8."""

    numpy_name: str
    """The name of the NumPy dtype; `bfloat16` comes from `ml_dtypes`."""

    scalar: ElementType
    """The type of a value loaded from a buffer: integers are signless."""

    @property
    def bytes(self) -> int:
        """Size of an element in memory, in bytes."""
        return self.bits // 8

    @property
    def dlpack(self) -> tuple[int, int]:
        """The DLPack `(code, bits)`; there is always one lane."""
        return int(self.code), self.bits

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.code in (DLPackCode.FLOAT, DLPackCode.BFLOAT)

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer type, signed or unsigned; bool is none."""
        return self.code in (DLPackCode.INT, DLPackCode.UINT)

    @property
    def is_unsigned(self) -> bool:
        """Whether it is an unsigned integer type."""
        return self.code is DLPackCode.UINT

    @property
    def is_bool(self) -> bool:
        """Whether it is `i1`."""
        return self.code is DLPackCode.BOOL


def _float(type: AnyFloat, numpy_name: str, code: DLPackCode = DLPackCode.FLOAT) -> DType:
    return DType(type.name, type, code, type.bitwidth, numpy_name, type)


def _signed(bits: int) -> DType:
    return DType(f"i{bits}", IntegerType(bits), DLPackCode.INT, bits, f"int{bits}", IntegerType(bits))


def _unsigned(bits: int) -> DType:
    type = IntegerType(bits, Signedness.UNSIGNED)
    return DType(f"ui{bits}", type, DLPackCode.UINT, bits, f"uint{bits}", IntegerType(bits))


DTYPES: tuple[DType, ...] = (
    _float(Float16Type(), "float16"),
    _float(BFloat16Type(), "bfloat16", DLPackCode.BFLOAT),
    _float(Float32Type(), "float32"),
    _float(Float64Type(), "float64"),
    *map(_signed, (8, 16, 32, 64)),
    *map(_unsigned, (8, 16, 32, 64)),
    DType("i1", i1, DLPackCode.BOOL, 8, "bool", i1),
)
"""All supported element types."""

_BY_TYPE: dict[Attribute, DType] = {dtype.type: dtype for dtype in DTYPES}
_BY_NAME: dict[str, DType] = {dtype.name: dtype for dtype in DTYPES}
_BY_NUMPY_NAME: dict[str, DType] = {dtype.numpy_name: dtype for dtype in DTYPES}
_BY_DLPACK: dict[tuple[int, int], DType] = {dtype.dlpack: dtype for dtype in DTYPES}
_EXPECTED = ", ".join(_BY_NAME)


def is_dtype(type: Attribute) -> bool:
    """Whether `type` is a supported element type."""
    return type in _BY_TYPE


def lookup(type: Attribute) -> DType:
    """What is known about an element type; ValueError for one that is not supported."""
    found = _BY_TYPE.get(type)
    if found is None:
        raise ValueError(f"unsupported dtype {type}: expected one of {_EXPECTED}")
    return found


_NARROW = re.compile(r"float[468]_\w+|f[468]E\w+|u?int[1-7]|u?i[2-7]")
"""Dtypes of other systems that are stored, and computed with in a wider one."""


def parse_dtype(name: str) -> ElementType:
    """The element type spelled `name`, as here (`f32`) or as in NumPy (`float32`)."""
    found = _BY_NAME.get(name) or _BY_NUMPY_NAME.get(name)
    if found is None:
        reason = ""
        if _NARROW.fullmatch(name):
            reason = "; machines do not compute with narrower ones: keep them as ui8, and convert in a PrimFunc"
        raise ValueError(f"unsupported dtype '{name}': expected one of {_EXPECTED}{reason}")
    return found.type


def from_numpy(dtype: np.dtype[Any]) -> ElementType:
    """The element type of a NumPy dtype in native byte order."""
    found = _BY_NUMPY_NAME.get(dtype.name)
    if found is None or not dtype.isnative:
        raise ValueError(f"unsupported NumPy dtype '{dtype}': expected one of {', '.join(_BY_NUMPY_NAME)}")
    return found.type


def from_dlpack(code: int, bits: int) -> ElementType:
    """The element type of a DLPack type with one lane."""
    found = _BY_DLPACK.get((code, bits))
    if found is None:
        raise ValueError(f"unsupported DLPack dtype (code {code}, {bits} bits): expected one of {_EXPECTED}")
    return found.type


@lru_cache(maxsize=64)
def numpy_dtype(type: Attribute) -> np.dtype[Any]:
    """The NumPy dtype of an element type, in native byte order."""
    import numpy as np

    name = lookup(type).numpy_name
    if name == "bfloat16":
        return np.dtype(getattr(import_module("ml_dtypes"), name))
    return np.dtype(name)


def dtype_name(type: Attribute) -> str:
    """The spelling of an element type."""
    return lookup(type).name


def byte_size(type: Attribute) -> int:
    """The size of an element in memory, in bytes; bool takes one."""
    return lookup(type).bytes


def scalar_type(type: Attribute) -> ElementType:
    """The type of a value loaded from a buffer of this element type: `ui8` gives `i8`, the others themselves."""
    return lookup(type).scalar


def is_float(type: Attribute) -> bool:
    """Whether it is a supported floating-point type."""
    return lookup(type).is_float


def is_integer(type: Attribute) -> bool:
    """Whether it is a supported integer type, signed or unsigned; bool is none."""
    return lookup(type).is_integer


def is_unsigned(type: Attribute) -> bool:
    """Whether it is a supported unsigned integer type."""
    return lookup(type).is_unsigned


def is_bool(type: Attribute) -> bool:
    """Whether it is `i1`."""
    return lookup(type).is_bool


def range_in_i64(type: Attribute) -> tuple[int, int | None] | None:
    """Which numbers of 64 bits with a sign are values of an integer type: from the first to the second, or all."""
    dtype = lookup(type)
    if dtype.bits == 64:
        return (0, None) if dtype.is_unsigned else None
    return (0, 2**dtype.bits - 1) if dtype.is_unsigned else (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1)
