"""The cost model of the GEMM generators: every constant that a choice or a size depends on, with its unit, and the
block sizes that follow (Goto): the register tile MR x NR, and the blocks KC and MC that the caches hold.

The numbers were measured on Zen 3 and Zen 4; caches, registers and cores come from `Target`. Names follow the
generators: `PACKED_`, `SKINNY_`, `TALL_`, `SMALL_M_`, `SMALL_N_`, `SWAP_`, `GEMV_`, `DOT_`, `LONG_DOT_`, `DIRECT_`,
`DOT_GROUP_`. M, N and K are the sizes of a GEMM, MR x NR is the register tile, KC and MC are the lengths of blocks
along K and M. A MAC is one multiply-add. An `_L2_PART` of 4 means a quarter of the second-level cache.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from lowering.kernels.emit.accumulators import MOST
from lowering.kernels.structure.contraction import Contraction, from_panels
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size
from tir_dialect.target import Target

# Tasks: how much work a thread gets at least.

TASK_MACS = 1 << 17
"""MACs of a task whose operands are read once, as of skinny GEMM and GEMV. Their operands are half a megabyte of `f32`,
about what a core reads while another one is woken."""
PACKED_TASK_MACS = 3 << 17
"""MACs of a task of the packed GEMM. They take some four microseconds; to wake a thread for less is not profitable."""
DOT_GROUP_TASK_MACS = 1 << 21
"""MACs of a task on dot-product groups. They take some five microseconds, as an instruction makes four times as
many."""
TASK_WEIGHTS = 1 << 17
"""Elements of weights packed at build time, for a task. They are half a megabyte, which takes some thirty microseconds
to come from memory; threads wait for it side by side."""
TASK_COPIED_ELEMENTS = 1 << 14
"""Elements that a task copies or packs at least: to copy so many takes longer than to wake a thread."""
UNBOUNDED = 1 << 20
"""More strips or panels than there are. Multiplied with a difference it makes a condition of sizes: `min(a, UNBOUNDED *
d)` is `a` for a positive `d`."""

# The memory hierarchy.

PAGE_BYTES = 4096
"""Bytes of a page of memory, at whose end prefetchers stop."""
WAY_BYTES = 4096
"""Bytes between addresses that share a set of the first-level cache, which has fewer ways than a tile has rows."""
L3_PART = 2
"""An operand that takes more than this part of the last-level cache is read from memory."""

# Block sizes (`tiling`).

MIN_KC = 64
"""Steps: shorter K blocks would go to memory and back too often."""
KC_L2_PART = 16
"""A panel of KC x NR takes this part of the second-level cache, which leaves room for what is used next."""
MC_L2_PART = 2
"""The packed rows, MC x KC, take this part of the second-level cache beside such panels."""
KC_L1_PART = 2
"""A panel takes this part of the first-level cache where that is as large as a 16th of the second-level one: then
panels stay there."""
MC_L2_SIXTEENTHS = 5
"""The packed rows take so many 16ths of the second-level cache there, which leaves room for other work."""

# Register tiles and the micro-kernel.

ACCUMULATORS_IN_FLIGHT = 16
"""Vector accumulators of a low tile. Eight keep the multipliers busy, more hide that one waits for memory."""
DOT_GROUP_ACCUMULATORS = 12
"""The same of a tile of dot-product groups."""
LONG_EPILOGUE_OPS = 12
"""Ops of an epilogue that depend on each other, from which on it takes turns with that of another row."""
MAX_K_SPLITS = 4
"""Independent accumulators of each element of a low tile, each for a slice of K."""

# Prefetch distances of the micro-kernel, in steps along K.

PACKED_PREFETCH_STEPS = 24
"""For packed columns, which come from the second-level cache."""
NEIGHBOUR_PREFETCH_STEPS = 16
"""For columns that are packed on the way, whose cache line was prefetched from beyond the L2 cache by the panel
before.
"""
FAR_PREFETCH_STEPS = 32
"""For columns that are packed on the way and come from beyond the L2 cache."""
WEIGHT_PREFETCH_STEPS = 16
"""For weights that were packed at build time, from the second-level cache to the first."""
PACKING_PREFETCH_ROWS = 2
"""Rows after the one that is packed: prefetchers do not know that a row goes on there."""

# Packed GEMM: the partition of strips (MR rows) and panels (NR columns) among tasks.

PACKED_BYTES = 1 << 24
"""Bytes of packed columns of all tasks at most, or half of the last-level cache if that is less. More would not be kept
for the next call, for which the system would fill every page with zeros first."""
PANELS_PER_TASK = 64
"""Strips or panels of a task: with fewer, packing takes more than half a per cent of its time."""
PACKED_TASKS_PER_THREAD = 4
"""Tasks of a thread where tasks are long, so that a late thread leaves work to the others."""
STRIPS_PER_PANEL = 2
"""With more strips for each panel, the rows are partitioned: else they are packed again for each chunk of columns."""
UNEVEN_STRIPS = 20
"""Strips by which a GEMM has to differ from a square one before its columns are partitioned where a row of a panel is a
single cache line. Such panels take longer to pack, but chunks of few panels are uneven."""

# Skinny GEMM: operands read in place.

SKINNY_MAX_M = 16
"""Rows: with more the packed columns are used often enough."""
SKINNY_MAX_N = 64
"""Columns: with more the packed rows are used often enough."""
ONE_LINE_MAX_M = 4
"""`SKINNY_MAX_M` where a row of a panel is one cache line, far from the next: then packing is profitable sooner."""
ONE_LINE_MAX_PANELS = 2
"""`SKINNY_MAX_N` there, in panels."""
SKINNY_MIN_KC = 32
"""Steps of a K block at least: as many rows of memory are read side by side."""
SKINNY_KC_PER_ROW = 8
"""Steps of a K block for each row: the more rows, the more accumulators go to memory and back after each block."""
SKINNY_MAX_KC_BY_M = 96
"""Steps to which more rows lengthen a K block at most."""
SKINNY_BLOCK_ELEMENTS = 1 << 13
"""Elements of a K block with small N: they stay in the first-level cache while the rows of a block use them."""
SKINNY_LONG_BLOCK_ELEMENTS = 1 << 15
"""The same where a row of a panel has several cache lines, of which fewer come from beyond the L2 cache."""
SKINNY_MAX_KC = 2 * MOST
"""Steps of a K block at most: accumulators that take more numbers would be rounded too often."""
SKINNY_NEAR_L2_PART = 4
"""Columns that take this part of the second-level cache, in rows of several cache lines, are read there for each block
of rows as fast as they are packed for all."""
SKINNY_BLOCK_ROWS = 256
"""Rows of a block at most, which a thread takes."""
SKINNY_SHORT_BLOCK_GROUPS = 2
"""Groups of rows of a block at least, whatever its output takes."""
SKINNY_OUTPUT_L2_PART = 8
"""A block's output takes this part of the second-level cache. Its panels are written one after the other; of a longer
output, cache lines that have one panel's columns only would go to memory in parts."""
SKINNY_PANELS_PER_THREAD = 4
"""Panels for each thread, of which one more than others have is not much: with fewer, rows are partitioned too."""
SKINNY_TALL_GROUPS = (8, 6)
"""Rows of the tallest groups, which share a vector of columns once it is loaded, if registers have room for them."""
SKINNY_GROUPS = (4, 3, 2, 1)
"""Rows of the other groups. Two or three rows are one group: cache lines of columns that fall into one set come from
memory again for each group."""

