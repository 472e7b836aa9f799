"""What operators of Python and names of `T` compute of scalars."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial

from relax_dialect.frontend.tvmscript.prim_func.promotion import converted, promoted
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import FUNCTIONS
from tir_dialect.dims import Dim
from tir_dialect.te.expr import DType
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "Add",
    ast.Sub: "Sub",
    ast.Mult: "Mul",
    ast.FloorDiv: "FloorDiv",
    ast.Mod: "FloorMod",
    ast.Pow: "pow",
    ast.LShift: "shift_left",
    ast.RShift: "shift_right",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
}
"""The functions that operators of Python stand for."""

_DIVISIONS = "Div Mod FloorDiv FloorMod floordiv floormod indexdiv indexmod ceildiv truncdiv truncmod"
DIVISIONS = frozenset(_DIVISIONS.split(" "))
"""Functions of integers that have no result for a second operand 0."""

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "EQ",
    ast.NotEq: "NE",
    ast.Lt: "LT",
    ast.LtE: "LE",
    ast.Gt: "GT",
    ast.GtE: "GE",
}
"""The functions that comparisons of Python stand for."""


def scalar_function(name: str) -> Callable[..., Scalar]:
    """The function of `T` on scalars, or what an operator means."""
    if name.startswith("cast:"):
        return partial(_cast, to_dtype(name.removeprefix("cast:")))
    return _OPERATOR_FUNCTIONS.get(name) or FUNCTIONS[name]


def called(name: str, operands: Sequence[Scalar | Dim | float]) -> Scalar:
    """The function of scalars; `TypeError` if it takes another number of them."""
    try:
        return scalar_function(name)(*operands)
    except TypeError as error:
        if "positional argument" in str(error):
            raise TypeError(f"T.{name} expected another number of operands, got {len(operands)}") from None
        raise


def _cast(dtype: DType, value: Scalar | Dim | float) -> Scalar:
    return converted(value, dtype)


def _divide(*values: Scalar | Dim | float) -> Scalar:
    one, other = promoted(*values)
    return one / other


def _negative(value: Scalar | Dim | float) -> Scalar:
    return -promoted(value)[0]


_OPERATOR_FUNCTIONS: dict[str, Callable[..., Scalar]] = {
    "Divide": _divide,
    "Negative": _negative,
}
