"""Padding whose widths are data."""

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
            b.store(outs[0], 2 * place, te.cast(given[i], "i64"))
            b.store(outs[0], 2 * place + 1, te.cast(given[i + count], "i64"))

    return te.extern([((2 * rank,), "i64")], [pads, axes], body, name="full_pads")[0]


def padded_shape(pads: te.Tensor, shape: Sequence[Dim]) -> te.Tensor:
    """The shape with the padding."""

    def padded(i: te.Expr) -> te.Expr:
        return element_of(shape, i) + pads[2 * i] + pads[2 * i + 1]

    return te.compute((len(shape),), padded, name="padded_shape")


def pad_at_run_time(x: te.Tensor, pads: te.Tensor, value: te.Tensor, dims: Sequence[Dim], mode: str) -> te.Tensor:
    """`x` with padding; `pads` are the widths before and after each dimension."""

    def element(*i: te.Expr) -> te.Expr:
        places = [at - te.cast(pads[2 * axis], "index") for axis, at in enumerate(i)]
        inside = [test for at, dim in zip(places, x.shape, strict=True) for test in (at >= 0, at < dim)]
        source = [_source(at, dim, mode) for at, dim in zip(places, x.shape, strict=True)]
        found = x[tuple(source)]
        return te.if_then_else(te.logical_and(*inside), found, value[()]) if mode == "constant" and inside else found

    return te.compute(dims, element, name="pad")


def _source(place: te.Expr, length: Dim, mode: str) -> te.Expr:
    """The place that an element, perhaps outside, is taken from."""
    if mode == "wrap":
        return te.floormod(place, length)
    if mode == "reflect":
        period = te.cast(te.maximum(te.cast(length, "index") * 2 - 2, 1), "index")
        turned = te.floormod(place, period)
        return te.select(turned < length, turned, period - turned)
    return te.maximum(te.minimum(place, length - 1), 0)
