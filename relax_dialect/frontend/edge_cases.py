"""What source languages say of cases at the edge: indices, axes and lengths that they bound, checked when the program
runs; and the greatest and the least element along axes that may have none, where that is no error.

A check is a guard of the tensor: one kernel finds the extreme of its elements, which becomes a symbol, and a guard
compares that with what is allowed. So it is made once for a call, in every mode, and kernels that use the tensor can be
fused as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from relax_dialect.builder import BlockBuilder, op
from relax_dialect.builder.expr import Expr
from relax_dialect.inference import DEFAULT_PROVER
from relax_dialect.ops.binding import GuardOp, Relation
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect import te
from tir_dialect.dims import Dim, constant, symbol
from tir_dialect.types import DimAttr

_NEGATIVE = 1 << 62
"""The position that stands for a negative index where none counts from the back; no axis is so long."""


def indices_within(
    bb: BlockBuilder,
    indices: Expr,
    extents: Sequence[Dim],
    where: str,
    of: str = "its axis",
    *,
    from_back: bool = True,
) -> Expr:
    """The indices, each less than `extent` and at least `-extent`, or 0 unless they may count from the back.

    With several extents the last dimension has an index for each. Errors begin with `where`.
    """
    several = len(extents) > 1
    position_of = "counted from 1 at its end" if from_back else f"counted from 1, {_NEGATIVE} for a negative one"

    def furthest(positions: te.Tensor) -> te.Tensor:
        axes = [te.reduce_axis(extent, "r") for extent in (positions.shape[:-1] if several else positions.shape)]

        def element(k: te.Expr) -> te.Expr:
            position = te.cast(positions[(*axes, k) if several else tuple(axes)], "i64")
            far = te.select(position < 0, -1 - position if from_back else te.const(_NEGATIVE - 1, "i64"), position)
            return te.max(far, axes) if axes else far

        def from_1(k: te.Expr) -> te.Expr:
            return te.minimum(te.maximum(found[k], -1), _NEGATIVE - 1) + 1

        found = te.compute((len(extents),), element, name="furthest_index")
        return te.compute((len(extents),), from_1, name="furthest_place")

    found = _numbers(bb, furthest, indices, len(extents), "place")
    for at, (number, extent) in enumerate(zip(found, extents, strict=True)):
        part = f"{where}, coordinate {at}" if several else where
        message = f"{part}: expected each within {of}, got the place, {position_of}, and how many there are"
        indices = dim_at_most(bb, indices, number, extent, message)
    return indices


def at_least_0(bb: BlockBuilder, numbers: Expr, message: str) -> Expr:
    """The numbers, none of which is negative; errors begin with the message."""

    def below(x: te.Tensor) -> te.Tensor:
        axes = [te.reduce_axis(extent, "r") for extent in x.shape]

        def element(_: te.Expr) -> te.Expr:
            short = te.maximum(te.select(x[tuple(axes)] < 0, -1 - te.cast(x[tuple(axes)], "i64"), -1), -1)
            return te.max(short, axes) if axes else short

        def from_0(k: te.Expr) -> te.Expr:
            return te.minimum(te.maximum(found[k], -1), (1 << 62)) + 1

        found = te.compute((1,), element, name="furthest_below")
        return te.compute((1,), from_0, name="below_0")

    (short,) = _numbers(bb, below, numbers, 1, "below")
    return dim_at_most(bb, numbers, short, constant(0), message)


def numbers_at_most(bb: BlockBuilder, numbers: Expr, limit: Dim, message: str) -> Expr:
    """The numbers, none of which is more than the limit; errors begin with the message."""

    def greatest(x: te.Tensor) -> te.Tensor:
        axes = [te.reduce_axis(extent, "r") for extent in x.shape]

        def element(_: te.Expr) -> te.Expr:
            number = te.maximum(te.cast(x[tuple(axes)], "i64"), 0)
            return te.max(number, axes) if axes else number

        def from_0(k: te.Expr) -> te.Expr:
            return te.maximum(found[k], 0)

        found = te.compute((1,), element, name="greatest_number")
        return te.compute((1,), from_0, name="greatest_or_0")

    (most,) = _numbers(bb, greatest, numbers, 1, "number")
    return dim_at_most(bb, numbers, most, limit, message)


def none_zero(bb: BlockBuilder, steps: Expr, where: str) -> Expr:
    """Steps of which none is 0."""

    def zeros(x: te.Tensor) -> te.Tensor:
        axes = [te.reduce_axis(extent, "r") for extent in x.shape]

        def element(_: te.Expr) -> te.Expr:
            is_zero = te.cast(x[tuple(axes)] == 0, "i64")
            return te.sum(is_zero, axes) if axes else is_zero

        return te.compute((1,), element, name="zero_steps")

    (count,) = _numbers(bb, zeros, steps, 1, "zeros")
    return dim_at_most(bb, steps, count, constant(0), f"{where} steps: expected none of 0, got as many")


def distinct_axes(bb: BlockBuilder, axes: Expr, rank: int, where: str) -> Expr:
    """Axes of a tensor of that rank, each named once and within the rank."""

    def repeated(x: te.Tensor) -> te.Tensor:
        i, j = te.reduce_axis(x.shape[0], "i"), te.reduce_axis(x.shape[0], "j")

        def same(_: te.Expr) -> te.Expr:
            equal = te.floormod(te.cast(x[i], "i64"), rank) == te.floormod(te.cast(x[j], "i64"), rank)
            return te.sum(te.cast(te.logical_and(i < j, equal), "i64"), (i, j))

        return te.compute((1,), same, name="repeated_axes")

    axes = indices_within(bb, axes, [constant(rank)], f"{where} axes", "the rank")
    (count,) = _numbers(bb, repeated, axes, 1, "repeated")
    return dim_at_most(bb, axes, count, constant(0), f"{where} axes: expected each of them once, got as many again")


def _numbers(
    bb: BlockBuilder, kernel: Callable[[te.Tensor], te.Tensor], tensor: Expr, count: int, hint: str
) -> list[Dim]:
    """The elements of what a kernel makes of a tensor, of rank 1, as symbols."""
    names = list[str]()
    for _ in range(count):
        names.append(bb.fresh_symbol(hint))
        bb.frame.taken.add(names[-1])
    dims = [symbol(name) for name in names]
    made = bb.emit_te(kernel, tensor)
    if not isinstance(made, Expr):
        raise TypeError("a check is made of one number for each limit")
    bb.match_cast(op.tensor_to_shape(made), ShapeType(dims))
    return dims


def dim_at_most(bb: BlockBuilder, value: Expr, number: Dim, limit: Dim, message: str) -> Expr:
    """The value, where a dimension is not more than another; errors begin with the message."""
    if DEFAULT_PROVER.less_equal(number, limit):
        return value
    guard = GuardOp(value.value, Relation.AT_MOST, DimAttr(number), DimAttr(limit), message)
    return bb.expr(bb.insert(guard).result)


Extreme = Literal["max", "min"]


def extreme(bb: BlockBuilder, x: Expr, axes: Sequence[int], kind: Extreme, *, keepdims: bool = False) -> Expr:
    """The greatest (`max`) or the least element along axes; of none the identity: of floats an infinity, of integers
    the end of their range.

    An axis that surely has elements is left to `relax.max` and `relax.min`, which passes know.
    """
    dims = x.type.known_dims if isinstance(x.type, TensorType) else None
    if dims is None or all(DEFAULT_PROVER.less_equal(1, dims[axis]) for axis in axes):
        return (op.max if kind == "max" else op.min)(x, axes, keepdims=keepdims)

    def along(x: te.Tensor) -> te.Tensor:
        return _extreme_along(x, axes, kind)

    made = bb.emit_te(along, x, name_hint=f"reduce_{kind}")
    assert isinstance(made, Expr)  # one tensor
    return made if keepdims else op.squeeze(made, axes)


def _extreme_along(x: te.Tensor, axes: Sequence[int], kind: Extreme) -> te.Tensor:
    over = {axis % len(x.shape): te.reduce_axis(x.shape[axis], f"r{axis % len(x.shape)}") for axis in axes}
    shape = [constant(1) if axis in over else dim for axis, dim in enumerate(x.shape)]

    def element(*i: te.Expr) -> te.Expr:
        positions = list(i)
        for axis, position in over.items():
            positions[axis] = position
        return (te.max if kind == "max" else te.min)(x[tuple(positions)], list(over.values()))

    return te.compute(shape, element, name=f"reduce_{kind}")
