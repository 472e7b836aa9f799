"""Types as callers of the builder write them, and the error where a call does not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from relax_dialect.struct_info.base import ShapeLike, StructInfo
from relax_dialect.struct_info.symbols import iter_symbols
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import DimLike
from tir_dialect.dtypes import from_numpy, parse_dtype
from tir_dialect.symbols import Interval, SymbolAttr

if TYPE_CHECKING:
    import numpy as np


class BuilderError(ValueError):
    """A call of the builder in the wrong position: outside of a function, out of scope, without an end."""


DTypeLike: TypeAlias = "str | Attribute | np.dtype[Any] | type"
"""An element type, its name, `"f32"` or `"float32"`, or what NumPy takes for it, `np.float32`."""

InfoLike: TypeAlias = StructInfo | tuple[DimLike | None, ...]
"""A relax type, or a tuple of dimensions, which stands for a tensor of f32: `("n", 4)`."""

SymbolBounds: TypeAlias = Mapping[str, Interval]
"""Least and greatest value of symbols, both inclusive; `None` is unbounded."""


def as_dtype(dtype: DTypeLike) -> Attribute:
    """The element type; `ValueError` for a name that is none, `TypeError` for what is no dtype to NumPy."""
    if isinstance(dtype, Attribute):
        return dtype
    if isinstance(dtype, str):
        return parse_dtype(dtype)
    import numpy as np

    return from_numpy(np.dtype(dtype))


def tensor(shape: ShapeLike = None, dtype: DTypeLike | None = "f32", device: str | None = None) -> TensorType:
    """The type of a tensor: `tensor(("n", 4), "f16")`; `None` is what is not known, of a shape or a dimension."""
    return TensorType(shape, None if dtype is None else as_dtype(dtype), device)


def as_struct_info(info: InfoLike) -> StructInfo:
    """The relax type that `info` stands for."""
    return info if isinstance(info, StructInfo) else TensorType(info, f32)


def as_result_types(info: InfoLike | list[InfoLike]) -> tuple[list[StructInfo], bool]:
    """The types of one result or, for a list, of several; and whether it was a list."""
    if isinstance(info, list):
        return [as_struct_info(each) for each in info], True
    return [as_struct_info(info)], False


def new_symbols(
    types: Iterable[StructInfo], scope: Iterable[str], bounds: SymbolBounds | None = None
) -> tuple[SymbolAttr, ...]:
    """The symbols of the types that are not in scope, in order of occurrence, with their bounds."""
    known = set(scope)
    names = dict.fromkeys(name for info in types for name in iter_symbols(info) if name not in known)
    return tuple(SymbolAttr(name, *(bounds or {}).get(name, (0, None))) for name in names)
