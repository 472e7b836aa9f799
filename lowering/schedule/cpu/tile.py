"""The micro-kernel: a tile of sums in registers, and how it gets from there to the output."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from lowering.schedule.cpu.finish import Finish
from lowering.schedule.cpu.product import Product, Spot

Element = Callable[[int, SSAValue], SSAValue]
"""Gives an element of the rows, by its row in the tile and its place along the sums."""


def emit_tile(
    product: Product,
    bounds: tuple[SSAValue, SSAValue],
    height: int,
    element: Element,
    vector: Callable[[SSAValue, int], SSAValue],
    tile: SSAValue,
) -> None:
    """Sums of `height` rows into the buffer `tile`.

    `element(i, r)` gives an element of row `i`, `vector(r, v)` the columns that it is multiplied with. The sums are in
    a buffer that LLVM keeps in registers: every access to it has constant indices.
    """
    code, tiles, dtype = product.code, product.tiles, product.what.element
    sums = code.alloc([height, tiles.width], dtype, "sums", scope="local")
    places = [[[code.index(i), code.index(v * tiles.lanes)] for v in range(tiles.vectors)] for i in range(height)]
    zeros = code.zeros(dtype, tiles.lanes)
    for line in places:
        for place in line:
            code.store(zeros, sums, place)
    lower, upper = bounds
    with code.loop(upper, "r", lower=lower) as r:
        columns = [vector(r, v) for v in range(tiles.vectors)]
        for i, line in enumerate(places):
            factor = code.splat(element(i, r), tiles.lanes)
            for place, column in zip(line, columns, strict=True):
                code.store(code.fma(factor, column, code.load(sums, place, tiles.lanes)), sums, place)
    for line in places:
        for place in line:
            code.store(code.load(sums, place, tiles.lanes), tile, place)


def store_tile(product: Product, finish: Finish, tile: SSAValue, spot: Spot, top: SSAValue, left: SSAValue) -> None:
    """The rows and columns of a tile that there are; `top` and `left` are the first."""
    code, tiles = product.code, product.tiles
    rows = code.minimum(code.sub(code.dim(product.m), top), tiles.rows)
    store_rows(product, finish, tile, spot, (top, rows), left)


def store_rows(
    product: Product,
    finish: Finish,
    tile: SSAValue,
    spot: Spot,
    rows: tuple[SSAValue, SSAValue],
    left: SSAValue,
) -> None:
    """So many rows of a tile: `rows` are the first one and their number."""
    code, tiles, what = product.code, product.tiles, product.what
    n, (top, count) = code.dim(product.n), rows
    with code.loop(count, "i") as i:
        here = {**spot, what.row: code.add(top, i)}
        for v in range(tiles.vectors):
            place = code.add(left, v * tiles.lanes)
            sums = code.load(tile, [i, code.index(v * tiles.lanes)], tiles.lanes)
            finish.store(sums, {**here, what.column: place}, code.sub(n, place))
