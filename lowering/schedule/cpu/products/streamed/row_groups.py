"""The rows of streamed products: blocks of groups, where the rows of a group share each loaded vector of columns."""

from __future__ import annotations

from lowering.schedule.cpu.products.product import Product
from tir_dialect.dims import Dim, ceildiv, constant, maximum, minimum

BLOCK = 256
"""Most rows of a block, which a thread takes."""
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


def block_rows(m: Dim, threads: Dim, panels: Dim, group: int) -> Dim:
    """Rows of a block, of which each panel has some: whole groups, about as many in all, and blocks for all threads."""
    one = constant(1)
    several = minimum(threads, ceildiv(EVEN * threads, maximum(panels, one)))
    blocks = maximum(maximum(ceildiv(m, constant(BLOCK)), several), one)
    return group * maximum(ceildiv(ceildiv(m, blocks), constant(group)), one)
