"""Sampling of images, in the dtype of the grid, at least `f32`."""

from __future__ import annotations

from itertools import product

import numpy as np

from relax_dialect.interpreter.contraction import einsum
from relax_dialect.interpreter.image import cubic_weights
from relax_dialect.interpreter.operators import computes, wide
from relax_dialect.interpreter.runtime_values import Array, Shape
from relax_dialect.ops.sampling import AffineGridOp, GridSampleOp


@computes(GridSampleOp)
def grid_sample(op: GridSampleOp, x: Array, grid: Array) -> Array:
    """The weighted neighbours of each position."""
    lengths = x.shape[2:]
    data = wide(x) if x.dtype.kind not in "iub" else x.astype(np.float32)
    data = x if op.method.data == "nearest" else data
    taps = [_taps(op, wide(grid)[..., -1 - axis], length) for axis, length in enumerate(lengths)]
    batches = np.expand_dims(np.arange(int(x.shape[0])), tuple(range(1, len(lengths) + 1)))
    total = np.zeros((x.shape[0], *grid.shape[1:-1], x.shape[1]), data.dtype)
    for chosen in product(*taps):
        positions, inside, weights = zip(*chosen, strict=True)
        values = data.transpose(0, *range(2, x.ndim), 1)[(batches, *positions)]
        weight = np.prod(np.broadcast_arrays(*weights), axis=0).astype(data.dtype)
        kept = np.all(np.broadcast_arrays(*inside), axis=0)
        total += np.where(kept[..., None], values * weight[..., None], 0).astype(data.dtype)
    return np.moveaxis(total, -1, 1).astype(x.dtype)


def _taps(op: GridSampleOp, coordinate: Array, length: int) -> list[tuple[Array, Array, Array]]:
    """The neighbours along an axis: their positions, whether they are in the image, and their weights."""
    corners, mode = op.align_corners is not None, op.padding_mode.data
    position: Array = (coordinate + 1) / 2 * (length - 1) if corners else ((coordinate + 1) * length - 1) / 2
    low, high = (0.0, length - 1.0) if corners else (-0.5, length - 0.5)
    if op.method.data == "nearest":
        position = np.round(position)
    if mode == "border" and op.method.data != "cubic":
        position = np.clip(position, 0, length - 1)
    elif mode == "reflection":
        position = mirrored(position, low, high)
    first = np.floor(position)
    rest = position - first
    if op.method.data == "nearest":
        offsets, weights = (0,), [np.ones_like(position)]
        first = position
    elif op.method.data == "linear":
        offsets, weights = (0, 1), [1 - rest, rest]
    else:
        offsets, weights = (-1, 0, 1, 2), list(cubic_weights(op.cubic_alpha.value.data, rest))
    taps: list[tuple[Array, Array, Array]] = []
    for offset, weight in zip(offsets, weights, strict=True):
        at: Array = first + offset
        inside: Array = (at >= 0) & (at <= length - 1) if mode == "zeros" else np.ones(at.shape, bool)
        at = mirrored(at, low, high) if mode == "reflection" else at
        taps.append((np.clip(np.nan_to_num(at), 0, length - 1).astype(np.int64), inside, weight))
    return taps


def mirrored(position: Array, low: float, high: float) -> Array:
    """Positions mirrored at both ends until they lie between them."""
    span = high - low
    beyond = np.where(position < low, low - position, np.where(position > high, position - high, 0))
    if span <= 0:
        return np.where(beyond > 0, low, position)
    times = np.trunc(beyond / span)
    rest, even = beyond - times * span, times % 2 == 0
    from_low = (position < low) == even
    return np.where(beyond > 0, np.where(from_low, low + rest, high - rest), position).astype(position.dtype)


@computes(AffineGridOp)
def affine_grid(op: AffineGridOp, theta: Array, size: Shape) -> Array:
    """The maps of evenly spaced positions."""
    work = wide(theta)
    axes = [_even(length, op.align_corners is not None) for length in reversed(size)]
    positions = np.stack([*reversed(np.meshgrid(*reversed(axes), indexing="ij")), np.ones(size)], -1).astype(work.dtype)
    return einsum("bij,...j->b...i", work, positions).astype(theta.dtype)


def _even(length: int, corners: bool) -> Array:
    """Positions between -1 and 1: from end to end, or the middles of equal parts."""
    if corners:
        return np.linspace(-1, 1, length) if length > 1 else np.full(length, -1.0)
    return (2 * np.arange(length) + 1) / max(length, 1) - 1