# Tall-skinny GEMM: many rows, packed columns.

TALL_MIN_M = 64
"""Rows: for fewer it is not profitable to pack columns."""
TALL_MAX_N = 64
"""Columns: with more, packed rows are used often enough."""
TALL_M_PER_COLUMN = 8
"""So many rows for each column make more columns profitable, where tiles are low and the number of rows is known only:
another version of every GEMM would take longer to compile than it gains."""
TALL_LOW_MR = 6
"""Rows of a low tile: one set of the first-level cache has room for all. Higher tiles were not measured."""
TALL_COLUMNS_L2_PART = 2
"""Packed columns take at most this part of the second-level cache."""
TALL_ROWS_L2_PART = 4
"""Rows take more than this part of the second-level cache."""

# Small M: the rows of B are read along their whole length.

SMALL_M_MIN_M = 2
"""One row is a GEMV."""
SMALL_M_MAX_M = 16
"""Rows: with more, packed columns are used often enough."""
SMALL_M_MIN_N = 64
"""Columns: shorter rows of B are not profitable."""
SMALL_M_N_PER_ROW = 36
"""Columns of each thread, for each row, where vectors are whole cache lines: shorter ones are nearly as fast in a
skinny GEMM, which has no elements of all rows to broadcast before each row of B."""
SMALL_M_MIN_K = 96
"""Steps where vectors are whole cache lines: for fewer, accumulators go through the caches all the more often."""
SMALL_M_NARROW_SHAPE = (4, (4, 3, 2))
"""Rows of B that are read side by side, and rows of A of a group, for 16 registers."""
SMALL_M_WIDE_SHAPE = (6, (6, 5, 4, 3, 2))
"""The same for 32 registers and vectors that are whole cache lines."""
SMALL_M_BURST_ROWS = 4
"""Groups of at most so many rows prefetch in bursts: memory takes longer than their multiply-adds."""
SMALL_M_BURST = 16
"""Vectors of a row of B that are prefetched at once then."""
SMALL_M_UNIT_BYTES = 256
"""Bytes of columns that are not partitioned among threads: some cache lines."""
SMALL_M_L2_PART = 4
"""The accumulators of a block take at most this part of the second-level cache. In the first level they would be
nearer, but rows of a block shorter, and prefetchers begin with each row anew."""

