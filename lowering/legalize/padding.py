"""Padding."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from lowering.legalize.context import legalizes
from lowering.legalize.indices import clamped
from lowering.legalize.kernel import Kernel
from lowering.legalize.scalars import number
from relax_dialect.ops.padding import PadOp
from tir_dialect import te
from tir_dialect.dims import Dim, maximum
from tir_dialect.dtypes import is_bool, is_small_float, lookup


@legalizes(PadOp)
def pad(kernel: Kernel, op: PadOp) -> te.Tensor:
    """The element that each place comes from, or the value."""
    x, mode = kernel.tensor(op.x), op.mode.data
    before = op.pad_width.get_values()[::2]
    if mode != "constant":
        return _copied(x, kernel.shape(op.result), before, mode)

    value = _value(op.pad_value.value.data, x)

    def element(*i: te.Expr) -> te.Expr:
        places = [each - width for each, width in zip(i, before, strict=True)]
        return te.if_then_else(inside(places, x.shape), x[tuple(places)], value)

    return te.compute(kernel.shape(op.result), element, name="pad")


def _value(value: float, x: te.Tensor) -> te.Expr:
    """The number that is put around the data: a constant, by which schedules know what this is, if it has one."""
    dtype = x.dtype
    if is_bool(dtype):
        return te.const(value != 0, dtype)
    if lookup(dtype).is_float and not is_small_float(dtype):
        return number(value, te.const(0.0, dtype))
    with suppress(ValueError, OverflowError):  # No number of the dtype, or none at all
        if not lookup(dtype).is_float:
            return te.const(int(value), dtype)
    return te.cast(te.const(value, "f64"), dtype)


def _copied(x: te.Tensor, shape: Sequence[Dim], before: Sequence[int], mode: str) -> te.Tensor:
    """Elements of the data around it: what a place stands for is in a table for each dimension.

    Along the last one that is longer, places inside of the data need no table, so that code can do without there.
    """
    longer = [axis for axis, (extent, own) in enumerate(zip(shape, x.shape, strict=True)) if extent is not own]
    tables = {axis: _table(mode, shape[axis], x.shape[axis], before[axis]) for axis in longer}

    def element(*i: te.Expr) -> te.Expr:
        places = [te.cast(tables[axis][each], "index") if axis in tables else each for axis, each in enumerate(i)]
        found = x[tuple(places)]
        if not longer:
            return found
        last = longer[-1]
        place = i[last] - before[last]
        straight = x[(*places[:last], place, *places[last + 1 :])]
        return te.if_then_else(inside([place], x.shape[last : last + 1]), straight, found)

    return te.compute(shape, element, name="pad")


def _table(mode: str, extent: Dim, own: Dim, before: int) -> te.Tensor:
    """The places in the data that those of an axis stand for."""
    return te.compute((extent,), lambda *i: te.cast(_mapped(mode, i[0] - before, own), "i64"), name="places")


def inside(places: Sequence[te.Expr], shape: Sequence[Dim]) -> te.Expr:
    """Whether an index is within a shape."""
    pairs = zip(places, shape, strict=True)
    return te.logical_and(*(te.logical_and(place >= 0, place < extent) for place, extent in pairs))


def _mapped(mode: str, place: te.Expr, length: Dim) -> te.Expr:
    """The place that one outside of the axis stands for."""
    if mode == "circular":
        return place % length
    if mode == "reflect":
        last = length - 1
        return last - te.abs(place % maximum(2 * last, 1) - last)
    return clamped(place, length)
