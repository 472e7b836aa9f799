"""What is known about values at run time: the key under which compiled code is kept, and their types."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias, cast

import tvm_ffi

from relax_dialect.struct_info.base import Shape, StructInfo
from relax_dialect.struct_info.types import ObjectType, PrimType, ShapeType, TensorType, TupleType
from tir_dialect.dims import DimLike
from tir_dialect.dtypes import parse_dtype
from vm_dialect.dtypes import element_type

Key: TypeAlias = Hashable


def kind_key(value: Any) -> Key:
    """The kind of a value, with rank and dtype of tensors; equal ones have the same symbolic types."""
    if isinstance(value, tvm_ffi.Tensor):
        return (len(value.shape), value.dtype)
    if isinstance(value, tvm_ffi.Shape):
        return len(value)
    if isinstance(value, tvm_ffi.Array):
        return tuple(map(kind_key, cast("tvm_ffi.Array[Any]", value)))
    return None


def value_key(value: Any) -> Key:
    """What inference may look at of a value: also dimensions."""
    if isinstance(value, tvm_ffi.Tensor):
        return (tuple(value.shape), value.dtype)
    if isinstance(value, tvm_ffi.Shape):
        return tuple(cast("Sequence[int]", value))
    if isinstance(value, tvm_ffi.Array):
        return tuple(map(value_key, cast("tvm_ffi.Array[Any]", value)))
    return value if isinstance(value, int) else None


class TypesOfValues:
    """Types of values whose dimensions are new symbols, or the numbers that they are."""

    def __init__(self, taken: set[str], *, static: bool):
        """`taken` are symbols that may not be used; with `static`, dimensions are numbers."""
        self._taken = taken
        self._static = static
        self.symbols: list[str] = []
        """Those that have been made."""

    def of(self, value: Any, declared: StructInfo) -> StructInfo:
        """The type of a value of which `declared` was known before."""
        if isinstance(value, tvm_ffi.Tensor) and isinstance(declared, TensorType | ObjectType):
            dims = declared.dims if isinstance(declared, TensorType) else None
            device = declared.device if isinstance(declared, TensorType) else None
            return TensorType(self._shape(value.shape, dims), _dtype(value), device)
        if isinstance(value, tvm_ffi.Shape) and isinstance(declared, ShapeType | ObjectType):
            return ShapeType(self._shape(value, declared.dims if isinstance(declared, ShapeType) else None))
        if isinstance(value, tvm_ffi.Array) and isinstance(declared, TupleType):
            fields = cast("tvm_ffi.Array[Any]", value)
            return TupleType(self.of(*pair) for pair in zip(fields, declared.fields, strict=True))
        return declared

    def _shape(self, numbers: Sequence[int], declared: Shape) -> list[DimLike]:
        known = [None] * len(numbers) if declared is None else declared
        return [self._dim(number) if dim is None else dim for number, dim in zip(numbers, known, strict=True)]

    def _dim(self, number: int) -> DimLike:
        return int(number) if self._static else self._fresh()

    def _fresh(self) -> str:
        number = len(self.symbols)
        while (name := f"s{number}") in self._taken:
            number += 1
        self._taken.add(name)
        self.symbols.append(name)
        return name


def bindings(value: Any, info: StructInfo) -> dict[str, int]:
    """The values of the symbols that stand alone in the type of a value."""
    found: dict[str, int] = {}
    if isinstance(info, TensorType | ShapeType):
        numbers = value.shape if isinstance(value, tvm_ffi.Tensor) else value
        for dim, number in zip(info.dims or (), numbers, strict=False):
            if dim is not None and dim.as_symbol is not None:
                found[dim.as_symbol] = int(number)
    elif isinstance(info, PrimType) and info.symbol is not None:
        found[info.symbol] = int(value)
    elif isinstance(info, TupleType):
        for field, part in zip(value, info.fields, strict=True):
            found |= bindings(field, part)
    return found


def _dtype(value: tvm_ffi.Tensor) -> Any:
    return parse_dtype(element_type(str(value.dtype)).name)
