"""Which op computes a scalar function, by the kind of dtype it is applied to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.ir import Operation

from tir_dialect.te.coerce import is_bool, is_float, is_unsigned
from tir_dialect.te.expr import DType

OpTable: TypeAlias = "Mapping[str, Callable[..., Operation]]"

_FLOAT: OpTable = {
    "add": arith.AddfOp,
    "subtract": arith.SubfOp,
    "multiply": arith.MulfOp,
    "divide": arith.DivfOp,
    "negative": arith.NegfOp,
    "minimum": arith.MinimumfOp,
    "maximum": arith.MaximumfOp,
    "fmin": arith.MinnumfOp,
    "fmax": arith.MaxnumfOp,
    "absolute": math.AbsFOp,
    "power": math.PowFOp,
    "floor": math.FloorOp,
    "ceil": math.CeilOp,
    "trunc": math.TruncOp,
    "round": math.RoundEvenOp,
    "round_away": math.RoundOp,
    "exp": math.ExpOp,
    "exp2": math.Exp2Op,
    "expm1": math.ExpM1Op,
    "log": math.LogOp,
    "log2": math.Log2Op,
    "log10": math.Log10Op,
    "log1p": math.Log1pOp,
    "sqrt": math.SqrtOp,
    "rsqrt": math.RsqrtOp,
    "cbrt": math.CbrtOp,
    "sin": math.SinOp,
    "cos": math.CosOp,
    "tan": math.TanOp,
    "asin": math.AsinOp,
    "acos": math.AcosOp,
    "atan": math.AtanOp,
    "atan2": math.Atan2Op,
    "sinh": math.SinhOp,
    "cosh": math.CoshOp,
    "tanh": math.TanhOp,
    "asinh": math.AsinhOp,
    "acosh": math.AcoshOp,
    "atanh": math.AtanhOp,
    "erf": math.ErfOp,
    "fma": math.FmaOp,
    "copysign": math.CopySignOp,
    "select": arith.SelectOp,
}

_INTEGER: OpTable = {
    "add": arith.AddiOp,
    "subtract": arith.SubiOp,
    "multiply": arith.MuliOp,
    "bitwise_and": arith.AndIOp,
    "bitwise_or": arith.OrIOp,
    "bitwise_xor": arith.XOrIOp,
    "left_shift": arith.ShLIOp,
    "popcount": math.CtPopOp,
    "count_leading_zeros": math.CountLeadingZerosOp,
    "select": arith.SelectOp,
}

_SIGNED: OpTable = {
    **_INTEGER,
    "floordiv": arith.FloorDivSIOp,
    "truncdiv": arith.DivSIOp,
    "truncmod": arith.RemSIOp,
    "minimum": arith.MinSIOp,
    "maximum": arith.MaxSIOp,
    "absolute": math.AbsIOp,
    "power": math.IPowIOp,
    "right_shift": arith.ShRSIOp,
}

_UNSIGNED: OpTable = {
    **_INTEGER,
    "floordiv": arith.DivUIOp,
    "floormod": arith.RemUIOp,
    "truncdiv": arith.DivUIOp,
    "truncmod": arith.RemUIOp,
    "minimum": arith.MinUIOp,
    "maximum": arith.MaxUIOp,
    "right_shift": arith.ShRUIOp,
}

_FLOAT_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
PREDICATES = frozenset(_FLOAT_PREDICATES)
"""The functions that compare."""


def op_table(dtype: DType) -> OpTable:
    """The functions of operands of `dtype` that are one op."""
    if is_float(dtype):
        return _FLOAT
    return _UNSIGNED if is_bool(dtype) or is_unsigned(dtype) else _SIGNED


def integer_predicate(predicate: str, dtype: DType) -> str:
    """The predicate of `arith.cmpi` for integers, indices and truth values."""
    if predicate in ("eq", "ne"):
        return predicate
    return ("u" if is_bool(dtype) or is_unsigned(dtype) else "s") + predicate


def float_predicate(predicate: str) -> str:
    """The predicate of `arith.cmpf`: a comparison with NaN is false, but for `ne`."""
    return _FLOAT_PREDICATES[predicate]
