"""Padding whose widths are data: all those before dimensions, then all those after them."""

from __future__ import annotations

from collections.abc import Sequence

from relax_dialect.frontend.onnx.manipulation import element_of
from tir_dialect import te
from tir_dialect.dims import Dim


def full_pads(pads: te.Tensor, axes: te.Tensor, rank: int) -> te.Tensor:
    """Widths before and after every dimension, from those before and then those after some axes."""
    count = axes.shape[0]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        given, named = ins
        with b.for_range(0, 2 * rank, "i") as i:
            b.store(outs[0], i, 0)
        with b.for_range(0, count, "i") as i:
            place = b.let(te.cast(te.floormod(te.cast(named[i], "i64"), rank), "index"), "place")
            b.store(outs[0], place, te.cast(given[i], "i64"))
            b.store(outs[0], place + rank, te.cast(given[i + count], "i64"))

    return te.extern([((2 * rank,), "i64")], [pads, axes], body, name="full_pads")[0]


def ends_and_shape(pads: te.Tensor, shape: Sequence[Dim]) -> te.Tensor:
    """The place in the result behind the last element of the data, by dimension, and then the result's shape.

    Data that ends before the result begins is not there.
    """
    rank = len(shape)

    def number(i: te.Expr) -> te.Expr:
        end = element_of([*shape, *shape], i) + te.cast(pads[i], "i64")
        return te.if_then_else(i < rank, te.maximum(end, 0), end + te.cast(pads[i - rank], "i64"))

    return te.compute((2 * rank,), number, name="padded_shape")
