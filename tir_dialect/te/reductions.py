"""Predefined reductions: sum, product, maximum, minimum, any and all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tir_dialect.te import operators
from tir_dialect.te.coerce import adopt, as_condition, as_expr, integer_range, is_bool, is_float, is_index
from tir_dialect.te.expr import DType, Expr, Operand
from tir_dialect.te.nodes import IterVar
from tir_dialect.te.operators import DTypeLike, cast, to_dtype
from tir_dialect.te.reducer import Axes, Reducer


def min_value(dtype: DTypeLike) -> Expr:
    """The smallest value of a dtype: the identity of a maximum. Minus infinity for floats, false for `i1`."""
    return _extreme(dtype, float("-inf"), 0)


def max_value(dtype: DTypeLike) -> Expr:
    """The largest value of a dtype: the identity of a minimum. Infinity for floats, true for `i1`."""
    return _extreme(dtype, float("inf"), 1)


def _extreme(dtype: DTypeLike, infinity: float, which: int) -> Expr:
    kind = to_dtype(dtype)
    if is_bool(kind):
        return adopt(bool(which), kind)
    return adopt(infinity if is_float(kind) else integer_range(kind)[which], kind)


def _always(value: int | bool) -> Callable[[DType], int | bool]:
    return lambda dtype: value


_SUM = Reducer("sum", operators.add, _always(0))
_PROD = Reducer("prod", operators.multiply, _always(1))
_MAX = Reducer("max", operators.maximum, min_value)
_MIN = Reducer("min", operators.minimum, max_value)
_ANY = Reducer("any", operators.bitwise_or, _always(False))
_ALL = Reducer("all", operators.bitwise_and, _always(True))


def sum(
    expr: Operand,
    axis: Axes,
    where: Operand | None = None,
    accumulate: DTypeLike | None = None,
    init: Operand | None = None,
) -> Expr:
    """The sum over `axis`, accumulated in and returned as dtype `accumulate`, starting from `init` or 0.

    For floats of at most 16 bits the dtype of the accumulator is mandatory: `"f32"`, or the value's own.
    """
    return _SUM(_accumulated("sum", expr, accumulate), axis, where, init)


def prod(
    expr: Operand,
    axis: Axes,
    where: Operand | None = None,
    accumulate: DTypeLike | None = None,
    init: Operand | None = None,
) -> Expr:
    """The product over `axis`, accumulated like a `sum`, starting from `init` or 1."""
    return _PROD(_accumulated("prod", expr, accumulate), axis, where, init)


def _accumulated(what: str, value: Operand, accumulate: DTypeLike | None) -> Expr:
    expr = as_expr(what, value)
    if accumulate is not None:
        return cast(expr, accumulate)
    if is_float(expr.dtype) and getattr(expr.dtype, "bitwidth", 32) < 32:
        raise TypeError(
            f'te.{what}: choose the accumulator of {expr.dtype} values: accumulate="f32" or accumulate="{expr.dtype}"'
        )
    if is_index(expr.dtype):
        raise TypeError(f'te.{what}: an index cannot be accumulated, choose accumulate="i64"')
    return expr


def max(expr: Operand, axis: Axes, where: Operand | None = None, init: Operand | None = None) -> Expr:
    """The maximum over `axis`, starting from `init` or `min_value`; NaN if any value is NaN."""
    return _MAX(expr, axis, where, init)


def min(expr: Operand, axis: Axes, where: Operand | None = None, init: Operand | None = None) -> Expr:
    """The minimum over `axis`, starting from `init` or `max_value`; NaN if any value is NaN."""
    return _MIN(expr, axis, where, init)


def any(*values: Operand | Axes, axis: Axes | None = None, where: Operand | None = None) -> Expr:
    """Whether any value over an axis is true, `te.any(x[i, r] > 0, r)`, or any of several conditions.

    False over an empty axis.
    """
    return _truth(_ANY, operators.logical_or, values, axis, where)


def all(*values: Operand | Axes, axis: Axes | None = None, where: Operand | None = None) -> Expr:
    """Whether all values over an axis are true, `te.all(x[i, r] > 0, r)`, or all of several conditions.

    True over an empty axis.
    """
    return _truth(_ALL, operators.logical_and, values, axis, where)


def _truth(
    reducer: Reducer,
    combine: Callable[..., Expr],
    values: tuple[Operand | Axes, ...],
    axis: Axes | None,
    where: Operand | None,
) -> Expr:
    last = values[-1] if values else None
    if axis is None and isinstance(last, IterVar | Sequence):
        axis, values = last, values[:-1]
    conditions = [as_condition(reducer.name, value) for value in values if not isinstance(value, Sequence)]
    if axis is None:
        return combine(*conditions)
    if len(conditions) != 1:
        raise TypeError(f"te.{reducer.name}: expected one value over an axis, got {len(conditions)}")
    return reducer(conditions[0], axis, where)
