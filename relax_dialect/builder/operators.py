"""Python's operators on values: tensors by operators of the dialect, prim values by arithmetic on dimensions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.ir import Attribute, Operation, SSAValue

from relax_dialect.builder.convert import as_tensor
from relax_dialect.builder.emitter import Emitter
from relax_dialect.builder.errors import BuilderError
from relax_dialect.builder.expr import Expr, Operand
from relax_dialect.builder.operator_functions import operator_classes
from relax_dialect.builder.types import DTypeLike, as_dtype
from relax_dialect.ops.calls import CallClosureOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.values import PrimOp
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.types import PrimType, TensorType
from tir_dialect.dims import Dim, constant, floordiv, mod

_DIM_OPERATORS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "floor_divide": floordiv,
    "floor_mod": mod,
}


def binary(name: str, left: Any, right: Any) -> Expr:
    """`relax.<name>` of two operands, at least one of them an expression."""
    builder = next(side.builder for side in (left, right) if isinstance(side, Expr))
    if _is_prim(left) or _is_prim(right):
        return _prim_arithmetic(builder, name, left, right)
    dtype = _dtype(left) or _dtype(right)
    return _apply(builder, name, as_tensor(builder, left, dtype), as_tensor(builder, right, dtype))


def unary(name: str, operand: Expr) -> Expr:
    """`relax.<name>` of a tensor; of a prim value the negation."""
    if _is_prim(operand) and name == "negative":
        return _prim_arithmetic(operand.builder, "subtract", 0, operand)
    return _apply(operand.builder, name, operand.value)


def astype(operand: Expr, dtype: DTypeLike) -> Expr:
    """Every element converted to a dtype."""
    return operand.builder.expr(operand.builder.insert(AstypeOp(operand.value, as_dtype(dtype))).result)


def call_value(function: Expr, arguments: Sequence[Operand]) -> Expr:
    """The result of calling a function value."""
    if not isinstance(function.type, FuncType):
        raise TypeError(f"expected a function to call, got {function.type}")
    builder = function.builder
    values = [as_tensor(builder, argument, None) for argument in arguments]
    return builder.expr(builder.insert(CallClosureOp(function.value, values)).result)


def _apply(builder: Emitter, name: str, *operands: SSAValue) -> Expr:
    return builder.results(builder.insert(operator_classes()[f"relax.{name}"](*operands)))[0]


def _prim_arithmetic(builder: Emitter, name: str, left: Operand, right: Operand) -> Expr:
    """Arithmetic on values that types show, which a type then shows again."""
    compute = _DIM_OPERATORS.get(name)
    if compute is None:
        raise TypeError(f"prim values have no operator {name}: make tensors of them, with op.full")
    return builder.expr(builder.insert(PrimOp(compute(_dim(left), _dim(right)))).result)


def _is_prim(operand: object) -> bool:
    return isinstance(_type(operand), PrimType)


def _dim(operand: object) -> Dim:
    if isinstance(operand, Dim):
        return operand
    if isinstance(operand, int) and not isinstance(operand, bool):
        return constant(operand)
    info = _type(operand)
    if not isinstance(info, PrimType) or info.value is None:
        got = f"the number {operand}" if info is None else str(info)
        raise BuilderError(f"arithmetic on prim values expected integers whose value is known, got {got}")
    return info.value


def _dtype(operand: object) -> Attribute | None:
    """The dtype of a side that is a tensor."""
    info = _type(operand)
    return info.dtype if isinstance(info, TensorType) else None


def _type(operand: object) -> Attribute | None:
    """The type of a side that is a value."""
    if isinstance(operand, Expr):
        return operand.value.type
    if isinstance(operand, Operation):
        return operand.results[0].type if len(operand.results) == 1 else None
    return cast("SSAValue", operand).type if isinstance(operand, SSAValue) else None