# Small N, and the columns after the last whole panel.

SMALL_N = 7
"""Columns in all: with more, a vector of columns takes less time."""
REMAINDER_COLUMNS = 4
"""Columns after the last whole panel that are multiplied separately: for more, a vector of columns takes less time. It
is also the width of a group of columns."""
SMALL_N_K_PER_COLUMN = 8
"""Steps of K for each column: the lanes of an accumulator are added up at its end."""
SMALL_N_M_PER_COLUMN = 8
"""Rows for each column that is copied, where there are more columns than a group has."""
REMAINDER_MIN_M = 16
"""Rows, if known: with no more, columns are what takes time, and a panel reads them once."""
SMALL_N_ACCUMULATORS = 12
"""Vector accumulators of a tile with 16 registers: they leave room for what is multiplied."""
SMALL_N_L2_PART = 4
"""Rows that are multiplied with several groups of columns take this part of the second-level cache."""

# Operand swap: `C^T = B^T A^T` for small N and a transposed A.

SWAP_MAX_N = 8
"""Columns: with more, a tile of the skinny GEMM has a vector of them."""
SWAP_MIN_K = 32
"""Steps: shorter accumulations take no longer than the transposition of their results."""

# GEMV: one row, a matrix with contiguous columns.

GEMV_ROWS = 7
"""Rows of the matrix that are read side by side. With the accumulators they are as many as a set of the first-level
cache has ways, and all may fall into one."""
GEMV_VECTORS = 4
"""Vectors of each row that are taken at once: loads right after a store wait if their addresses end as it does."""
GEMV_BLOCK_BYTES = 4096
"""Bytes of accumulators that are made before the next ones, and of each row: a page, at whose end prefetchers stop."""
GEMV_FAR_BLOCKS = 4
"""Times that length for a matrix from memory, where it takes longer until prefetchers start, and for any matrix where a
vector is no whole cache line."""
GEMV_MAX_PARTS = 48
"""Chunks of the rows, each with accumulators of its own: many numbers of threads divide it, and it takes little time to
add up so few."""
GEMV_MAX_PART_ROWS = GEMV_ROWS * MOST
"""Rows of a chunk, unless there are very many: as many iterations as an accumulator may take numbers."""

# Dot products: both operands contiguous along K.

DOT_ROWS = (3, 2, 1)
"""Rows that share vectors of columns, four columns at a time: their accumulators fill 16 registers."""
DOT_WIDE_LANES = 16
"""Lanes of long vectors, whose accumulators are reduced for several rows at once."""
DOT_ANY_K_M = 4
"""Rows that are few for any K."""
DOT_K_PER_ROW = 8
"""Steps of K for one more row: lanes are added up at the end of each accumulation, while columns are transposed once
for all rows if they are packed."""
DOT_WIDE_K_PER_ROW = 5
"""The same for long vectors."""
DOT_STREAMS = 4
"""Columns that are read side by side: a set of the first-level cache has room for them, and all may fall into one."""
LONG_DOT_MAX_M = 1
"""Rows: more of them share a vector of columns once it is loaded."""
LONG_DOT_MIN_K = 512
"""Elements of a row for which it is profitable to treat its ends apart."""
LONG_DOT_WHOLE_LINES = (1, 4)
"""Rows that are read side by side, and vectors of each with an accumulator of its own, where a vector is a whole cache
line: prefetchers follow a single stream best."""
LONG_DOT_SHORT_VECTORS = (4, 2)
"""The same where a vector is shorter than a cache line."""

# Direct contractions: depthwise convolutions and windows with few filters, without packing.

