"""Panels of B that a micro-kernel reads, packed by a task or at build time, and prefetches of what comes next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    FAR_PREFETCH_STEPS,
    NEIGHBOUR_PREFETCH_STEPS,
    PACKED_PREFETCH_STEPS,
    PAGE_BYTES,
    WEIGHT_PREFETCH_STEPS,
)
from lowering.kernels.gemm.epilogue import OutputTile, as_output_tile, can_store_tiles
from lowering.kernels.gemm.micro_kernel import (
    Matrix,
    Operand,
    Prefetch,
    TileOperands,
    masks_of,
    micro_kernel,
    operand,
)
from lowering.kernels.gemm.packing import ColumnPanel, has_window_rows
from lowering.kernels.gemm.problem import Coords, Gemm, cache_line_ends, cache_line_starts
from lowering.kernels.gemm.register_tile import has_remainder, k_splits
from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.blocks import FlattenOp
from tir_dialect.ops.memory import LoadOp


def emit_last_panel(gemm: Gemm, left: SSAValue, emit: Callable[[Gemm], None]) -> None:
    """Emits the panel whose first column is `left`: in tiles of one vector if that has all its columns."""
    if not _may_be_narrow(gemm):
        emit(gemm)
        return
    code, lanes = gemm.code, gemm.tiles.lanes
    with code.when(code.compare("sle", code.sub(code.dim(gemm.n), left), lanes)) as branch:
        emit(replace(gemm, tiles=replace(gemm.tiles, vectors=1)))
    with code.otherwise(branch):
        emit(gemm)


def _may_be_narrow(gemm: Gemm) -> bool:
    """Whether one vector may hold the columns of the last panel."""
    known = gemm.n.constant_value
    if known is not None and has_remainder(gemm, gemm.tiles.nr):
        return False
    return gemm.tiles.vectors > 1 and (known is None or 0 < known % gemm.tiles.nr <= gemm.tiles.lanes)


@dataclass(frozen=True)
class PackedBlock:
    """A unit of work: a block of rows times a section of the columns, for one K block."""

    block: SSAValue
    top: SSAValue
    """The first row."""
    count: SSAValue
    """How many rows there are."""
    k_block: SSAValue
    start: SSAValue
    """Where the K block begins."""
    length: SSAValue
    """Its length, in steps."""


class PackedColumns:
    """Panels `[number, depth, width]`."""

    def __init__(self, gemm: Gemm, count: Dim, depth: Dim):
        self.gemm = gemm
        self.code = gemm.code
        self.tiles = gemm.tiles
        lanes = constant(self.tiles.lanes)
        self.depth = ceildiv(depth, lanes) * lanes
        self.buffer = self.code.alloc([count, self.depth, self.tiles.nr], gemm.contraction.element, "packed_columns")
        self.offsets: SSAValue | None = None

    def prepare(self, start: SSAValue, length: SSAValue) -> None:
        """Computes the offsets of the steps of K, where they are the same for all panels of a block."""
        contraction, code = self.gemm.contraction, self.code
        if not has_window_rows(self.gemm) or len(contraction.columns.accesses) != 1:
            return
        self.offsets = code.alloc([self.depth], i64, "offsets")
        with code.loop(length, "r") as r:
            access = replace(contraction.columns.accesses[0], base=constant(0))
            offset = self.gemm.offset(access, {contraction.reduced: code.add(start, r)})
            code.store(code.value(arith.IndexCastOp(offset, i64)), self.offsets, [r])

    def operand(self, number: SSAValue) -> Matrix:
        """One of the panels for a micro-kernel."""
        code, width = self.code, self.tiles.nr
        first = code.mul(number, code.dim(self.depth * width))
        return Matrix(code.value(FlattenOp(self.buffer)), first, 1, width, self.tiles.lanes)

    def panel(self, number: SSAValue) -> ColumnPanel:
        """One of the panels."""
        buffer = self.code.part(self.buffer, number, [self.depth, self.tiles.nr])
        return ColumnPanel(self.gemm, buffer, self.offsets)


class PackedPanel:
    """One of the panels, while strips of rows use it.

    Contiguous columns are packed while the first strip is multiplied with them, which hides the latency of loading
    them.
    """

    def __init__(self, columns: PackedColumns, number: SSAValue, coords: Coords, left: SSAValue, chunk: PackedBlock):
        """Panel `number`, which the first block of rows packs; its first column is `left`."""
        self.gemm = columns.gemm
        self.code = columns.code
        self.tiles = columns.tiles
        self.coords, self.left, self.part = coords, left, chunk
        self.packed = columns.operand(number)
        if not self.is_packed_by_tile:
            with self.code.when(self.code.compare("eq", chunk.block, 0)):
                columns.panel(number).pack(coords, left, chunk.start, chunk.length)

    @property
    def is_packed_by_tile(self) -> bool:
        """Whether the first strip packs the panel: it has all rows of a tile, since nothing is packed for a small M."""
        columns, kernel = self.gemm.contraction.columns, self.gemm.kernel
        load = columns.value.owner
        is_plain = isinstance(load, LoadOp) and load.buffer in kernel.flat
        return is_plain and self.gemm.is_contiguous(columns, self.gemm.contraction.column)

    def tile(self, length: SSAValue, mr: int, rows: Operand, tile: SSAValue | OutputTile, strip: SSAValue) -> None:
        """Emits a tile of `mr` rows into the buffer `tile`, of one vector each if there are no more columns."""
        if mr < self.tiles.mr or isinstance(tile, OutputTile):
            self._tile(self.gemm, length, mr, rows, tile)
            return
        emit_last_panel(self.gemm, self.left, lambda gemm: self._tile(gemm, length, mr, rows, tile))

    def _tile(self, gemm: Gemm, length: SSAValue, mr: int, rows: Operand, tile: SSAValue | OutputTile) -> None:
        """Emits a tile with as many vectors as the GEMM's tiles have."""
        prefetches = (
            tuple(Prefetch(PACKED_PREFETCH_STEPS, cache_line, 1) for cache_line in cache_line_starts(gemm))
            if gemm.tiles.far
            else ()
        )
        unroll = gemm.tiles.steps if mr == gemm.tiles.mr else 1
        kind = replace(micro_kernel(gemm, mr), unroll=unroll, prefetches=prefetches)
        if isinstance(tile, SSAValue) and mr == self.tiles.mr and gemm is self.gemm:
            tile = as_output_tile(gemm, tile)
        kind.call(gemm.kernel, TileOperands(rows, self.packed, self.code.index(0), length, tile))

    def packing_tile(self, mr: int, rows: Operand, tile: SSAValue) -> None:
        """Emits a tile from columns that are not packed yet, and packs them."""
        code, gemm, contraction = self.code, self.gemm, self.gemm.contraction
        coords = {**self.coords, contraction.reduced: self.part.start, contraction.column: self.left}
        columns = operand(gemm, contraction.columns, coords, contraction.column)
        kind = replace(micro_kernel(gemm, mr), prefetches=self._packing_prefetches, masks=masks_of(gemm), packs=True)
        count = code.sub(code.dim(gemm.n), self.left)
        zero, length = code.index(0), self.part.length
        prefetched = self._next_column if len(cache_line_ends(gemm)) == 1 else None
        kind.call(
            gemm.kernel, TileOperands(rows, columns, zero, length, tile, count, self.packed, prefetched=prefetched)
        )

    @property
    def _packing_prefetches(self) -> tuple[Prefetch, ...]:
        """Where a row of a panel is one cache line, the next panel's is its neighbour, in the same page of memory."""
        ends = cache_line_ends(self.gemm)
        if len(ends) > 1:
            return tuple(Prefetch(FAR_PREFETCH_STEPS, end, 2) for end in ends)
        return Prefetch(0, None, 2), Prefetch(NEIGHBOUR_PREFETCH_STEPS, ends[0], 1)

    @property
    def _next_column(self) -> SSAValue:
        """The column to prefetch: in the next panel, or in this one where rows are no page apart and prefetchers read
        ahead.
        """
        code, contraction, (end,) = self.code, self.gemm.contraction, cache_line_ends(self.gemm)
        (access,) = contraction.columns.accesses
        apart = code.dim(access.strides[contraction.reduced[-1]] * byte_size(contraction.element))
        return code.select(code.compare("sge", apart, PAGE_BYTES), code.index(end + self.tiles.nr), code.index(end))


