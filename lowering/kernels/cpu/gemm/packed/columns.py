"""The panels of columns that a block of the reduction packs, and the prefetching of what comes next."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from lowering.kernels.cpu.gemm.cache_lines import line_ends, line_starts
from lowering.kernels.cpu.gemm.micro_kernel import Prefetch, TileOperands, masks_of, micro_kernel
from lowering.kernels.cpu.gemm.operands import Matrix, Operand, operand
from lowering.kernels.cpu.gemm.packed.column_panels import ColumnPanel, has_lines
from lowering.kernels.cpu.gemm.packed.narrow_panels import in_one_vector
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.gemm.results import Results, as_results
from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.flatten import FlattenOp
from tir_dialect.ops.memory import LoadOp


@dataclass(frozen=True)
class Part:
    """A unit of work: a block of rows times a section of the columns, for one block of the reduction."""

    block: SSAValue
    top: SSAValue
    """The first row."""
    count: SSAValue
    """How many rows there are."""
    k_block: SSAValue
    start: SSAValue
    """Where the block of the reduction begins."""
    length: SSAValue
    """How long it is."""


class PackedColumns:
    """Panels `[number, depth, width]`."""

    def __init__(self, product: Product, count: Dim, depth: Dim):
        self.product = product
        self.code = product.code
        self.tiles = product.tiles
        lanes = constant(self.tiles.lanes)
        self.depth = ceildiv(depth, lanes) * lanes
        self.buffer = self.code.alloc([count, self.depth, self.tiles.width], product.what.element, "packed_columns")
        self.offsets: SSAValue | None = None

    def prepare(self, start: SSAValue, length: SSAValue) -> None:
        """Computes how far the elements of a sum are apart, where that is the same for all panels of a block."""
        what, code = self.product.what, self.code
        if not has_lines(self.product) or len(what.columns.accesses) != 1:
            return
        self.offsets = code.alloc([self.depth], i64, "offsets")
        with code.loop(length, "r") as r:
            access = replace(what.columns.accesses[0], base=constant(0))
            offset = self.product.offset(access, {what.reduced: code.add(start, r)})
            code.store(code.value(arith.IndexCastOp(offset, i64)), self.offsets, [r])

    def operand(self, number: SSAValue) -> Matrix:
        """One of the panels for a micro-kernel."""
        code, width = self.code, self.tiles.width
        first = code.mul(number, code.dim(self.depth * width))
        return Matrix(code.value(FlattenOp(self.buffer)), first, 1, width, self.tiles.lanes)

    def panel(self, number: SSAValue) -> ColumnPanel:
        """One of the panels."""
        buffer = self.code.part(self.buffer, number, [self.depth, self.tiles.width])
        return ColumnPanel(self.product, buffer, self.offsets)


class PackedPanel:
    """One of the panels, while strips of rows use it.

    Contiguous columns are packed while the first strip is multiplied with them, which hides the latency of loading
    them.
    """

    def __init__(self, columns: PackedColumns, number: SSAValue, coords: Coords, left: SSAValue, part: Part):
        """Panel `number`, which the first block of rows packs; its first column is `left`."""
        self.product = columns.product
        self.code = columns.code
        self.tiles = columns.tiles
        self.coords, self.left, self.part = coords, left, part
        self.packed = columns.operand(number)
        if not self.is_packed_by_tile:
            with self.code.when(self.code.compare("eq", part.block, 0)):
                columns.panel(number).pack(coords, left, part.start, part.length)

    @property
    def is_packed_by_tile(self) -> bool:
        """Whether the first strip packs the panel: it has all rows of a tile, since few rows are not packed for."""
        columns, kernel = self.product.what.columns, self.product.kernel
        load = columns.value.owner
        is_plain = isinstance(load, LoadOp) and load.buffer in kernel.flat
        return is_plain and self.product.is_contiguous(columns, self.product.what.column)

    def tile(self, length: SSAValue, height: int, rows: Operand, tile: SSAValue | Results, strip: SSAValue) -> None:
        """Sums of `height` rows into the buffer `tile`: of one vector each if there are no more columns."""
        if height < self.tiles.rows or isinstance(tile, Results):
            self._tile(self.product, length, height, rows, tile)
            return
        in_one_vector(self.product, self.left, lambda product: self._tile(product, length, height, rows, tile))

    def _tile(self, product: Product, length: SSAValue, height: int, rows: Operand, tile: SSAValue | Results) -> None:
        """Sums with as many vectors as the product's tiles have."""
        prefetches = tuple(Prefetch(NEAR, line, 1) for line in line_starts(product)) if product.tiles.far else ()
        unroll = product.tiles.steps if height == product.tiles.rows else 1
        kind = replace(micro_kernel(product, height), unroll=unroll, prefetches=prefetches)
        if isinstance(tile, SSAValue) and height == self.tiles.rows and product is self.product:
            tile = as_results(product, tile)
        kind.call(product.kernel, TileOperands(rows, self.packed, self.code.index(0), length, tile))

    def packing_tile(self, height: int, rows: Operand, tile: SSAValue) -> None:
        """The same, from columns that are not packed yet, which this does."""
        code, product, what = self.code, self.product, self.product.what
        coords = {**self.coords, what.reduced: self.part.start, what.column: self.left}
        columns = operand(product, what.columns, coords, what.column)
        kind = replace(
            micro_kernel(product, height), prefetches=self._packing_prefetches, masks=masks_of(product), packs=True
        )
        count = code.sub(code.dim(product.n), self.left)
        zero, length = code.index(0), self.part.length
        prefetched = self._next_column if len(line_ends(product)) == 1 else None
        kind.call(
            product.kernel, TileOperands(rows, columns, zero, length, tile, count, self.packed, prefetched=prefetched)
        )

    @property
    def _packing_prefetches(self) -> tuple[Prefetch, ...]:
        """Where a row takes one line only, the next panel's is its neighbour, in the same page of memory."""
        ends = line_ends(self.product)
        if len(ends) > 1:
            return tuple(Prefetch(FAR, end, 2) for end in ends)
        return Prefetch(0, None, 2), Prefetch(SOON, ends[0], 1)

    @property
    def _next_column(self) -> SSAValue:
        """One in the next panel, or in this one where rows are no page apart: there prefetchers read ahead."""
        code, what, (end,) = self.code, self.product.what, line_ends(self.product)
        (access,) = what.columns.accesses
        apart = code.dim(access.strides[what.reduced[-1]] * byte_size(what.element))
        return code.select(code.compare("sge", apart, PAGE_BYTES), code.index(end + self.tiles.width), code.index(end))


NEAR, SOON, FAR = 24, 16, 32
"""Steps along the reduction from the one that is made to the one that is asked for: from the second-level cache, from
further away where the next panel's line has been asked for already, and where it has not."""
PAGE_BYTES = 4096
"""Of memory, at whose ends prefetchers stop."""
