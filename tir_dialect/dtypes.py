"""Element types of buffers and tensors: one table from xDSL types to names, NumPy, DLPack and byte sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum
from functools import lru_cache
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerType,
    ReducedPrecisionFloatType,
    Signedness,
    f4E2M1FN,
    f6E2M3FN,
    f6E3M2FN,
    f8E3M4,
    f8E4M3,
    f8E4M3B11FNUZ,
    f8E4M3FN,
    f8E4M3FNUZ,
    f8E5M2,
    f8E5M2FNUZ,
    f8E8M0FNU,
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
    FLOAT8_E3M4 = 7
    FLOAT8_E4M3 = 8
    FLOAT8_E4M3B11FNUZ = 9
    FLOAT8_E4M3FN = 10
    FLOAT8_E4M3FNUZ = 11
    FLOAT8_E5M2 = 12
    FLOAT8_E5M2FNUZ = 13
    FLOAT8_E8M0FNU = 14
    FLOAT6_E2M3FN = 15
    FLOAT6_E3M2FN = 16
    FLOAT4_E2M1FN = 17


@dataclass(frozen=True, slots=True)
class DType:
    """An element type: a row of the table."""

    name: str
    """The spelling in text and in error messages, such as `f32`."""

    type: ElementType
    """The xDSL type; unsigned integers are `ui8` etc., signed ones are signless."""

    code: DLPackCode
    bits: int
    """Width as DLPack counts it; a bool has 8."""

    numpy_name: str
    """The name of the NumPy dtype; `ml_dtypes` has `bfloat16` and what `is_narrow`."""

    scalar: ElementType
    """The type of a value loaded from a buffer: integers are signless."""

    @property
    def bytes(self) -> int:
        """Size of an element in memory, in bytes; elements are never packed."""
        return (self.bits + 7) // 8

    @property
    def dlpack(self) -> tuple[int, int]:
        """The DLPack `(code, bits)`; there is always one lane."""
        return int(self.code), self.bits

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.code not in (DLPackCode.INT, DLPackCode.UINT, DLPackCode.BOOL)

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

    @property
    def is_small_float(self) -> bool:
        """Whether it is a float of 8 bits or less, computed with in `f32`; its `type` has the format as `SEMANTICS`."""
        return isinstance(self.type, ReducedPrecisionFloatType)

    @property
    def is_narrow(self) -> bool:
        """Whether it is a small float or an integer below 8 bits."""
        return self.is_small_float or self.bits < 8


def _float(type: AnyFloat, numpy_name: str, code: DLPackCode = DLPackCode.FLOAT) -> DType:
    return DType(type.name, type, code, type.bitwidth, numpy_name, type)


def _small(type: AnyFloat) -> DType:
    numpy_name = f"float{type.name[1:].lower().replace('e', '_e')}"  # f8E4M3FN is float8_e4m3fn
    return _float(type, numpy_name, DLPackCode[numpy_name.upper()])


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
    *map(_small, (f8E4M3FN, f8E5M2, f8E4M3, f8E3M4, f8E4M3B11FNUZ, f8E4M3FNUZ, f8E5M2FNUZ, f8E8M0FNU)),
    *map(_small, (f6E2M3FN, f6E3M2FN, f4E2M1FN)),
    *map(_signed, (4, 2)),
    *map(_unsigned, (4, 2)),
)
"""All supported element types. Those that are narrower than a byte take one each: the lowest bits, the others are 0."""

_BY_TYPE: dict[Attribute, DType] = {dtype.type: dtype for dtype in DTYPES}
_BY_NAME: dict[str, DType] = {dtype.name: dtype for dtype in DTYPES}
_BY_NUMPY_NAME: dict[str, DType] = {dtype.numpy_name: dtype for dtype in DTYPES}
_BY_DLPACK: dict[tuple[int, int], DType] = {dtype.dlpack: dtype for dtype in DTYPES}
_EXPECTED = ", ".join(_BY_NAME)


def is_dtype(type: Attribute) -> bool:
    """Whether `type` is a supported element type."""
    return type in _BY_TYPE


def lookup(type: Attribute) -> DType:
    """The row of an element type; ValueError for an unsupported one."""
    found = _BY_TYPE.get(type)
    if found is None:
        raise ValueError(f"unsupported dtype {type}: expected one of {_EXPECTED}")
    return found


_OLDER_NAMES = {"e4m3_float8": "float8_e4m3fn", "e5m2_float8": "float8_e5m2"}
"""What TVM called some before 0.20."""

_ELSEWHERE = {
    **{f"fp{bits}": f"f{bits}" for bits in (16, 32, 64)},
    "half": "f16",
    "float": "f32",
    "double": "f64",
    "int": "i64",
    "long": "i64",
}
"""What others call some, but not always for the same size."""


def parse_dtype(name: str) -> ElementType:
    """The element type spelled `name`, as here (`f32`) or as in NumPy and TVM (`float32`)."""
    found = _BY_NAME.get(name) or _BY_NUMPY_NAME.get(_OLDER_NAMES.get(name, name))
    if found is None:
        # Another number of bits is another type, however close the spelling is.
        same_bits = [each for each in (*_BY_NUMPY_NAME, *_BY_NAME) if _digits(each) == _digits(name)]
        close = _ELSEWHERE.get(name) or next(iter(get_close_matches(name, same_bits, n=1)), None)
        hint = f"; did you mean {close}?" if close else f": expected one of {_EXPECTED}"
        raise ValueError(f"unsupported dtype '{name}'{hint}")
    return found.type


def _digits(name: str) -> list[str]:
    return sorted(filter(str.isdigit, name))


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


MOST_BYTES = 1 << 48
"""Of an argument. Its sizes are far from those with which arithmetic in 64 bits overflows."""


def check_extents(shape: Sequence[int], itemsize: int, position: str) -> None:
    """`ValueError` for an argument that is too large to compute with, also where an axis of 0 leaves it empty."""
    if prod(max(extent, 1) for extent in shape) * itemsize > MOST_BYTES:
        raise ValueError(f"{position}: expected a tensor of at most 2^48 bytes, where axes of length 0 count as 1")


@lru_cache(maxsize=64)
def numpy_dtype(type: Attribute) -> np.dtype[Any]:
    """The NumPy dtype of an element type, in native byte order."""
    import numpy as np

    row = lookup(type)
    if row.is_narrow or row.code is DLPackCode.BFLOAT:
        return np.dtype(getattr(import_module("ml_dtypes"), row.numpy_name))
    return np.dtype(row.numpy_name)


def finite_range(type: Attribute) -> tuple[float, float]:
    """The least and the greatest finite number of a floating-point type."""
    limits: Any = import_module("ml_dtypes").finfo(numpy_dtype(type))
    return float(limits.min), float(limits.max)


def epsilon(type: Attribute) -> float:
    """The distance from 1 to the next greater number of a floating-point type."""
    limits: Any = import_module("ml_dtypes").finfo(numpy_dtype(type))
    return float(limits.eps)


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


def is_small_float(type: Attribute) -> bool:
    """Whether it is a supported float of 8 bits or less, which is computed with in `f32`."""
    return lookup(type).is_small_float


def is_narrow(type: Attribute) -> bool:
    """Whether it is a small float or a supported integer below 8 bits."""
    return lookup(type).is_narrow


def is_integer(type: Attribute) -> bool:
    """Whether it is a supported integer type, signed or unsigned; bool is none."""
    return lookup(type).is_integer


def is_unsigned(type: Attribute) -> bool:
    """Whether it is a supported unsigned integer type."""
    return lookup(type).is_unsigned


def is_bool(type: Attribute) -> bool:
    """Whether it is `i1`."""
    return lookup(type).is_bool


def rounded(value: float, type: AnyFloat) -> float:
    """The number of a float type that a value becomes: of a small float, as `ml_dtypes` rounds it."""
    if not isinstance(type, ReducedPrecisionFloatType):
        return FloatAttr(float(value), type).value.data
    import numpy as np

    with np.errstate(all="ignore"):
        return float(np.asarray(value).astype(numpy_dtype(type)))


def integer_limits(type: Attribute) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    dtype = lookup(type)
    return (0, 2**dtype.bits - 1) if dtype.is_unsigned else (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1)


def range_in_i64(type: Attribute) -> tuple[int, int | None] | None:
    """The inclusive range of an integer type within the signed 64-bit integers; `None` if it has all of them."""
    dtype = lookup(type)
    if dtype.bits == 64:
        return (0, None) if dtype.is_unsigned else None
    return integer_limits(type)
