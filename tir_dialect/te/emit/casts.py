"""Conversions between dtypes as ops of arith. Scalars of integer dtypes are signless; dtypes say how to read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, f32, i64
from xdsl.ir import Operation, SSAValue

from tir_dialect.dtypes import scalar_type
from tir_dialect.te.coerce import is_bool, is_unsigned
from tir_dialect.te.expr import DType

Insert: TypeAlias = "Callable[[Operation], SSAValue]"
"""Puts an op at the place of insertion and returns its result."""


def value_type(dtype: DType) -> AnyFloat | IntegerType | IndexType:
    """The type of a scalar of `dtype`: `ui8` is `i8`."""
    return dtype if isinstance(dtype, IndexType) else scalar_type(dtype)


def emit_cast(insert: Insert, value: SSAValue, source: DType, target: DType) -> SSAValue:
    """`value`, read as `source`, converted to `target`, which is not `i1` unless `source` is."""
    if isinstance(source, AnyFloat):
        if isinstance(target, AnyFloat):
            return _float_to_float(insert, value, source, target)
        return _float_to_integer(insert, value, target)
    if isinstance(target, AnyFloat):
        return _integer_to_float(insert, value, source, target)
    return _integer_to_integer(insert, value, source, target)


def _float_to_float(insert: Insert, value: SSAValue, source: AnyFloat, target: AnyFloat) -> SSAValue:
    if source == target:
        return value
    if max(source.bitwidth, target.bitwidth) < f32.bitwidth:
        # These have no common order: all are exact in f32
        value, source = insert(arith.ExtFOp(value, f32)), f32
    op = arith.ExtFOp if source.bitwidth < target.bitwidth else arith.TruncFOp
    return insert(op(value, target))


def _float_to_integer(insert: Insert, value: SSAValue, target: DType) -> SSAValue:
    if isinstance(target, IndexType):
        return insert(arith.IndexCastOp(insert(arith.FPToSIOp(value, i64)), target))
    op = arith.FPToUIOp if is_unsigned(target) else arith.FPToSIOp
    return insert(op(value, _integer(target)))


def _integer_to_float(insert: Insert, value: SSAValue, source: DType, target: AnyFloat) -> SSAValue:
    if isinstance(source, IndexType):
        value = insert(arith.IndexCastOp(value, i64))
    op = arith.UIToFPOp if is_bool(source) or is_unsigned(source) else arith.SIToFPOp
    return insert(op(value, target))


def _integer_to_integer(insert: Insert, value: SSAValue, source: DType, target: DType) -> SSAValue:
    if isinstance(source, IndexType):
        return value if isinstance(target, IndexType) else insert(arith.IndexCastOp(value, _integer(target)))
    if isinstance(target, IndexType):
        # `index_cast` extends the sign
        unsigned = is_bool(source) or is_unsigned(source)
        return insert(arith.IndexCastOp(_resize(insert, value, source, i64) if unsigned else value, target))
    return _resize(insert, value, source, _integer(target))


def _resize(insert: Insert, value: SSAValue, source: DType, target: IntegerType) -> SSAValue:
    width = _integer(source).width.data
    if width == target.width.data:
        return value
    if width > target.width.data:
        return insert(arith.TruncIOp(value, target))
    unsigned = is_bool(source) or is_unsigned(source)
    return insert(arith.ExtUIOp(value, target) if unsigned else arith.ExtSIOp(value, target))


def _integer(dtype: DType) -> IntegerType:
    kind = value_type(dtype)
    if not isinstance(kind, IntegerType):
        raise TypeError(f"te: expected an integer dtype, got {dtype}")
    return kind
