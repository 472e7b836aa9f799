"""How values are represented while a program runs.

| type | value |
|---|---|
| `index` | `int`; wrapped to 64 bits where it is computed from data, not where sizes tell it |
| `iN` | `int`, signed, wrapped to N bits; `i1` is 0 or 1, or a `bool` |
| floats | NumPy scalar (of `ml_dtypes` for `bf16` and small floats) |
| `vector<LxT>` | NumPy array of L elements (`int64` for `index`) |
| buffer | NumPy array of the logical shape; unsigned elements are seen as signed |
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType, VectorType
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from tir_dialect import dtypes
from tir_dialect.interpreter.errors import UnsupportedOpError


def element_of(type: Attribute) -> Attribute:
    """The element type of a vector; a scalar type itself."""
    return type.element_type if isa(type, VectorType) else type


def bits_of(type: Attribute) -> int | None:
    """The width of an integer type or of a vector of it; `None` for `index`."""
    element = element_of(type)
    if isa(element, IntegerType):
        return element.width.data
    if isinstance(element, IndexType):
        return None
    raise UnsupportedOpError(f"expected an integer type, got {type}")


def numpy_type(type: Attribute) -> np.dtype[Any]:
    """The NumPy dtype of the elements of a scalar or vector type."""
    element = element_of(type)
    return np.dtype(np.int64) if isinstance(element, IndexType) else dtypes.numpy_dtype(element)


def holds_integers(dtype: np.dtype[Any]) -> bool:
    """Whether values of a NumPy dtype are kept as `int`: of integers with a sign, also of `ml_dtypes`, and of bool."""
    return dtype.kind in "ib" or dtype.name in ("int4", "int2")


def buffer_view(array: np.ndarray, dtype: Attribute) -> np.ndarray:
    """The same memory, with unsigned elements seen as signed: what loads and stores work on."""
    return array.view(numpy_type(dtypes.scalar_type(dtype))) if dtypes.is_unsigned(dtype) else array


def outside_view(array: np.ndarray, dtype: Attribute) -> np.ndarray:
    """The same memory in the dtype of the buffer: what functions outside the program get."""
    return array.view(dtypes.numpy_dtype(dtype)) if dtypes.is_unsigned(dtype) else array


def wrap(value: int, bits: int | None) -> int:
    """`value` as a signed integer of `bits` bits; 0 or 1 for one bit."""
    if bits is None:
        return value
    if bits == 1:
        return value & 1
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def scalar_value(value: float | np.number[Any] | np.bool_, type: Attribute) -> Any:
    """A Python or NumPy number as a value of a scalar type."""
    if isinstance(type, IndexType) or isa(type, IntegerType):
        return wrap(int(value), bits_of(type))
    return numpy_type(type).type(value)