DIRECT_MAX_K = 64
"""Steps: longer accumulations, or those of unknown length, are direct only if windows overlap."""
DIRECT_MAX_FILTERS = 4
"""Filters: with more it is profitable to pack the windows."""
DIRECT_MAX_WINDOW_STEP = 64
"""Elements: windows whose elements are further apart do not overlap."""
DIRECT_MAX_UNROLLED = 32
"""Multiply-adds of a tile that are unrolled."""
DIRECT_VECTORS = 8
"""Vectors of a tile: enough that no multiply-add waits for the one before."""
DIRECT_FEW_VECTORS = 3
"""Vectors of the tiles for what is left of a row."""
DIRECT_TILES_PER_UNIT = 8
"""Tiles of a row in a unit of work."""
DIRECT_ROWS_PER_UNIT = 8
"""Rows of the output in a unit of work."""
DIRECT_TASKS_PER_THREAD = 8
"""Tasks of a thread, times the number of other threads."""

# Dot-product groups: bytes and `bf16`.

DOT_GROUP_PANEL_VECTORS = 2
"""Vectors of a panel: with 32 registers, tiles have 14 rows; with 16, 6."""
TILE_REGISTERS = (DOT_GROUP_PANEL_VECTORS, (32, 16), 1)
"""The tile in tile registers: two by two of them, or one by two; rows that are missing take no time less."""
DOT_GROUP_MIN_MR = 1
"""Rows of the lowest tile."""
DOT_GROUP_NEAR_L2_PART = 4
"""Packed columns that one block of rows needs take this part of the second-level cache."""
BYTE_PAIRS_SMALL_M = 8
"""Rows with which it takes longer to test a panel for steps that cannot saturate than to multiply it in 16 bits; there
have to be more, as a convolution has for each image, where weights are packed for that.
"""
DOT_GROUP_SMALL_M = 2
"""Rows of `bf16` that are multiplied one by one before it is profitable to pack columns, and rows of bytes that take
less time in vector registers than in tile registers."""
DOT_GROUP_STRIPS_PER_PANEL = 4
"""With more strips for each panel, tasks have strips of their own and all panels: else packing rows again, by copying,
takes less time than packing columns again, by transposing."""
BLOCK_DOT_MAX_M = 2
"""Rows that are multiplied with block-quantised weights that are decoded anew for each."""
BLOCK_INT16_DOT_MAX_M = 1
"""The same where more are multiplied with panels of pairs of 16 bits, unless lanes lie along K."""
BLOCK_PANEL_L2 = 2
"""Rows that are multiplied with the same decoded columns take so many times the second-level cache at most."""
BLOCK_PANEL_MIN_ROWS = 64
"""As many are multiplied with them, whatever they take: to decode the columns takes as long as some three rows."""
BLOCK_PANEL_WIDE_ROWS = (6, 4, 2, 1)
"""Rows that share vectors of decoded columns, with 32 registers; with 16, `DOT_ROWS`."""
BLOCK_DOT_ROWS = 4
"""Rows of block-quantised weights that are decoded side by side."""
FLOAT_BITS = 32
"""Bits of rows that are multiplied with block-quantised weights where they are not rounded."""
BLOCK_ACTIVATION_BITS = 24
"""Bits to which such rows are rounded where there are dot products of bytes: some at a time in tile registers, else a
few."""
BLOCK_INT16_BITS = 16
"""The same where there are sums of two products of 16 bits only."""
ATTENTION_BITS = 24
"""Bits of numbers in attention over pages, where there are tile registers."""
BLOCK_ROWS_L2_PART = 4
"""A row that is quantised for that takes at most this part of the second-level cache, with its copies."""
BLOCK_VECTORS = 2
"""Vectors of blocks that are multiplied with the same words of a row, which are loaded once for them."""
BLOCK_TILE_MIN_M = 16
"""Rows from which on decoding for tile registers, which takes longer than for vector registers, is profitable."""
BLOCK_TILES = 20
"""Tiles of block-quantised weights that are decoded before the rows pass by: at most so many,"""
BLOCK_TILES_L2_PART = 2
"""and as take this part of the second-level cache."""
BLOCK_INT16_SIDE = 4
"""Blocks of a row that have accumulators of their own, where lanes lie along K: at most so many."""
BLOCK_INT16_PANEL_VECTORS = 2
"""Vectors of a panel of block-quantised weights in pairs of 16 bits."""
BLOCK_INT16_PANEL_ROWS = (6, 4, 2)
"""Rows of its register tiles, with 16 registers."""
BLOCK_INT16_PANEL_WIDE_ROWS = (12, 6, 2)
"""The same with 32 registers."""
BLOCK_PREFETCH_BYTES = 8192
"""How far ahead block-quantised weights are prefetched, at least."""


