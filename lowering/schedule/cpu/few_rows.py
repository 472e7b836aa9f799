"""Code for products with few rows, where to pack the columns would take longer than to use them once.

Each thread has a range of strips of columns. The sums of a few rows along a strip stay in registers while the strip is
read downwards, in order, as it lies in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from xdsl.ir import SSAValue

from lowering.schedule.cpu.product import Place, Product
from tir_dialect.dims import ceildiv, constant, floordiv, maximum
from tir_dialect.ops.loops import LoopKind

MAX_ROWS = 16
"""With more rows the packed columns are used often enough."""
VECTORS = 8
"""Sums of a strip side by side: as many as hide the latency of a fused multiply-add on two ports."""
GROUP = 4
"""Rows that share a column once it is loaded, in half a strip, so that there are twice as many sums."""
PRODUCTS_PER_THREAD = 1 << 17
"""Half a megabyte of columns: about what a core reads while another is woken."""


def is_wanted(product: Product) -> bool:
    """Whether columns lie side by side in memory and there may be few rows."""
    rows = product.m.constant_value
    columns = product.what.columns
    return columns.axes[-1] == product.what.column[0] and (rows is None or rows <= MAX_ROWS)


def emit_few_rows(product: Product, at: Place, lanes: int) -> None:
    """The product at one place of the batch axes."""
    code = product.code
    strips = ceildiv(product.n, constant(lanes * VECTORS))
    share = maximum(ceildiv(strips, product.threads(PRODUCTS_PER_THREAD)), constant(1))
    with code.loop(code.dim(ceildiv(strips, share)), "part", kind=LoopKind.PARALLEL) as part:
        lower = code.mul(part, code.dim(share))
        upper = code.minimum(code.add(lower, code.dim(share)), code.dim(strips))
        with code.loop(upper, "strip", lower=lower) as strip:
            _strip(product, at, code.mul(strip, lanes * VECTORS), lanes)


def _strip(product: Product, at: Place, left: SSAValue, lanes: int) -> None:
    """All rows times one strip of columns: groups of rows first, then the rest row by row."""
    code = product.code
    groups = floordiv(product.m, constant(GROUP))
    half = VECTORS // 2
    with (
        code.loop(code.dim(groups), "group") as group,
        code.loop(code.index(2), "half") as side,
    ):
        start = code.add(left, code.mul(side, lanes * half))
        top = code.mul(group, GROUP)
        _tile(product, at, [code.add(top, i) for i in range(GROUP)], start, half, lanes)
    with code.loop(code.dim(product.m, "m"), "row", lower=code.dim(groups * GROUP)) as row:
        _tile(product, at, [row], left, VECTORS, lanes)


def _tile(product: Product, at: Place, rows: Sequence[SSAValue], left: SSAValue, vectors: int, lanes: int) -> None:
    """Some rows times some vectors of columns; columns past the end are masked."""
    code, what = product.code, product.what
    column, reduced = what.column[0], what.reduced[0]
    n = code.dim(product.n, "n")
    places = [code.add(left, v * lanes) for v in range(vectors)]
    masks = [code.leading(code.sub(n, place), lanes) for place in places]
    sums = code.alloc([len(rows), lanes * vectors], what.dtype, "sums", scope="local")
    tile = [[[code.index(i), code.index(v * lanes)] for v in range(vectors)] for i in range(len(rows))]
    zeros = code.zeros(what.dtype, lanes)
    for element in chain(*tile):
        code.store(zeros, sums, element)
    starts = [{**at, **product.row_place(row)} for row in rows]
    with code.loop(code.dim(product.k, "k"), "r") as r:
        columns = [
            product.load(what.columns, {**at, reduced: r, column: place}, lanes, mask)
            for place, mask in zip(places, masks, strict=True)
        ]
        for start, line in zip(starts, tile, strict=True):
            factor = code.splat(product.load(what.rows, {**start, reduced: r}), lanes)
            for element, vector in zip(line, columns, strict=True):
                code.store(code.fma(factor, vector, code.load(sums, element, lanes)), sums, element)
    for start, line in zip(starts, tile, strict=True):
        for element, place, mask in zip(line, places, masks, strict=True):
            product.store(code.load(sums, element, lanes), {**start, column: place}, mask)
