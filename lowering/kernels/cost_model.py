"""The cost model of the generators of kernels: every constant that a choice or a size depends on, with its unit.

The numbers were measured on Zen 3 and Zen 4; caches, registers and cores come from `Target`. Names begin with the
generator that they are of. M, N and K are the sizes of a GEMM, MR x NR is the register tile, KC and MC are the lengths
of blocks along K and M (Goto and van de Geijn). A MAC is one multiply-add. An `_L2_PART` of 4 means a quarter of the
second-level cache. Block sizes that follow are in `gemm/tiling.py`.
"""

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
COMPUTE_TASK_MACS = 1 << 19
"""MACs of a task of convolutions, Winograd transforms and attention. They take some five microseconds."""
TASK_ELEMENTS = 32768
"""Elements of a task of simple arithmetic. They take some ten microseconds; to wake a thread for fewer is not
profitable."""

# The memory hierarchy.

PAGE_BYTES = 4096
"""Bytes of a page of memory, at whose end prefetchers stop."""
WAY_BYTES = 4096
"""Bytes between addresses that share a set of the first-level cache, which has fewer ways than a tile has rows."""
L3_PART = 2
"""An operand that takes more than this part of the last-level cache is read from memory."""
NON_TEMPORAL_L3_PART = 2
"""A result that takes more than this part of the last-level cache is mostly evicted before it is read, so that
non-temporal stores are faster."""

# Loops, rows and sums that all generators share.

SUM_BLOCK_STEPS = 256
"""Steps of a block of a sum: long enough that the end of a block does not count."""
LONG_ROW_ELEMENTS = 256
"""From longer rows on, the remainder of an iteration of four registers is negligible."""
SEVERAL_ROWS_VECTORS = 4
"""Vectors of each of several rows in an iteration: the loads of the next one wait if addresses alias its last
stores."""
LONG_BODY_OPS = 64
"""Above so many ops per element a mask costs nothing in comparison, but two copies take twice as long to compile."""
LOOP_MAX_VECTORS = 16
"""Vectors of an iteration of a loop whose loads are shuffled, at most."""
LOOP_MAX_OPS = 128
"""Ops in them, at most."""
SHUFFLE_MAX_RUNS = 8
"""Runs of a buffer that a group of lanes reads, at most, if its loads are shuffled."""
SHUFFLE_MAX_GROUP = 256
"""Elements of such a group at most."""
BAND_ROWS = 8
"""Rows of a band: as many streams as hardware prefetchers follow."""
ROW_PREFETCH_BYTES = 4096
"""How far ahead rows that come from memory are prefetched."""
ROW_PREFETCH_L2_PART = 32
"""Rows of light passes are prefetched if they take at most this part of the second-level cache: longer ones would be
evicted."""
CHEAP_OPS = 8
"""Ops of an elementwise stage that may be computed several times, at most."""
SPLIT_MIN_MEMBERS = 16
"""Members that fill vectors. If their number is no multiple of a large power of two, groups and vectors are aligned
only after that many vectors or more."""
MANY_COLUMNS = 64
"""From so many columns on, those of further axes are multiplied by themselves: they fill register tiles."""

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
SKINNY_MAX_KC = 2 * SUM_BLOCK_STEPS
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
GEMV_MAX_PART_ROWS = GEMV_ROWS * SUM_BLOCK_STEPS
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

# Convolutions (`CONV_`), depthwise ones and Winograd.

