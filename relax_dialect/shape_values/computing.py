"""Elements that are made, computed or combined."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Operation

from relax_dialect.ops import binary as b
from relax_dialect.ops import unary as u
from relax_dialect.ops.creation import ArangeOp, FilledLikeOp, FilledOp, FullLikeOp, FullOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.reduction import MaxOp, MinOp, ProdOp, ReductionOp, SumOp
from relax_dialect.ops.search import WhereOp
from relax_dialect.shape_values.arithmetic import Arithmetic, is_true
from relax_dialect.shape_values.elements import MOST_ELEMENTS, Elements, array_of, evaluates, static_shape
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import is_bool

Function: TypeAlias = Callable[..., Dim | None]

FUNCTIONS: dict[type[Operation], Function] = {
    b.AddOp: Arithmetic.add,
    b.SubtractOp: Arithmetic.subtract,
    b.MultiplyOp: Arithmetic.multiply,
    b.DivideOp: Arithmetic.divide,
    b.FloorDivideOp: Arithmetic.floor_divide,
    b.FloorModOp: Arithmetic.modulo,
    b.ModOp: Arithmetic.modulo,
    b.PowerOp: Arithmetic.power,
    b.MaximumOp: Arithmetic.maximum,
    b.MinimumOp: Arithmetic.minimum,
    b.EqualOp: Arithmetic.equal,
    b.NotEqualOp: Arithmetic.not_equal,
    b.LessOp: Arithmetic.less,
    b.LessEqualOp: Arithmetic.less_equal,
    b.GreaterOp: Arithmetic.greater,
    b.GreaterEqualOp: Arithmetic.greater_equal,
    b.LogicalAndOp: Arithmetic.logical_and,
    b.LogicalOrOp: Arithmetic.logical_or,
    u.LogicalNotOp: Arithmetic.logical_not,
    u.NegativeOp: Arithmetic.negative,
    u.AbsOp: Arithmetic.magnitude,
    u.CeilOp: Arithmetic.same,
    u.FloorOp: Arithmetic.same,
    u.RoundOp: Arithmetic.same,
    u.TruncOp: Arithmetic.same,
    WhereOp: Arithmetic.where,
}
"""What operators are on known values; the first argument says what is known where they stand."""

COMBINE: dict[type[Operation], tuple[int | None, Function]] = {
    SumOp: (0, Arithmetic.add),
    ProdOp: (1, Arithmetic.multiply),
    MaxOp: (None, Arithmetic.maximum),
    MinOp: (None, Arithmetic.minimum),
}
"""What reductions are: the value of nothing, and the function of two values."""


@evaluates(FullOp, FullLikeOp)
def full(op: FullOp | FullLikeOp, _: Elements | None, value: Elements | None) -> Elements | None:
    """The value everywhere."""
    return None if value is None else _filled(op.result.type, value.reshape(-1)[0])


def _register_filled() -> None:
    def filled(op: FilledOp | FilledLikeOp, _: Elements | None) -> Elements | None:
        return _filled(op.result.type, constant(op.VALUE))

    evaluates(*FilledOp.__subclasses__(), *FilledLikeOp.__subclasses__())(filled)


_register_filled()


def _filled(info: TensorType, value: Dim | None) -> Elements | None:
    shape = static_shape(info)
    if shape is None or np.prod(shape, dtype=int) > MOST_ELEMENTS:
        return None
    return array_of([value] * int(np.prod(shape, dtype=int))).reshape(shape)


@evaluates(ArangeOp)
def arange(op: ArangeOp, start: Elements | None, stop: Elements | None, step: Elements | None) -> Elements | None:
    """As many numbers as the type says."""
    shape = static_shape(op.result.type)
    first = None if start is None else start.reshape(-1)[0]
    stride = None if step is None else step.reshape(-1)[0]
    if shape is None or first is None or stride is None or shape[0] > MOST_ELEMENTS:
        return None
    return array_of([first + index * stride for index in range(shape[0])])


@evaluates(AstypeOp)
def astype(op: AstypeOp, x: Elements | None) -> Elements | None:
    """The same number; a truth value says whether it is 0."""
    if x is None or not is_bool(op.dtype):
        return x
    return _each(is_true, x)


def _each(function: Callable[..., Dim | None], *operands: Elements) -> Elements:
    """A function of known values, element by element; where one is not known, nor is the result."""

    def apply(*values: Dim | None) -> Dim | None:
        return None if None in values else function(*values)

    found = np.frompyfunc(apply, len(operands), 1)(*operands)
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    return found if isinstance(found, np.ndarray) else array_of([found]).reshape(shape)


def _register_arithmetic() -> None:
    def rule(op: Operation, *operands: Elements | None) -> Elements | None:
        known = [operand for operand in operands if operand is not None]
        if len(known) != len(operands):
            return None
        arithmetic = Arithmetic.at(op)
        function = FUNCTIONS[type(op)]
        return _each(lambda *values: function(arithmetic, *values), *known)

    evaluates(*FUNCTIONS)(rule)


_register_arithmetic()


@evaluates(SumOp, ProdOp, MaxOp, MinOp)
def reduction(op: ReductionOp, x: Elements | None) -> Elements | None:
    """All elements along the axes combined."""
    if x is None or op.result.type.known_dims is None:
        return None
    identity, combine = COMBINE[type(op)]
    axes = range(x.ndim) if op.axes is None else _axes(op.axes, x.ndim)
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    count, length = (math.prod(x.shape[axis] for axis in group) for group in (kept, axes))
    rows = x.transpose([*kept, *axes]).reshape(count, length)
    if identity is None and not rows.shape[1]:
        return None
    arithmetic = Arithmetic.at(op)

    def combined(row: list[Dim | None]) -> Dim | None:
        known = [dim for dim in row if dim is not None]
        start = known if identity is None else [constant(identity), *known]
        return reduce(lambda a, b: combine(arithmetic, a, b), start) if len(known) == len(row) else None

    shape = static_shape(op.result.type)
    return None if shape is None else array_of([combined(row) for row in rows.tolist()]).reshape(shape)


def _axes(axes: DenseArrayBase[Any], rank: int) -> list[int]:
    return [axis % rank for axis in axes.get_values()]
