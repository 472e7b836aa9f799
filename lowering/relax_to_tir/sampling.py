"""Sampling of images, in the dtype of the grid, at least `f32`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.image import cubic_weights
from lowering.relax_to_tir.indices import axes, clamped
from lowering.relax_to_tir.kernel import Kernel
from lowering.relax_to_tir.scalars import is_float_expr, narrowed, number, widen
from relax_dialect.ops.sampling import AffineGridOp, GridSampleOp
from tir_dialect import te
from tir_dialect.dims import Dim

Tap = tuple[te.Expr, te.Expr | None, te.Expr | None]
"""A neighbour along an axis: its position, whether it is in the image, its weight."""


@legalizes(GridSampleOp)
def grid_sample(kernel: Kernel, op: GridSampleOp) -> te.Tensor:
    """The weighted neighbours of each position; weights are computed once for all channels."""
    x, grid, shape = kernel.tensor(op.x), kernel.tensor(op.grid), kernel.shape(op.result)
    dtype = _work_dtype(op, x)

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("grid_sample", *axes((shape[0], *shape[2:]))) as (batch, *outer):
            taps: list[list[Tap]] = []
            for axis, length in enumerate(x.shape[2:]):
                coordinate = widen(grid[(batch, *outer, x.ndim - 3 - axis)])
                taps.append(_taps(b, op, b.let(coordinate, "coordinate"), length))
            with b.for_range(0, x.shape[1], "channel") as channel:
                parts = [_part(x, (batch, channel), each, dtype) for each in product(*taps)]
                b.store(outs[0], (batch, channel, *outer), reduce(lambda p, q: p + q, parts))

    (result,) = te.extern([(shape, dtype)], list(dict.fromkeys((x, grid))), body, name="grid_sample")
    return narrowed(result, x.dtype)


def _work_dtype(op: GridSampleOp, x: te.Tensor) -> str:
    if op.method.data == "nearest":
        return str(x.dtype)
    zero = te.const(0, x.dtype)
    return str(widen(zero).dtype) if is_float_expr(zero) else "f32"


def _part(x: te.Tensor, outer: tuple[te.Expr, te.Expr], chosen: Sequence[Tap], dtype: str) -> te.Expr:
    """A neighbour with its weight; 0 outside of the image."""
    value = te.cast(x[(*outer, *(position for position, _, _ in chosen))], dtype)
    weights = [te.cast(weight, dtype) for _, _, weight in chosen if weight is not None]
    if weights:
        value = value * reduce(lambda p, q: p * q, weights)
    inside = [each for _, each, _ in chosen if each is not None]
    return te.select(te.logical_and(*inside), value, te.const(0, dtype)) if inside else value


def _taps(b: te.ExternBuilder, op: GridSampleOp, coordinate: te.Expr, length: Dim) -> list[Tap]:
    """The neighbours along an axis."""
    size, corners, mode = te.cast(te.cast(length, "index"), coordinate.dtype), op.align_corners, op.padding_mode.data
    position = (coordinate + 1) / 2 * (size - 1) if corners is not None else ((coordinate + 1) * size - 1) / 2
    low, high = (number(0, position), size - 1) if corners is not None else (number(-0.5, position), size - 0.5)
    if op.method.data == "nearest":
        position = te.round(position)
    if mode == "border" and op.method.data != "cubic":
        position = te.maximum(te.minimum(position, size - 1), 0)
    elif mode == "reflection":
        position = _mirrored(b, b.let(position, "place"), low, high)
    position = b.let(position, "place")
    first = b.let(position if op.method.data == "nearest" else te.floor(position), "first")
    rest = b.let(position - first, "rest")
    weights: Sequence[te.Expr | None] = [None]
    offsets = [0]
    if op.method.data == "linear":
        offsets, weights = [0, 1], [1 - rest, rest]
    elif op.method.data == "cubic":
        offsets, weights = [-1, 0, 1, 2], [b.let(w, "weight") for w in cubic_weights(op.cubic_alpha.value.data, rest)]
    taps: list[Tap] = []
    for offset, weight in zip(offsets, weights, strict=True):
        at = first + offset
        inside = b.let(te.logical_and(at >= 0, at <= size - 1), "inside") if mode == "zeros" else None
        at = _mirrored(b, b.let(at, "at"), low, high) if mode == "reflection" else at
        bounded = te.maximum(te.minimum(at, size - 1), 0)
        taps.append((b.let(clamped(te.cast(te.cast(bounded, "i64"), "index"), length), "tap"), inside, weight))
    return taps


def _mirrored(b: te.ExternBuilder, position: te.Expr, low: te.Expr, high: te.Expr) -> te.Expr:
    """A position mirrored at both ends until it lies between them."""
    span, zero = high - low, number(0, position)
    beyond = b.let(
        te.select(position < low, low - position, te.select(position > high, position - high, zero)), "beyond"
    )
    times = b.let(te.select(span > 0, te.trunc(beyond / te.maximum(span, number(1e-30, span))), zero), "times")
    rest = te.select(span > 0, beyond - times * span, zero)
    even = times - 2 * te.trunc(times / 2) == 0
    from_low = (position < low) == even
    return te.select(beyond > 0, te.select(from_low, low + rest, high - rest), position)


@legalizes(AffineGridOp)
def affine_grid(kernel: Kernel, op: AffineGridOp) -> te.Tensor:
    """The maps of evenly spaced positions."""
    theta, shape = kernel.tensor(op.theta), kernel.shape(op.result)
    corners, count = op.align_corners is not None, len(shape) - 2

    def even(index: te.Expr, length: Dim) -> te.Expr:
        at, size = te.cast(index, "f64"), te.cast(te.cast(length, "index"), "f64")
        if corners:
            return 2 * at / te.maximum(size - 1, 1) - 1
        return (2 * at + 1) / size - 1

    def element(*i: te.Expr) -> te.Expr:
        batch, *at, row = i
        value = widen(theta[batch, row, count])
        for axis, (index, length) in enumerate(zip(at, shape[1:-1], strict=True)):
            value = value + widen(theta[batch, row, count - 1 - axis]) * te.cast(even(index, length), value.dtype)
        return te.cast(value, theta.dtype)

    return te.compute(shape, element, name="affine_grid")
