"""Constants, scalar parameters and explicit conversions between dtypes."""

from __future__ import annotations

from typing import TypeAlias
from typing import cast as cast_to

from xdsl.dialects.builtin import IndexType, f32

from tir_dialect import dtypes
from tir_dialect.dtypes import ElementType
from tir_dialect.te import nodes
from tir_dialect.te.coerce import adopt, as_expr, is_bool, is_float
from tir_dialect.te.expr import INDEX, DType, Expr, Operand, Scalar
from tir_dialect.te.operators import compare

DTypeLike: TypeAlias = "str | ElementType | IndexType"
"""A dtype by name (`"f32"`, `"float32"`, `"index"`) or as a type."""


def to_dtype(dtype: DTypeLike) -> DType:
    """The dtype with a name; ValueError for one that buffers cannot have."""
    if isinstance(dtype, IndexType) or dtype == "index":
        return INDEX
    return dtypes.parse_dtype(dtype) if isinstance(dtype, str) else dtypes.lookup(dtype).type


def const(value: Scalar, dtype: DTypeLike) -> Expr:
    """The number `value` of dtype `dtype`; a float without a fraction may be an integer. TypeError for text."""
    kind = to_dtype(dtype)
    if isinstance(value, str | bytes):
        raise TypeError(f"const: expected a number, got {value!r}")
    is_whole = isinstance(value, float) and value.is_integer() and not is_float(kind)
    return adopt(int(value) if is_whole else value, kind)


def cast(operand: Operand, dtype: DTypeLike) -> Expr:
    """`operand` converted to `dtype`.

    A float becomes an integer by dropping its fraction; outside of the range it is the end of the range, and NaN is 0.
    An integer that is too wide loses its upper bits, and anything is a true `i1` if it is not 0.
    """
    to = to_dtype(dtype)
    a = as_expr("cast", operand)
    if a.dtype == to:
        return a
    if not is_bool(to):
        return nodes.convert(a, to)
    # Not all small floats have a zero.
    small = not isinstance(a.dtype, IndexType) and dtypes.is_small_float(a.dtype)
    return compare("ne", nodes.convert(a, f32) if small else a, 0)


def reinterpret(operand: Operand, dtype: DTypeLike) -> Expr:
    """The bits of `operand` read as `dtype`, which must have the same width."""
    to = to_dtype(dtype)
    a = as_expr("reinterpret", operand)
    widths = [getattr(kind, "bitwidth", None) for kind in (a.dtype, to)]
    if None in widths or widths[0] != widths[1]:
        raise TypeError(f"te.reinterpret: expected dtypes of one width, got {a.dtype} and {to}")
    return nodes.apply("reinterpret", to, a)


def call_extern(dtype: DTypeLike, symbol: str, *args: Expr) -> Expr:
    """The result of the C function `symbol` of scalars, which must be pure: it may be called any number of times."""
    return nodes.call_extern(symbol, to_dtype(dtype), args)


def scalar(name: str, dtype: DTypeLike) -> Expr:
    """A scalar parameter of the function."""
    if not isinstance(cast_to("object", name), str):
        raise TypeError(f"te: expected the name of a scalar, got {name!r}")
    kind = to_dtype(dtype)
    if isinstance(kind, IndexType):
        raise TypeError(f'te: the scalar "{name}" cannot be an index, use te.var for a size or a dtype such as "i64"')
    return nodes.Param(name, kind)
