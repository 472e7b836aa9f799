"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.legalize.context import legalizes
from lowering.legalize.indices import clamped
from lowering.legalize.kernel import Kernel
from lowering.legalize.scalars import number
from relax_dialect.ops.padding import PadOp
from tir_dialect import te
from tir_dialect.dims import Dim, maximum


@legalizes(PadOp)
def pad(kernel: Kernel, op: PadOp) -> te.Tensor:
    """The element that each place comes from, or the value."""
    x, mode = kernel.tensor(op.x), op.mode.data
    before = op.pad_width.get_values()[::2]

    def element(*i: te.Expr) -> te.Expr:
        places = [each - width for each, width in zip(i, before, strict=True)]
        if mode != "constant":
            return x[tuple(_mapped(mode, *pair) for pair in zip(places, x.shape, strict=True))]
        value = te.cast(number(op.pad_value.value.data, te.const(0.0, "f64")), x.dtype)
        return te.if_then_else(inside(places, x.shape), x[tuple(places)], value)

    return te.compute(kernel.shape(op.result), element, name="pad")


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
