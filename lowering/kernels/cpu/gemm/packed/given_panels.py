"""Columns that are packed already: the micro-kernel reads the panels in place and prefetches the next one."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import SSAValue

from lowering.kernels.cpu.gemm.cache_lines import line_starts
from lowering.kernels.cpu.gemm.micro_kernel import Prefetch, TileOperands, micro_kernel
from lowering.kernels.cpu.gemm.operands import Matrix, Operand, operand
from lowering.kernels.cpu.gemm.packed.narrow_panels import in_one_vector
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.gemm.results import Results, as_results, can_store_tiles
from lowering.kernels.cpu.gemm.tile import parts_of

NEAR = 16
"""Steps along the reduction from the one that is made to the one whose columns should be in the first-level cache."""


class GivenPanel:
    """One panel of columns.

    Panels of constants come from memory, once per run of a network, and would stall the multipliers. So while a panel
    is used, the next one is prefetched to the L2 cache, one line per step, half of it by every other strip of rows; and
    what is used soon, to L1.
    """

    def __init__(self, product: Product, coords: Coords, left: SSAValue, start: SSAValue):
        """The columns from `left` on, from `start` along the reduction."""
        self.product = product
        self.code = product.code
        self.left = left
        what = product.what
        (load,) = what.columns.loads
        self.buffer = product.kernel.flat[load.buffer]
        self.pitch = what.columns.panels or product.tiles.width
        corner = {**coords, what.reduced: start, what.column: left}
        self.columns = operand(product, what.columns, corner, what.column)
        first = product.offset(what.columns.accesses[0], corner)
        self.next = self.code.add(self.code.add(first, product.panel_jump(left)), self.code.dim(product.k * self.pitch))

    def tile(self, length: SSAValue, height: int, rows: Operand, tile: SSAValue | Results, strip: SSAValue) -> None:
        """Sums of `height` rows into the buffer `tile`, of one vector each if there are no more columns."""
        if height < self.product.tiles.rows or isinstance(tile, Results):
            self._tile(self.product, length, height, rows, tile, strip)
            return
        in_one_vector(self.product, self.left, lambda product: self._tile(product, length, height, rows, tile, strip))

    def _tile(
        self,
        product: Product,
        length: SSAValue,
        height: int,
        rows: Operand,
        tile: SSAValue | Results,
        strip: SSAValue,
    ) -> None:
        """Sums with as many vectors as the product's tiles have."""
        tiles, code, is_whole = product.tiles, self.code, product is self.product
        prefetches = tuple(Prefetch(NEAR, line, 1) for line in line_starts(product))
        position, ahead = self._ahead(length, height, strip)
        ahead = ahead if is_whole else ()  # there is no next panel behind a narrow one
        parts = parts_of(height, tiles.vectors, product.kernel.target.vector_registers)
        unroll = tiles.steps if parts == len(prefetches) == 1 else 1
        kind = replace(micro_kernel(product, height), parts=parts, prefetches=prefetches, ahead=ahead, unroll=unroll)
        later = Matrix(self.buffer, position, 1, self.pitch, tiles.lanes) if ahead else None
        if isinstance(tile, SSAValue) and height == tiles.rows and is_whole and can_store_tiles(product):
            tile = as_results(product, tile)
        where = TileOperands(rows, self.columns, code.index(0), length, tile, ahead=later)
        if height == 1:  # little code, which waits for memory: it is faster with what is known of indices here
            kind.emit(code, where)
        else:
            kind.call(product.kernel, where)

    def _ahead(self, length: SSAValue, height: int, strip: SSAValue) -> tuple[SSAValue, tuple[tuple[int, int], ...]]:
        """What the next panel has that is asked for meanwhile: as `MicroKernel.ahead`, from an element on."""
        code, half = self.code, self.pitch // 2
        if self.pitch != self.product.tiles.width:  # the next tile is in the same panel
            return self.next, ()
        if height < self.product.tiles.rows:  # no other strip may follow
            return self.next, ((0, self.pitch), (half, self.pitch))
        done = code.mul(code.mul(code.remainder(strip, 2), length), half)
        return code.add(self.next, done), ((0, half),)
