"""The rows of streamed products: blocks of groups, where the rows of a group share each loaded vector of columns."""

from __future__ import annotations

from lowering.kernels.cpu.gemm.product import Product
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size

BLOCK, SHORT_BLOCK = 256, 2
"""Most rows of a block, which a thread takes, and most tall groups where its output would be large."""
OUTPUT_PART = 8
"""A block's output takes such a part of the second-level cache: its panels are written one after another, and what has
one panel of each line only would go to memory in parts."""
EVEN = 4
"""Panels for each thread, of which one more than others have is not much: with fewer, threads share out rows too."""
TALLEST, GROUPS = (8, 6), (4, 3, 2, 1)
"""Rows that share a vector of columns once it is loaded: as many as the registers have room for, then fewer.

Two or three are one group: lines of columns that fall into one set of the cache come from afar again for each group.
"""


def groups(product: Product) -> tuple[int, ...]:
    """Heights of tiles, in falling order."""
    vectors, registers = product.tiles.vectors, product.kernel.target.vector_registers
    tall = next((height for height in TALLEST if (height + 1) * vectors < registers), GROUPS[0])
    return tall, *(height for height in GROUPS if height < tall)


def most_rows(product: Product, group: int) -> Dim:
    """Most rows of a block."""
    room = product.kernel.target.l2_bytes // OUTPUT_PART // byte_size(product.what.element)
    return rows_in(room, product.n, group)


def rows_in(room: int, n: Dim, group: int) -> Dim:
    """Most rows of a block whose output has room for so many elements, and `n` columns."""
    rows = minimum(floordiv(constant(room), maximum(n, constant(1))), constant(BLOCK))
    return maximum(rows, constant(SHORT_BLOCK * group))


def block_rows(m: Dim, threads: Dim, panels: Dim, group: int, most: Dim) -> Dim:
    """Rows of a block, of which each panel has some: whole groups, about as many in all, and blocks for all threads."""
    one = constant(1)
    several = minimum(threads, ceildiv(EVEN * threads, maximum(panels, one)))
    blocks = maximum(maximum(ceildiv(m, most), several), one)
    return group * maximum(ceildiv(ceildiv(m, blocks), constant(group)), one)