@dataclass(frozen=True)
class Tiling:
    """Block sizes, in elements; in the terms of Goto and van de Geijn, NR is the width of the register tile and
    MR its height.
    """

    lanes: int
    """Elements of one vector register."""
    vectors: int
    """Vector registers in a row of the tile."""
    mr_sizes: tuple[int, ...]
    """MR, and the rows of the smaller tiles for the last rows, in falling order."""
    kc: int
    """KC: the length of a K block, whole vectors. Packed panels are so long and stay in the second-level cache."""
    mc: int
    """MC: the rows that are packed at once, a multiple of MR. They stay in the same cache."""

    steps: int = 1
    """Steps of K in an iteration of the micro-kernel's loop."""
    low: tuple[int, ...] = ()
    """Still smaller tiles, where no other generator takes a small M."""
    far: bool = False
    """Whether packed panels are larger than the first-level cache, so that their cache lines are prefetched."""

    @property
    def mr(self) -> int:
        """MR, the rows of the tile."""
        return self.mr_sizes[0]

    @property
    def nr(self) -> int:
        """NR, the columns of the tile."""
        return self.lanes * self.vectors


Tile: TypeAlias = tuple[int, tuple[int, ...], int]
"""Vectors of a row, heights and steps, as in `Tiling`."""


def chosen_tile(target: Target) -> Tile:
    """The tile that a search has chosen for a kernel, where it has, and else the usual one."""
    vectors, mr_sizes, steps = target.usual_tile
    if rows := target.schedule.tile_rows:
        mr_sizes = (rows, *([mr for mr in mr_sizes if mr < rows] or [max(1, rows // 2)][: rows - 1]))
    return target.schedule.tile_vectors or vectors, mr_sizes, target.schedule.tile_steps or steps


def tiling(target: Target, element_bytes: int, longest: int | None = None, tile: Tile | None = None) -> Tiling:
    """The blocks for a tile, the usual one unless another is given; a K block has at most `longest` steps."""
    lanes = target.lanes(8 * element_bytes)
    vectors, mr_sizes, steps = tile or target.usual_tile
    panel, rows = _rooms(target)
    depth = max(MIN_KC, panel // (vectors * lanes * element_bytes) // lanes * lanes)
    depth = min(longest or depth, depth)
    far = depth * vectors * lanes * element_bytes > target.l1_bytes
    packed = max(1, rows // (depth * element_bytes * mr_sizes[0]))
    low = tuple(mr for mr in (4, 1) if mr < mr_sizes[-1])
    return Tiling(lanes, vectors, mr_sizes, depth, mr_sizes[0] * packed, steps, low, far)


def _rooms(target: Target) -> tuple[int, int]:
    """Bytes for a panel of columns, and for the packed rows.

    The longer a K block, the less often accumulators go to memory and back; but what is used next, and the output, need
    room beside it. Where the first-level cache has room for such a panel, half of it is better: then panels stay there.
    """
    panel = target.l2_bytes // KC_L2_PART
    if panel > target.l1_bytes:
        return panel, target.l2_bytes // MC_L2_PART
    return target.l1_bytes // KC_L1_PART, target.l2_bytes * MC_L2_SIXTEENTHS // 16


def for_panels(tiles: Tiling, target: Target, element_bytes: int, length: int | None, longest: int | None) -> Tiling:
    """The blocks for columns that lie in panels: these are read from the second-level cache, so K blocks are long."""
    lanes = tiles.lanes
    most = max(MIN_KC, target.l2_bytes // KC_L2_PART // (tiles.nr * element_bytes) // lanes * lanes)
    most = min(longest or most, most)
    k_blocks = max(1, -(-(length or most) // most))
    depth = max(lanes, -(-(length or most) // (lanes * k_blocks)) * lanes)
    packed = max(1, target.l2_bytes // MC_L2_PART // (depth * element_bytes * tiles.mr))
    return replace(tiles, kc=depth, mc=tiles.mr * packed)


def with_tiles(contraction: Contraction, target: Target) -> tuple[Contraction, Tiling]:
    """A contraction on a machine: its columns are in panels only if these are as wide as a tile."""
    size = byte_size(contraction.element)
    tiles = tiling(target, size, contraction.longest, chosen_tile(target))
    contraction = from_panels(contraction, tiles.nr)
    if contraction.columns.panels is None:
        return contraction, tiles
    length = product_of(contraction.stage.extents[axis] for axis in contraction.reduced).constant_value
    return contraction, for_panels(tiles, target, size, length, contraction.longest)
