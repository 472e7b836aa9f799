"""What stands around data that is padded: the data's own elements, or a value.

Widths are numbers, or dimensions where they are only known at run time. A negative one takes elements away, before
others are repeated: what is taken away is not repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from relax_dialect.inference import DEFAULT_PROVER
from tir_dialect import te
from tir_dialect.dims import Dim, maximum, to_dim

Width: TypeAlias = int | Dim
"""How many elements are before the data along an axis."""


def filled(x: te.Tensor, shape: Sequence[Dim], before: Sequence[Width], value: te.Expr) -> te.Tensor:
    """`x` with a value around it."""
    axes = _padded_axes(x, shape, before)

    def element(*i: te.Expr) -> te.Expr:
        positions = [each - width for each, width in zip(i, before, strict=True)]
        inside = [_is_inside(positions[axis], x.shape[axis]) for axis in axes]
        return te.if_then_else(te.logical_and(*inside), x[tuple(positions)], value) if inside else x[tuple(positions)]

    return te.compute(shape, element, name="pad")


def surrounded(
    x: te.Tensor, shape: Sequence[Dim], before: Sequence[Width], mode: str, *, provable: bool = False
) -> te.Tensor:
    """`x` with its own elements around it, as a mode of `relax.nn.pad` says.

    What a position stands for is in a table for each dimension. Along the last one that is longer, positions inside of
    the data need no table, so that code can do without there. With `provable` even `check-accesses` sees that the
    tables lead nowhere else than into the data.
    """

    def looked_up(axis: int, index: te.Expr) -> te.Expr:
        found = te.cast(tables[axis][index], "index")
        return clamped(found, x.shape[axis]) if provable else found

    longer = _padded_axes(x, shape, before)
    tables = {axis: _table(mode, shape[axis], x.shape[axis], before[axis]) for axis in longer}

    def element(*i: te.Expr) -> te.Expr:
        positions = [looked_up(axis, each) if axis in tables else each for axis, each in enumerate(i)]
        found = x[tuple(positions)]
        if not longer:
            return found
        last = longer[-1]
        index = i[last] - before[last]
        straight = x[(*positions[:last], index, *positions[last + 1 :])]
        return te.if_then_else(_is_inside(index, x.shape[last]), straight, found)

    return te.compute(shape, element, name="pad")


def clamped(position: te.Expr, extent: Dim) -> te.Expr:
    """The nearest position within an extent that is not 0."""
    return te.maximum(te.minimum(position, extent - 1), 0)


def _padded_axes(x: te.Tensor, shape: Sequence[Dim], before: Sequence[Width]) -> list[int]:
    """The axes along which there may be other elements than those of the data."""
    changed = (
        extent is not own or bool(to_dim(width).terms)
        for extent, own, width in zip(shape, x.shape, before, strict=True)
    )
    return [axis for axis, is_changed in enumerate(changed) if is_changed]


def _table(mode: str, extent: Dim, own: Dim, before: Width) -> te.Tensor:
    """The positions in the data that those of an axis stand for."""
    if isinstance(before, int) and before >= 0 and DEFAULT_PROVER.less_equal(own + before, extent) is True:
        return te.compute((extent,), lambda *i: te.cast(_mapped(mode, i[0] - before, own), "i64"), name="places")
    after = extent - own - before
    first, kept = maximum(-to_dim(before), 0), own - maximum(-to_dim(before), 0) - maximum(-after, 0)
    length = maximum(kept, 1)  # if nothing is kept there is nothing to repeat, but a remainder has to be defined

    def position(*i: te.Expr) -> te.Expr:
        return te.cast(first + _mapped(mode, i[0] - maximum(to_dim(before), 0), length), "i64")

    return te.compute((extent,), position, name="places")


def _is_inside(position: te.Expr, extent: Dim) -> te.Expr:
    """Whether a position is one of an axis."""
    return te.logical_and(position >= 0, position < extent)


def _mapped(mode: str, position: te.Expr, length: Dim) -> te.Expr:
    """The position that one outside of the axis stands for."""
    if mode == "circular":
        return position % length
    if mode == "reflect":
        last = length - 1
        return last - te.abs(position % maximum(2 * last, 1) - last)
    return clamped(position, length)
