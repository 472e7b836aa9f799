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
    """DLPack type code: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool."""
    bits: int
    """DLPack bit width."""

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.bits // 8


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
