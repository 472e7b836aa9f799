"""Code for products with few rows, where to pack the columns would take longer than to use them once.

Each thread has a range of strips of columns. A row's sums along a strip stay in registers while the strip is read
downwards, in order, as it lies in memory.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowering.schedule.cpu.product import Place, Product
from tir_dialect.dims import ceildiv, constant, maximum
from tir_dialect.ops.loops import LoopKind

MAX_ROWS = 4
"""With more rows the packed columns are used often enough."""
VECTORS = 8
"""Sums side by side: as many as hide the latency of a fused multiply-add on two ports."""
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
            left = code.mul(strip, lanes * VECTORS)
            with code.loop(code.dim(product.m, "m"), "row") as row:
                _strip(product, {**at, **product.row_place(row)}, left, lanes)


def _strip(product: Product, row: Place, left: SSAValue, lanes: int) -> None:
    """One row times one strip of columns; those past the end are masked."""
    code, what = product.code, product.what
    n = code.dim(product.n, "n")
    places = [code.add(left, v * lanes) for v in range(VECTORS)]
    masks = [code.leading(code.sub(n, place), lanes) for place in places]
    sums = code.alloc([lanes * VECTORS], what.dtype, "sums", scope="local")
    zeros = code.zeros(what.dtype, lanes)
    for v in range(VECTORS):
        code.store(zeros, sums, [code.index(v * lanes)])
    with code.loop(code.dim(product.k, "k"), "r") as r:
        here = {**row, what.reduced[0]: r}
        element = code.splat(product.load(what.rows, here), lanes)
        for v, (place, mask) in enumerate(zip(places, masks, strict=True)):
            columns = product.load(what.columns, {**here, what.column[0]: place}, lanes, mask)
            at = [code.index(v * lanes)]
            code.store(code.fma(element, columns, code.load(sums, at, lanes)), sums, at)
    for v, (place, mask) in enumerate(zip(places, masks, strict=True)):
        value = code.load(sums, [code.index(v * lanes)], lanes)
        product.store(value, {**row, what.column[0]: place}, mask)
