"""Conversion of operands to expressions of one dtype: Python numbers adopt the dtype of the other operands.

There is no implicit promotion: mixing two dtypes is an error that names both; use `te.cast`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, Signedness, f32, i1, i32

from tir_dialect import dtypes
from tir_dialect.dims import Dim
from tir_dialect.dims import constant as dim_constant
from tir_dialect.te import nodes
from tir_dialect.te.expr import INDEX, DType, Expr, Operand, Scalar


def is_bool(dtype: DType) -> bool:
    """Whether `dtype` is `i1`."""
    return isinstance(dtype, IntegerType) and dtype.width.data == 1


def is_index(dtype: DType) -> bool:
    """Whether `dtype` is `index`."""
    return isinstance(dtype, IndexType)


def is_integer(dtype: DType) -> bool:
    """Whether `dtype` is an integer of a buffer, not bool."""
    return isinstance(dtype, IntegerType) and dtype.width.data > 1


def is_unsigned(dtype: DType) -> bool:
    """Whether `dtype` is read as unsigned."""
    return isinstance(dtype, IntegerType) and dtype.signedness.data == Signedness.UNSIGNED


def is_float(dtype: DType) -> bool:
    """Whether `dtype` is a floating-point type."""
    return not isinstance(dtype, IntegerType | IndexType)


def integer_range(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest value of an integer dtype, both included; `index` counts as `i64`."""
    bits = dtype.width.data if isinstance(dtype, IntegerType) else 64
    return (0, 2**bits - 1) if is_unsigned(dtype) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def adopt(value: Scalar | Dim, dtype: DType) -> Expr:
    """A Python number or a dimension as a constant of `dtype`.

    Raises TypeError for a number of another kind than `dtype`, and ValueError for one out of its range.
    """
    if isinstance(value, Dim):
        if is_index(dtype):
            return nodes.size(value)
        if (known := value.constant_value) is not None:
            return adopt(known, dtype)
        raise TypeError(f"te: cannot use the dimension {value} (index) with dtype {dtype}, cast one side with te.cast")
    if isinstance(dtype, AnyFloat):
        return _adopt_float(float(value), dtype)
    if is_bool(dtype):
        if value not in (0, 1):
            raise TypeError(f"te: expected a truth value for dtype i1, got {value}")
        return nodes.constant(bool(value), dtype)
    if isinstance(value, float):
        raise TypeError(f"te: cannot use the float {value} with dtype {dtype}, cast one side with te.cast")
    low, high = integer_range(dtype)
    if not low <= value <= high:
        raise ValueError(f"te: {int(value)} does not fit dtype {dtype}, which holds {low} to {high}")
    return nodes.size(dim_constant(int(value))) if is_index(dtype) else nodes.constant(int(value), dtype)


def _adopt_float(value: float, dtype: AnyFloat) -> Expr:
    try:
        rounded = dtypes.rounded(value, dtype)
    except OverflowError:
        rounded = math.inf
    if math.isfinite(value) and not math.isfinite(rounded):
        raise ValueError(f"te: {value} does not fit dtype {dtype}")
    return nodes.constant(rounded, dtype)


def _leaf(value: object) -> Expr | Scalar | Dim:
    if isinstance(value, nodes.Slice):
        rank, given = value.tensor.ndim, len(value.indices)
        raise IndexError(f'te: tensor "{value.tensor.name}" has rank {rank}, got {given} indices')
    if isinstance(value, Expr | Dim):
        return value
    # NumPy's float64 is a subclass of float, but has a dtype
    if isinstance(value, int | float) and not hasattr(value, "dtype"):
        return value
    return _numpy_scalar(value)


def _numpy_scalar(value: Any) -> Expr:
    # NumPy scalars keep their dtype; anything else is no operand.
    if not hasattr(value, "dtype") or getattr(value, "shape", None) != ():
        raise TypeError(f"te: expected an expression, a dimension or a number, got {type(value).__name__}")
    return adopt(value.item(), dtypes.from_numpy(value.dtype))


def number_dtype(value: object) -> DType | None:
    """The dtype that TVM gives a number of Python that stands alone: `i1`, `i32` or `f32`; None for anything else."""
    if hasattr(value, "dtype"):
        return None
    return next((dtype for kind, dtype in ((bool, i1), (int, i32), (float, f32)) if isinstance(value, kind)), None)


def unify(what: str, operands: Sequence[Operand]) -> tuple[Expr, ...]:
    """The operands of `what` as expressions of one dtype.

    A constant integer beside an index is an index.

    Raises TypeError if two dtypes differ, naming both, and if all operands are Python numbers.
    """
    leaves = [_leaf(operand) for operand in operands]
    if any(map(_is_index_value, leaves)):
        leaves = [_number(leaf) for leaf in leaves]
    dtype: DType | None = None
    for leaf in leaves:
        if not isinstance(leaf, Expr):
            continue
        if dtype is not None and leaf.dtype != dtype:
            raise TypeError(f"te.{what}: operands have dtypes {dtype} and {leaf.dtype}, cast one side with te.cast")
        dtype = leaf.dtype
    if dtype is None:
        if not any(isinstance(leaf, Dim) for leaf in leaves):
            raise TypeError(f"te.{what}: no operand has a dtype, write one number as te.const(value, dtype)")
        dtype = INDEX
    return tuple(leaf if isinstance(leaf, Expr) else adopt(leaf, dtype) for leaf in leaves)


def _is_index_value(leaf: Expr | Scalar | Dim) -> bool:
    return leaf.constant_value is None if isinstance(leaf, Dim) else isinstance(leaf, Expr) and is_index(leaf.dtype)


def _number(leaf: Expr | Scalar | Dim) -> Expr | Scalar | Dim:
    """The value of a constant integer, so that it can be one of another dtype; anything else as it is."""
    return int(leaf.value) if isinstance(leaf, nodes.Const) and is_integer(leaf.dtype) else leaf


def as_expr(what: str, value: Operand) -> Expr:
    """One operand of `what` as an expression; a bare number has no dtype and is a TypeError."""
    return unify(what, (value,))[0]


def as_index(what: str, value: Operand) -> Expr:
    """An index of `what`: an `index`, a dimension, an `int`, or a loaded integer, which is converted."""
    leaf = _leaf(value)
    if not isinstance(leaf, Expr):
        return adopt(leaf, INDEX)
    if is_index(leaf.dtype):
        return leaf
    if is_integer(leaf.dtype):
        return nodes.convert(leaf, INDEX)
    raise TypeError(f"{what}: an index must be an integer, got dtype {leaf.dtype}")


def as_condition(what: str, value: Operand) -> Expr:
    """A condition of `what`, which must be of dtype `i1`."""
    leaf = _leaf(value)
    condition = adopt(leaf, i1) if not isinstance(leaf, Expr) else leaf
    if not is_bool(condition.dtype):
        raise TypeError(f"te.{what}: a condition must have dtype i1, got {condition.dtype}")
    return condition
