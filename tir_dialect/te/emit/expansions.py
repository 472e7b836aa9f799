"""Scalar functions that take more than one op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, f32, f64, i1, i64
from xdsl.ir import SSAValue

from tir_dialect.ops.remainder import FmodOp
from tir_dialect.te.coerce import is_float, is_index, is_unsigned
from tir_dialect.te.emit.casts import Insert, emit_cast, value_type
from tir_dialect.te.emit.tables import PREDICATES, float_predicate, integer_predicate
from tir_dialect.te.expr import DType

Expansion: TypeAlias = "Callable[[Insert, Sequence[SSAValue], DType], SSAValue]"
"""Emits a function of values that are read as the dtype."""


def expansion(function: str, dtype: DType) -> Expansion:
    """How to compute `function` of operands of `dtype`; KeyError if there is no such function."""
    if function in PREDICATES:
        return _compare(function)
    return (_FLOAT if is_float(dtype) else _INTEGER)[function]


def _compare(predicate: str) -> Expansion:
    def emit(insert: Insert, values: Sequence[SSAValue], dtype: DType) -> SSAValue:
        lhs, rhs = values
        if is_float(dtype):
            return insert(arith.CmpfOp(lhs, rhs, float_predicate(predicate)))
        return insert(arith.CmpiOp(lhs, rhs, integer_predicate(predicate, dtype)))

    return emit


def _float_floordiv(insert: Insert, values: Sequence[SSAValue], dtype: DType) -> SSAValue:
    return insert(math.FloorOp(insert(arith.DivfOp(values[0], values[1]))))


def _float_truncmod(insert: Insert, values: Sequence[SSAValue], dtype: DType) -> SSAValue:
    # It is exact, so computing it in f32 is exact for the narrower types, too
    if dtype == f64:
        return insert(FmodOp(*values))
    wide = [emit_cast(insert, value, dtype, f32) for value in values]
    return emit_cast(insert, insert(FmodOp(*wide)), f32, dtype)


def _float_floormod(insert: Insert, values: Sequence[SSAValue], dtype: DType) -> SSAValue:
    divisor = values[1]
    remainder = _float_truncmod(insert, values, dtype)
    zero = insert(arith.ConstantOp(FloatAttr(0.0, _float_type(dtype))))
    negative = [insert(arith.CmpfOp(value, zero, "olt")) for value in (remainder, divisor)]
    nonzero = insert(arith.CmpfOp(remainder, zero, "une"))
    wrong = insert(arith.AndIOp(nonzero, insert(arith.XOrIOp(negative[0], negative[1]))))
    shifted = insert(arith.AddfOp(remainder, divisor))
    # a zero remainder takes the sign of the divisor, as in Python and NumPy
    signed = insert(math.CopySignOp(remainder, divisor))
    return insert(arith.SelectOp(wrong, shifted, insert(arith.SelectOp(nonzero, remainder, signed))))


def _signed_floormod(insert: Insert, values: Sequence[SSAValue], dtype: DType) -> SSAValue:
    lhs, rhs = values
    if is_index(dtype):  # as analyses of indices know it
        quotient = insert(arith.FloorDivSIOp(lhs, rhs))
        return insert(arith.SubiOp(lhs, insert(arith.MuliOp(quotient, rhs))))
    remainder = insert(arith.RemSIOp(lhs, rhs))
    zero = emit_constant(insert, 0, dtype)
    nonzero = insert(arith.CmpiOp(remainder, zero, "ne"))
    differ = insert(arith.CmpiOp(insert(arith.XOrIOp(remainder, rhs)), zero, "slt"))
    wrong = insert(arith.AndIOp(nonzero, differ))
    return insert(arith.SelectOp(wrong, insert(arith.AddiOp(remainder, rhs)), remainder))


def _unsigned_power(insert: Insert, values: Sequence[SSAValue], dtype: DType) -> SSAValue:
    # math.ipowi reads its exponent as signed; 64 bits hold every narrower unsigned one
    base, exponent = (emit_cast(insert, value, dtype, i64) for value in values)
    if isinstance(dtype, IntegerType) and dtype.width.data == 64:
        exponent = _signed_exponent(insert, exponent)
    return emit_cast(insert, insert(math.IPowIOp(base, exponent)), i64, dtype)


def _signed_exponent(insert: Insert, exponent: SSAValue) -> SSAValue:
    """An exponent below 2**63 with the same powers modulo 2**64: those of odd numbers repeat after 2**62, and those of
    even numbers are 0 from the 64th on.
    """
    zero, rest, many = (insert(arith.ConstantOp(IntegerAttr(each, i64))) for each in (0, 2**62 - 1, 2**62))
    is_large = insert(arith.CmpiOp(exponent, zero, "slt"))
    return insert(arith.SelectOp(is_large, insert(arith.OrIOp(insert(arith.AndIOp(exponent, rest)), many)), exponent))


def _isnan(insert: Insert, values: Sequence[SSAValue], dtype: DType) -> SSAValue:
    return insert(arith.CmpfOp(values[0], values[0], "uno"))


def _magnitude(predicate: str) -> Expansion:
    def emit(insert: Insert, values: Sequence[SSAValue], dtype: DType) -> SSAValue:
        infinity = insert(arith.ConstantOp(FloatAttr(inf, _float_type(dtype))))
        return insert(arith.CmpfOp(insert(math.AbsFOp(values[0])), infinity, predicate))

    return emit


def _float_type(dtype: DType) -> AnyFloat:
    if not isinstance(dtype, AnyFloat):
        raise TypeError(f"te: expected a float dtype, got {dtype}")
    return dtype


_FLOAT: Mapping[str, Expansion] = {
    "floordiv": _float_floordiv,
    "floormod": _float_floormod,
    "truncmod": _float_truncmod,
    "isnan": _isnan,
    "isinf": _magnitude("oeq"),
    "isfinite": _magnitude("olt"),
}

_INTEGER: Mapping[str, Expansion] = {
    "floormod": _signed_floormod,
    "power": _unsigned_power,
}


def emit_reinterpret(insert: Insert, value: SSAValue, target: DType) -> SSAValue:
    """The bits of `value` as a value of `target`."""
    kind = value_type(target)
    return value if value.type == kind else insert(arith.BitcastOp(value, kind))


def emit_constant(insert: Insert, value: float | bool, dtype: DType) -> SSAValue:
    """The number `value` of `dtype`."""
    kind = value_type(dtype)
    if isinstance(kind, AnyFloat):
        return insert(arith.ConstantOp(FloatAttr(float(value), kind)))
    if kind == i1:
        return insert(arith.ConstantOp(IntegerAttr.from_bool(bool(value))))
    number = int(value)
    if is_unsigned(dtype) and isinstance(kind, IntegerType) and number >= 2 ** (kind.width.data - 1):
        number -= 2**kind.width.data
    return insert(arith.ConstantOp(IntegerAttr(number, kind)))
