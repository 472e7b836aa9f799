"""Winograd convolutions: 3 x 3 windows with stride 1, of whose results a tile of M x M is computed at once.

`Y = A' [(G g G') * (B' d B)] A` (Lavin and Gray, 2016), with `d` a patch of the data of (M + 2) x (M + 2) and `g` the
weights of one channel and one filter. The elementwise product and the sum over channels are (M + 2) ** 2 matrix
products. F(2 x 2) takes 16 multiplications for what takes 36, F(4 x 4) 36 for 144.

The transforms interpolate at 0, infinity, 1 and -1 in F(2 x 2), and at 0, infinity and plus and minus the square roots
of 1/2 and 2 in F(4 x 4): with these, unlike with whole numbers, coefficients are between 1/2 and 5/2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lowering.relax_to_tir.windows import within
from tir_dialect import te
from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.ops.function import PrimFuncOp
from vm_dialect.tensors import aligned_bytes

WINDOW = 3
TILES = (2, 4)
"""The sides of tiles that there are transforms for."""

Values = Sequence[te.Expr]
_SMALL, _LARGE = sqrt(0.5), sqrt(2.0)
"""The points of F(4 x 4), besides their negatives, 0 and infinity."""

_WEIGHTS = {
    2: np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]),
    4: np.array(
        [
            [1, 0, 0],
            *([-1 / 1.5, -sign * _SMALL / 1.5, -0.5 / 1.5] for sign in (1, -1)),
            *([1 / 6, sign * _LARGE / 6, 2 / 6] for sign in (1, -1)),
            [0, 0, 1],
        ]
    ),
}
"""G for each tile."""
_CACHED_WEIGHTS = 16_384
"""So many filters are transformed at once: as many as stay in the cache in `f64`."""


def transformed_weights(weights: NDArray[Any], tile: int) -> NDArray[np.float32]:
    """`G g G'` of weights in OIHW, as matrices `[(M + 2) ** 2, I, O]`; computed in `f64` and rounded once."""
    g, taps = _WEIGHTS[tile], weights.transpose(2, 3, 1, 0)
    _, width, inputs, outputs = taps.shape
    shape = len(g) ** 2, inputs, outputs
    made = aligned_bytes(4 * prod(shape)).view(np.float32).reshape(shape)
    step = max(1, _CACHED_WEIGHTS // outputs)
    for first in range(0, inputs, step):
        some = taps[:, :, first : first + step].astype(np.float64, "C")
        columns = (g @ some.reshape(len(some), -1)).reshape(len(g), width, -1)
        made[:, first : first + step] = (g @ columns).reshape(len(made), -1, outputs)
    return made


def _data_transform(d: Values) -> list[te.Expr]:
    """`B' d` for one column."""
    if len(d) == 4:
        return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]
    even, odd = d[4] - 2.0 * d[2], _SMALL * (d[3] - 2.0 * d[1])
    further_even, further_odd = d[4] - 0.5 * d[2], _LARGE * (d[3] - 0.5 * d[1])
    pairs = [even + odd, even - odd, further_even + further_odd, further_even - further_odd]
    return [d[0] + d[4] - 2.5 * d[2], *pairs, d[1] + d[5] - 2.5 * d[3]]


def _inverse_transform(m: Values) -> list[te.Expr]:
    """`A' m` for one column."""
    total, difference = m[1] + m[2], m[1] - m[2]
    if len(m) == 4:
        return [m[0] + total, difference - m[3]]
    further_total, further_difference = m[3] + m[4], m[3] - m[4]
    return [
        m[0] + total + further_total,
        _SMALL * difference + _LARGE * further_difference,
        0.5 * total + 2.0 * further_total,
        _SMALL**3 * difference + _LARGE**3 * further_difference + m[5],
    ]


def _spatial(*axes: tuple[Dim, str]) -> list[tuple[Literal["spatial"], Dim, str]]:
    return [("spatial", extent, name) for extent, name in axes]


def _on_both_sides(
    b: te.ExternBuilder, transform: Callable[[Values], list[te.Expr]], square: Sequence[Values]
) -> list[list[te.Expr]]:
    """`T s T'` for a square of values: the transform of its columns, and then that of the rows."""
    columns = [[b.let(each) for each in transform(column)] for column in zip(*square, strict=True)]
    return [transform(row) for row in zip(*columns, strict=True)]


@dataclass(frozen=True)
class WinogradShapes:
    """What the kernel of a convolution depends on: data in blocks, weights, result, and the zeros around the data."""

    data: tuple[Dim, ...]
    weights: tuple[Dim, ...]
    result: tuple[Dim, ...]
    padding: tuple[int, ...]
    tile: int

    @property
    def points(self) -> int:
        """The side of a patch."""
        return self.tile + WINDOW - 1

    @property
    def tiles(self) -> tuple[Dim, Dim]:
        """How many tiles cover the result; the last ones reach beyond it."""
        rows, columns = (ceildiv(extent, constant(self.tile)) for extent in self.result[2:4])
        return rows, columns


def winograd_function(shapes: WinogradShapes, name: str) -> PrimFuncOp:
    """The PrimFunc, of data `[n, c, h, w, block]` and weights `[points ** 2, channels, filters]`."""
    x = te.placeholder(shapes.data, "f32", "X")
    w = te.placeholder(shapes.weights, "f32", "W")
    products = _products(shapes, _transformed(shapes, _patches(shapes, x)), w)
    whole = _tiles(shapes, products)
    result = te.compute(shapes.result, lambda *i: whole[i], name="result")
    return te.create_prim_func([x, w, result], name=name)


def _patches(shapes: WinogradShapes, x: te.Tensor) -> te.Tensor:
    """The data with zeros around it, as far as patches reach."""
    batch, blocks, *lengths, block = shapes.data
    top, left = shapes.padding[:2]
    extents = [count * shapes.tile + WINDOW - 1 for count in shapes.tiles]

    def element(n: te.Expr, c: te.Expr, i: te.Expr, j: te.Expr, lane: te.Expr) -> te.Expr:
        row, column = i - top, j - left
        inside = within([row, column], lengths)
        return te.if_then_else(inside, x[n, c, row, column, lane], te.const(0, "f32"))

    return te.compute([batch, blocks, *extents, block], element, name="padded")


def _transformed(shapes: WinogradShapes, padded: te.Tensor) -> te.Tensor:
    """`B' d B` of each patch."""
    (batch, blocks, _, _, block), (rows, columns), tile = shapes.data, shapes.tiles, shapes.tile
    size = block.constant_value or 1
    side = range(shapes.points)

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        axes = _spatial((batch, "n"), (blocks, "c"), (rows, "i"), (columns, "j"), (block, "lane"))
        with b.block("transform", *axes) as (n, c, i, j, lane):
            patch = [[b.let(padded[n, c, i * tile + p, j * tile + q, lane]) for q in side] for p in side]
            for p, row in enumerate(_on_both_sides(b, _data_transform, patch)):
                for q, value in enumerate(row):
                    b.store(outs[0], (p * shapes.points + q, n, i, j, c * size + lane), value)

    kind = ([shapes.points**2, batch, rows, columns, shapes.weights[1]], "f32")
    return te.extern([kind], [padded], body, name="transformed")[0]


def _products(shapes: WinogradShapes, transformed: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A matrix product for each point."""
    c = te.reduce_axis(shapes.weights[1], "c")

    def element(point: te.Expr, n: te.Expr, i: te.Expr, j: te.Expr, k: te.Expr) -> te.Expr:
        return te.sum(transformed[point, n, i, j, c] * w[point, c, k], [c])

    return te.compute([*transformed.shape[:4], shapes.weights[2]], element, name="products")


def _tiles(shapes: WinogradShapes, products: te.Tensor) -> te.Tensor:
    """`A' m A` of each tile: results, and what the last tiles have beyond them."""
    (batch, blocks, _, _, block), (rows, columns), tile = shapes.result, shapes.tiles, shapes.tile
    size = block.constant_value or 1
    side = range(shapes.points)

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        axes = _spatial((batch, "n"), (blocks, "c"), (rows, "i"), (columns, "j"), (block, "lane"))
        with b.block("inverse", *axes) as (n, c, i, j, lane):
            sums = [[b.let(products[p * shapes.points + q, n, i, j, c * size + lane]) for q in side] for p in side]
            for p, row in enumerate(_on_both_sides(b, _inverse_transform, sums)):
                for q, value in enumerate(row):
                    b.store(outs[0], (n, c, i * tile + p, j * tile + q, lane), value)

    kind = ([batch, blocks, rows * tile, columns * tile, block], "f32")
    return te.extern([kind], [products], body, name="tiles")[0]