class WeightPanel:
    """One panel of weights that were packed at build time.

    They come from memory, once per run of a network, and would stall the multipliers. So while a panel is used, the
    next one is prefetched to the L2 cache, one cache line per step, half of it by every other strip of rows; and what
    is used soon, to L1.
    """

    def __init__(self, gemm: Gemm, coords: Coords, left: SSAValue, start: SSAValue):
        """The columns from `left` on, from `start` along K."""
        self.gemm = gemm
        self.code = gemm.code
        self.left = left
        contraction = gemm.contraction
        (load,) = contraction.columns.loads
        self.buffer = gemm.kernel.flat[load.buffer]
        self.pitch = contraction.columns.panels or gemm.tiles.nr
        corner = {**coords, contraction.reduced: start, contraction.column: left}
        self.columns = operand(gemm, contraction.columns, corner, contraction.column)
        first = gemm.offset(contraction.columns.accesses[0], corner)
        self.next = self.code.add(self.code.add(first, gemm.panel_jump(left)), self.code.dim(gemm.k * self.pitch))

    def tile(self, length: SSAValue, mr: int, rows: Operand, tile: SSAValue | OutputTile, strip: SSAValue) -> None:
        """Emits a tile of `mr` rows into the buffer `tile`, of one vector each if there are no more columns."""
        if mr < self.gemm.tiles.mr or isinstance(tile, OutputTile):
            self._tile(self.gemm, length, mr, rows, tile, strip)
            return
        emit_last_panel(self.gemm, self.left, lambda gemm: self._tile(gemm, length, mr, rows, tile, strip))

    def _tile(
        self,
        gemm: Gemm,
        length: SSAValue,
        mr: int,
        rows: Operand,
        tile: SSAValue | OutputTile,
        strip: SSAValue,
    ) -> None:
        """Emits a tile with as many vectors as the GEMM's tiles have."""
        tiles, code, is_whole = gemm.tiles, self.code, gemm is self.gemm
        prefetches = tuple(Prefetch(WEIGHT_PREFETCH_STEPS, cache_line, 1) for cache_line in cache_line_starts(gemm))
        position, ahead = self._ahead(length, mr, strip)
        ahead = ahead if is_whole else ()  # there is no next panel after a narrow one
        chunks = k_splits(mr, tiles.vectors, gemm.kernel.target.vector_registers)
        unroll = tiles.steps if chunks == len(prefetches) == 1 else 1
        kind = replace(micro_kernel(gemm, mr), parts=chunks, prefetches=prefetches, ahead=ahead, unroll=unroll)
        later = Matrix(self.buffer, position, 1, self.pitch, tiles.lanes) if ahead else None
        if isinstance(tile, SSAValue) and mr == tiles.mr and is_whole and can_store_tiles(gemm):
            tile = as_output_tile(gemm, tile)
        where = TileOperands(rows, self.columns, code.index(0), length, tile, ahead=later)
        if mr == 1:  # little code, which waits for memory: it is faster with what is known about indices here
            kind.emit(code, where)
        else:
            kind.call(gemm.kernel, where)

    def _ahead(self, length: SSAValue, mr: int, strip: SSAValue) -> tuple[SSAValue, tuple[tuple[int, int], ...]]:
        """What of the next panel is prefetched meanwhile: as `MicroKernel.ahead`, from an element on."""
        code, half = self.code, self.pitch // 2
        if self.pitch != self.gemm.tiles.nr:  # the next tile is in the same panel
            return self.next, ()
        if mr < self.gemm.tiles.mr:  # no other strip may follow
            return self.next, ((0, self.pitch), (half, self.pitch))
        done = code.mul(code.mul(code.remainder(strip, 2), length), half)
        return code.add(self.next, done), ((0, half),)
