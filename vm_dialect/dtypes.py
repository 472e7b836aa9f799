"""Element types at run time: short names, tvm-ffi dtypes, byte sizes. Plain values, no IR.

The short names are those of the IR (`f32`, `ui8`, `i1`); `i1` is a boolean of one byte.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ElementType:
    """One element type."""

    name: str
    """As the IR writes it, for example `f32`."""
    ffi_name: str
    """As tvm-ffi and NumPy write it, for example `float32`."""
    code: int
    """DLPack type code: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool, 7 to 17 floats of 8, 6 and 4 bits."""
    bits: int
    """DLPack bit width."""

    @property
    def itemsize(self) -> int:
        """Bytes of one element: what is narrower than a byte takes one, its lowest bits."""
        return (self.bits + 7) // 8

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.code not in (0, 1, 6)

    @property
    def is_narrow(self) -> bool:
        """Whether NumPy exchanges such elements under the name of bytes only: small floats, integers below 8 bits."""
        return self.bits < 8 or self.code > 6


ELEMENT_TYPES: dict[str, ElementType] = {
    row[0]: ElementType(*row)
    for row in (
        ("f16", "float16", 2, 16),
        ("bf16", "bfloat16", 4, 16),
        ("f32", "float32", 2, 32),
        ("f64", "float64", 2, 64),
        ("i8", "int8", 0, 8),
        ("i16", "int16", 0, 16),
        ("i32", "int32", 0, 32),
        ("i64", "int64", 0, 64),
        ("ui8", "uint8", 1, 8),
        ("ui16", "uint16", 1, 16),
        ("ui32", "uint32", 1, 32),
        ("ui64", "uint64", 1, 64),
        ("i1", "bool", 6, 8),
        ("f8E3M4", "float8_e3m4", 7, 8),
        ("f8E4M3", "float8_e4m3", 8, 8),
        ("f8E4M3B11FNUZ", "float8_e4m3b11fnuz", 9, 8),
        ("f8E4M3FN", "float8_e4m3fn", 10, 8),
        ("f8E4M3FNUZ", "float8_e4m3fnuz", 11, 8),
        ("f8E5M2", "float8_e5m2", 12, 8),
        ("f8E5M2FNUZ", "float8_e5m2fnuz", 13, 8),
        ("f8E8M0FNU", "float8_e8m0fnu", 14, 8),
        ("f6E2M3FN", "float6_e2m3fn", 15, 6),
        ("f6E3M2FN", "float6_e3m2fn", 16, 6),
        ("f4E2M1FN", "float4_e2m1fn", 17, 4),
        ("i4", "int4", 0, 4),
        ("i2", "int2", 0, 2),
        ("ui4", "uint4", 1, 4),
        ("ui2", "uint2", 1, 2),
    )
}
"""Every element type by its IR name."""

BY_FFI_NAME: dict[str, ElementType] = {row.ffi_name: row for row in ELEMENT_TYPES.values()}
"""Every element type by its tvm-ffi name."""

BY_DLPACK: dict[tuple[int, int], ElementType] = {(row.code, row.bits): row for row in ELEMENT_TYPES.values()}
"""Every element type by DLPack type code and bit width (one lane)."""


def element_type(name: str) -> ElementType:
    """The element type called `name` in the IR or in tvm-ffi; `ValueError` if there is none."""
    found = ELEMENT_TYPES.get(name) or BY_FFI_NAME.get(name)
    if found is None:
        raise ValueError(f"unknown element type '{name}', expected one of {', '.join(ELEMENT_TYPES)}")
    return found
