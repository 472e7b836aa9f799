"""Operands of one dtype, as TVM brings them there: the float wins, then the wider integer; indices adapt."""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat, IntegerType

from tir_dialect import te
from tir_dialect.dims import Dim
from tir_dialect.te import nodes
from tir_dialect.te.coerce import adopt, is_bool, is_float, is_index, is_unsigned
from tir_dialect.te.expr import INDEX, DType
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype


def to_scalar(value: Scalar | Dim | float) -> Scalar | float:
    """Dimensions as indices; numbers stay numbers, which have no dtype yet."""
    return nodes.size(value) if isinstance(value, Dim) else value


def common_dtype(one: DType, other: DType) -> DType:
    """The dtype of an operation on both; `TypeError` if there is none."""
    if one == other:
        return one
    if is_float(one) or is_float(other):
        return _wider_float(one, other)
    if is_index(one):
        return other if not is_bool(other) else one
    if is_index(other):
        return one if not is_bool(one) else other
    if is_bool(one) or is_bool(other):
        return other if is_bool(one) else one
    widths = [kind.width.data for kind in (one, other) if isinstance(kind, IntegerType)]
    if is_unsigned(one) != is_unsigned(other) and widths[0] == widths[1]:
        raise TypeError(f"operands have dtypes {one} and {other}; convert one side with T.Cast")
    return one if widths[0] >= widths[1] else other


def _wider_float(one: DType, other: DType) -> DType:
    if not isinstance(one, AnyFloat):
        return other
    if not isinstance(other, AnyFloat) or one.bitwidth > other.bitwidth:
        return one
    if one.bitwidth == other.bitwidth:
        raise TypeError(f"operands have dtypes {one} and {other}; convert one side with T.Cast")
    return other


def promoted(*values: Scalar | Dim | float) -> tuple[Scalar, ...]:
    """The operands, all of one dtype; numbers take that of the others, or `index` and `f32` if there are no others."""
    scalars = [to_scalar(value) for value in values]
    dtype: DType | None = None
    for scalar in scalars:
        if isinstance(scalar, Scalar):
            dtype = scalar.dtype if dtype is None else common_dtype(dtype, scalar.dtype)
    if dtype is None:
        dtype = to_dtype("f32") if any(isinstance(value, float) for value in scalars) else INDEX
    if any(isinstance(value, float) for value in scalars) and not is_float(dtype):
        dtype = to_dtype("f32")
    return tuple(converted(scalar, dtype) for scalar in scalars)


def converted(value: Scalar | Dim | float, dtype: DType) -> Scalar:
    """A scalar or number as a scalar of `dtype`."""
    scalar = to_scalar(value)
    if not isinstance(scalar, Scalar):
        if isinstance(scalar, float) and not is_float(dtype):
            return te.cast(adopt(scalar, to_dtype("f64")), dtype)
        return adopt(bool(scalar), dtype) if is_bool(dtype) else adopt(scalar, dtype)
    return scalar if scalar.dtype == dtype else te.cast(scalar, dtype)
