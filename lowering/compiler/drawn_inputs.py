"""Inputs drawn from the signatures of functions: random arrays, numbers and shapes of given sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import tvm_ffi
from numpy.typing import NDArray
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType, TupleType
from tir_dialect.dims import Dim
from tir_dialect.dtypes import is_bool, is_float, is_integer, is_unsigned, numpy_dtype
from tir_dialect.symbols import SymbolAttr

Array: TypeAlias = NDArray[Any]

UNKNOWN_SHAPE = (2, 3)
"""The shape of a tensor whose rank is unknown; a dimension that is unknown is as long as the first symbol."""


class CannotDraw(Exception):
    """A type of which no value can be made."""


def symbol_values(symbols: Sequence[SymbolAttr], sizes: Sequence[int]) -> dict[str, int]:
    """The sizes of the symbols, within their bounds."""
    values: dict[str, int] = {}
    for index, bound in enumerate(symbols):
        lower, upper = bound.interval
        size = max(lower, sizes[index % len(sizes)])
        values[bound.symbol.data] = size if upper is None else min(size, upper)
    return values


@dataclass(frozen=True)
class Draw:
    """Draws values of types for given sizes."""

    random: np.random.Generator
    symbols: Mapping[str, int]
    other: int
    """The length of what has no known size."""
    integers: tuple[int, int] = (-1, 4)
    """Integers are at least the first, and below the second."""

    def value(self, info: Attribute) -> object:
        """A value of the type; arrays for tensors."""
        match info:
            case TensorType():
                dims = info.dims
                shape = UNKNOWN_SHAPE if dims is None else tuple(map(self._size, dims))
                return self._array(shape, info.dtype or f32)
            case ShapeType():
                return tvm_ffi.Shape(tuple(map(self._size, info.dims or (None, None))))
            case PrimType():
                return self._size(info.value) if info.value is not None else self._array((), info.dtype).item()
            case TupleType():
                return tuple(map(self.value, info.fields))
            case _:
                raise CannotDraw

    def _size(self, dim: Dim | None) -> int:
        try:
            size = self.other if dim is None else dim.evaluate(self.symbols)
        except (KeyError, ZeroDivisionError, ValueError) as error:
            raise CannotDraw from error
        if size < 0:
            raise CannotDraw
        return size

    def _array(self, shape: tuple[int, ...], dtype: Attribute) -> Array:
        if is_bool(dtype):
            drawn = self.random.integers(0, 2, shape)
        elif is_integer(dtype):
            low, high = self.integers
            drawn = self.random.integers(max(low, 0) if is_unsigned(dtype) else low, high, shape)
        elif is_float(dtype):
            drawn = self.random.standard_normal(shape)
        else:
            raise CannotDraw
        return np.asarray(drawn).astype(numpy_dtype(dtype))