CONV_LARGE_DILATION = 4
"""With such a dilation, a tile may have taps that are in the padding for all of its pixels, and skips them."""
CONV_MAX_PREFETCHED_LINES = 16
"""Cache lines of a block that are prefetched at once, at most."""
CONV_DEFAULT_TILES_PER_IMAGE = 4
"""Tiles of an image of unknown size at least."""
CONV_TASKS_PER_THREAD = 16
"""More tasks than threads, so that all threads end at about the same time."""
WINOGRAD_TASKS_PER_THREAD = 4
"""Blocks of tiles, or ranges of panels of them, for each thread."""
WINOGRAD_MIN_TILES = 28
"""Tiles of a block at least: each panel of weights is read once for a block, from the last-level cache or memory."""
WINOGRAD_MAX_TILES = 112
"""Tiles of a block at most."""
WINOGRAD_KC = 512
"""Steps of an accumulator at most."""
WINOGRAD_ROW_LENGTHS = (WINOGRAD_KC // 4, WINOGRAD_KC)
"""Channels for which a tile has memory: how far tiles are apart is a constant in code, and less memory is no faster."""
WINOGRAD_MAX_INLINED_TILE = 2
"""The side of tiles whose inverse transform and epilogue are code of their own: values stay in registers."""
WINOGRAD_MAX_ADDRESSES = 8
"""Rows of a register tile, each of which has an address of its own in a register, at most."""
FMA_LATENCY_CYCLES = 4
"""Cycles from the start of a multiply-add until its result can be added to."""
CONV_STALL_CYCLES = 8
"""Stall cycles of a step, divided by the number of accumulators; measured."""
CONV_LOAD_FACTOR = 1.1
"""Loads take longer than their throughput by this factor, on average: some wait for a cache line from far away."""
CONV_MAX_BLOCKS = 3
"""Channel blocks of a tile at most: the weights of more were slower for every MR."""
CONV_MAX_BLOCK_VECTORS = 4
"""Vectors in a channel block at most."""
CONV_MANY_REGISTERS = 32
"""With so many vector registers, each as wide as the multipliers, few accumulators keep the multipliers busy."""
CONV_MIN_ACCUMULATORS = 8
"""So few accumulators do."""
CONV_MIN_MR_GAIN = 0.015
"""The part of the time that one more value of MR has to save."""
CONV_FREE_MR_CHOICES = 4
"""So many values of MR need no such gain."""
CONV_SHORT_ROW_MRS = (1, 4)
"""Values of MR for rows that are shorter than the typical ones."""
CONV_FEW_BLOCK_GROUPS = 8
"""With more groups of channel blocks than these, an incomplete one does not count."""
TYPICAL_IMAGE_SIDES = (8, 10, 13, 16, 20, 26, 32, 40, 52, 64, 80, 128, *2 * (7, 14, 28, 56, 112))
"""Sides of images within networks, if nothing is known. Those that follow from an input of 224 x 224 count twice."""
CONV_L1_FRACTION = 0.3
"""The part of the first-level cache for the weights of a reduction block. Data of two tiles is there too, and
accumulators pass through."""
CONV_L1_FRACTION_MANY_REGISTERS = 0.5
"""The same for tiles with many accumulators, which take longer to spill and reload."""
CONV_CALLED_MACS = 3000
"""Multiply-adds of vectors in a tile from which on a call of a function takes no more than 1 % of its time."""
CONV_CALLED_MACS_OF_512_BITS = 700
"""The same for vectors of 512 bits, of which a tile has 28 accumulators."""
CONV_CALLED_LOOPS = (2, 3)
"""Loops of a reduction in such a function. With more, the innermost ones are so short that a function, to which steps
are no constants, takes 4 % longer. The length of a single one is a constant, and hardly any two have the same."""
DEPTHWISE_MAX_MR = 14
"""MR of a depthwise convolution at most."""
DEPTHWISE_DEFAULT_MR = 8
"""MR for rows of unknown length."""
DEPTHWISE_MAX_UNROLLED_TAPS = 16
"""Longer rows of a window are not unrolled."""
DEPTHWISE_BYTES_MAX_TAPS = 1024
"""Windows with more taps have too many weights for unrolled code: those of 31 x 31 take 32 KB of the stack."""
DEPTHWISE_BYTES_GROUP_COST = 5
"""What it takes to make a vector of dot-product groups, in units of a dot product."""

# Attention.

ATTENTION_TASKS_PER_THREAD = 4
"""More tasks than threads, so that a late thread leaves work to the others."""
ATTENTION_MAX_STRIPS = 8
"""Strips of MR rows in a block at most: each panel of keys from the second-level cache is used so often."""
ATTENTION_GROUPS = (4, 3, 2, 1)
"""Rows that share a vector of values in registers; four of them keep the multipliers busy."""
ATTENTION_PREFETCH_POSITIONS = 32
"""How many positions ahead keys and values are prefetched where their addresses are looked up, which processors do not
foresee."""
ATTENTION_MAX_FEATURES = 1024
"""Features of a head at most: longer reductions of the first GEMM would have to be blocked."""

# Reductions, row kernels and scans.

REDUCE_VECTORS = 4
"""Vector accumulators of a reduction, which hide the latency of an addition."""
COLUMNS_VECTORS = 8
"""Vectors of a single row that are accumulated at once where columns are reduced."""
COLUMNS_BAND_VECTORS = 4
"""The same of each row of a band."""
REDUCE_ROW_END_ELEMENTS = 16
"""Elements that take as long as the horizontal reduction of a vector."""
REDUCE_WINDOWS_END_ELEMENTS = 48
"""The same for a row of pooling windows, which goes through memory."""
REDUCE_MAX_SCALAR_WINDOWS = 3
"""Up to so many windows of a row are reduced one by one."""
REDUCE_MIN_TASK_ROWS = 8 * BAND_ROWS
"""Rows of a task at least: then combining its results takes little in comparison."""
REDUCE_PAGES_FROM_MEMORY = 8
"""With so many pages the end of a range hardly counts, but the partial results of all columns do."""
ONE_PASS_MIN_ELEMENTS = 64
"""With fewer elements, if their number is known, a variance in one pass is not profitable."""
ROW_PASS_ROWS = 2
"""Rows that go through a pass together."""
ROW_PASS_MIN_BYTES = 4
"""Bytes of an element of the next row, which a fused pass reads in addition."""
ROW_BLOCK_MAX_ELEMENTS = 256
"""With so many elements the rows of a block stay in the first-level cache. Longer rows hide their latencies
themselves."""
SCAN_VECTORS = 4
"""Vectors of a row that are scanned together."""
SCAN_MIN_VECTORS = 8
"""For shorter rows the ends cost more than non-temporal stores gain."""
SCAN_BLOCK_VECTORS = 128
"""Longer rows are scanned in blocks, so that their rounding errors do not add up: one more addition for each vector."""
SCAN_PREFETCHED_TASK_BYTES = 8192
"""Bytes of a row for a task at least where they are prefetched: hardware prefetchers stop at the ends of ranges."""
SCAN_TASK_BYTES = 32768
"""The same without prefetches."""

# Elementwise kernels, transposition and padding.

BROADCAST_MAX_FLAGS = 2
"""Up to so many innermost strides, every combination has a version of the loop; beyond, all ones and anything else."""
TRANSPOSE_MAX_LANES = 16
"""Lanes of a tile, and of an interleaved vector."""
TRANSPOSE_MAX_OPS = 20
"""Ops of a stage that is transposed on the way, at most."""
TRANSPOSE_TILES = 8
"""Adjacent tiles that are done before the ones below: their pages stay in the TLB."""
INTERLEAVE_MAX_COMPONENTS = 8
"""Components that are interleaved by shuffles, at most."""
INTERLEAVE_MAX_SHUFFLED = 6
"""Where masks are cheap, more components than these are faster to transpose in tiles."""
INTERLEAVE_MIN_LANES = 4
"""Lanes of a vector that is interleaved, at least."""
INTERLEAVE_SYMBOLIC_COMPONENTS = (2, 3, 4)
"""If only the call knows the number of components, there is code for these: a few channels are likely, a few pixels are
not."""
INTERLEAVE_MIN_SYMBOLIC_ELEMENTS = 256
"""Elements of a row at least, if they are known, where only the call knows the number of components."""
PAD_MIN_VECTOR_BYTES = 8
"""Vectors of fewer bytes are not used."""
