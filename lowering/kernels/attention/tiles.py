"""Attention over pages in tile registers: queries, keys, values and shares are sums of parts of `bf16`.

Three parts have the 24 bits of a number, as in `block_tiles`; the product of two numbers is that of their greater
parts. For every batch keys and values become parts, two numbers of a dot-product group side by side: features of a key,
or positions of a value. Then 32 rows at a time go through the first GEMM, the chain along each row, and the second one.

A query or a key with an infinite feature has scores that are NaN. Parts that are subnormal count as zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from typing_extensions import override
from xdsl.dialects import arith
from xdsl.dialects.builtin import bf16, f32, i32
from xdsl.ir import SSAValue

from lowering.kernels.attention.pattern import Attention
from lowering.kernels.attention.streamed import PackedAttention, Panels, Rows, StreamedAttention
from lowering.kernels.cost_model import ATTENTION_BITS, SKINNY_MAX_M, TILE_REGISTERS
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.emit.vectorization import shuffle, transposed
from lowering.kernels.gemm.dot_group_contraction import has_tile_registers
from lowering.kernels.gemm.dot_group_micro_kernel import GROUP_BYTES, TILE_STEP, bf16_parts, view
from lowering.kernels.gemm.problem import Gemm
from lowering.kernels.gemm.tiling import tiling
from lowering.kernels.structure.contraction import Epilogue
from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.tile_registers import (
    COLUMNS,
    LAST_COLUMNS,
    LAST_ROWS,
    ROWS,
    TILE_SIZE,
    ConfigureTilesOp,
    DotTilesOp,
    LoadTileOp,
    ReleaseTilesOp,
    StoreTileOp,
    ZeroTileOp,
)
from tir_dialect.types import BufferType

SIDES = 2
"""Registers of rows, and of columns."""
PAIRS = {1: [(0, 0)], 2: [(0, 1), (0, 0), (1, 0)], 3: [(0, 2), (0, 1), (1, 1), (1, 0), (0, 0), (2, 0)]}
"""By the number of parts, those whose products are added: each pair shares a part with the one before. All
accumulators take a pair before the next one, as an instruction waits for the last one on the same accumulators.
"""


def attention_parts(kernel: Kernel, attention: Attention) -> int | None:
    """How many parts numbers have in tile registers, if attention over pages suits these."""
    target, bits = kernel.target, kernel.target.schedule.activation_bits or ATTENTION_BITS
    if bits > 24 or not has_tile_registers(target, bf16) or attention.scores.columns.is_linear:
        return None
    tiles = tiling(target, GROUP_BYTES, tile=TILE_REGISTERS)
    scores, totals = (Gemm(kernel, each, Epilogue(), tiles) for each in (attention.scores, attention.totals))
    features = [scores.k.constant_value, totals.n.constant_value]
    plain = (
        attention.scores.element == f32
        and scores.has_vectors(attention.scores.rows, attention.scores.reduced)
        and scores.has_vectors(attention.scores.columns, attention.scores.reduced)
        and totals.has_vectors(attention.totals.columns, attention.totals.column)
    )
    return bits // 8 if plain and all(each and each % TILE_STEP == 0 for each in features) else None


class TileAttention(PackedAttention):
    """Generates attention in tile registers."""

    def __init__(self, kernel: Kernel, attention: Attention, parts: int):
        super().__init__(kernel, attention, tiling(kernel.target, GROUP_BYTES, tile=TILE_REGISTERS))
        self.parts = parts

    @override
    def strips(self) -> Dim:
        return constant(1)

    @override
    def panels(self) -> Panels:
        self.code.emit(ConfigureTilesOp(self.code.index(0)))
        return _TilePanels(self)

    @override
    def finish(self) -> None:
        self.code.emit(ReleaseTilesOp())


class _TilePanels(Panels):
    """The parts of keys and values of a batch, and of the rows of a block.

    Each is `[tiles, steps of K, parts, 16, 16]` groups, in the order in which registers are loaded.
    """

    def __init__(self, attention: TileAttention):
        self.attention, self.code = attention, attention.code
        self.scores, self.totals = attention.scores, attention.totals
        positions = ceildiv(attention.n, constant(TILE_STEP))
        self._features = (self.scores.k.constant_value or 0) // TILE_STEP
        self._keys = self._registers(positions * SIDES, constant(self._features), "keys")
        self._values = self._registers(ceildiv(self.totals.n, constant(TILE_SIZE)), positions, "values")
        self._queries = self._registers(constant(SIDES), constant(self._features), "queries")
        self._shares = self._registers(constant(SIDES), positions, "shares")
        self._tile = self.code.alloc([attention.tiles.mr, attention.tiles.nr], f32, "tile")

    def _registers(self, count: Dim, steps: Dim, name: str) -> SSAValue:
        return self.code.alloc([count, steps, self.attention.parts, TILE_SIZE, TILE_SIZE], i32, name)

    # Keys and values

    @override
    def pack(self, batch: SSAValue) -> None:
        self._pack_keys(batch)
        self._pack_values(batch)

    def _pack_keys(self, batch: SSAValue) -> None:
        """Sixteen keys at a time are split and transposed; missing ones are the last one once more."""
        code, scores, contraction = self.code, self.scores, self.scores.contraction
        own = self.attention.all_coords(batch, None)[0]
        parts, last = self.attention.parts, code.sub(code.dim(self.attention.n), 1)
        memory = code.alloc([parts, TILE_SIZE, TILE_SIZE], i32, "key_parts")
        numbers = view(code, memory, [parts, TILE_SIZE, TILE_STEP], bf16)
        tiles = ceildiv(self.attention.n, constant(TILE_SIZE))
        with (
            code.loop(code.dim(tiles), "tile") as tile,
            code.loop(code.index(self._features), "step") as step,
        ):
            with code.loop(code.index(TILE_SIZE), "key") as key:
                at = code.minimum(code.add(code.mul(tile, TILE_SIZE), key), last)
                for offset in range(0, TILE_STEP, TILE_SIZE):
                    feature = code.add(code.mul(step, TILE_STEP), offset)
                    coords = {**own, contraction.column: at, contraction.reduced: feature}
                    value = scores.vector(contraction.columns, coords, contraction.reduced, None)
                    for part, each in enumerate(bf16_parts(code, value, self.attention.parts)):
                        code.store(each, numbers, [code.index(part), key, code.index(offset)])
            for part in (code.index(number) for number in range(parts)):
                lines = [code.load(memory, [part, code.index(j), code.index(0)], TILE_SIZE) for j in range(TILE_SIZE)]
                for i, each in enumerate(transposed(code, lines)):
                    code.store(each, self._keys, [tile, step, part, code.index(i), code.index(0)])

    def _pack_values(self, batch: SSAValue) -> None:
        """Values at two positions at a time, feature beside feature; missing ones are zeros."""
        code, totals, contraction = self.code, self.totals, self.totals.contraction
        theirs = self.attention.all_coords(batch, None)[1]
        count = code.dim(self.attention.n)
        steps = ceildiv(self.attention.n, constant(TILE_STEP))
        numbers = _as_numbers(code, self._values)
        order = [lane for i in range(TILE_SIZE) for lane in (i, TILE_SIZE + i)]
        with (
            code.loop(code.dim(steps), "step") as step,
            code.loop(code.index(TILE_SIZE), "group") as group,
            code.loop(code.dim(ceildiv(totals.n, constant(TILE_SIZE))), "tile") as tile,
        ):
            pair: list[list[SSAValue]] = []
            for side in range(2):
                position = code.add(code.add(code.mul(step, TILE_STEP), code.mul(group, 2)), side)
                on = code.select(code.compare("slt", position, count), code.index(TILE_SIZE), code.index(0))
                at = code.minimum(position, code.sub(count, 1))
                coords = {**theirs, contraction.reduced: at, contraction.column: code.mul(tile, TILE_SIZE)}
                value = totals.vector(contraction.columns, coords, contraction.column, on)
                pair.append(bf16_parts(code, self._only(value, on), self.attention.parts))
            for part, (low, high) in enumerate(zip(*pair, strict=True)):
                both = shuffle(code, (low, high), order)
                code.store(both, numbers, [tile, step, code.index(part), group, code.index(0)])

    def _only(self, value: SSAValue, on: SSAValue) -> SSAValue:
        """The first lanes of a vector, and zeros."""
        code = self.code
        return code.value(arith.SelectOp(code.leading(on, TILE_SIZE), value, code.zeros(f32, TILE_SIZE)))

    # Rows

    @override
    def multiply_rows(self, rows: Rows, end: SSAValue | None, chain: Callable[[], None]) -> None:
        code, attention = self.code, self.attention
        self._pack_queries(rows)
        last = code.dim(attention.n) if end is None else end
        features = code.index(self._features)
        self._multiply(rows, (self._queries, self._keys), features, last, attention.put_scores)
        chain()
        steps = code.divide(code.add(last, TILE_STEP - 1), TILE_STEP)
        self._pack_shares(rows, steps, last)
        theirs = attention.all_coords(rows.batch, None)[1]

        def restore(i: SSAValue, left: SSAValue) -> None:
            def vector(r: SSAValue, v: int) -> SSAValue:
                column = code.add(left, v * TILE_SIZE)
                coords = {**theirs, contraction.reduced: r, contraction.column: column}
                return self.totals.vector(contraction.columns, coords, contraction.column, None)

            attention.leave_out_zeros(rows, (self._tile, i), i, last, vector)

        contraction, columns = self.totals.contraction, code.dim(self.totals.n)
        self._multiply(rows, (self._shares, self._values), steps, columns, attention.put_totals, restore)

    def _pack_queries(self, rows: Rows) -> None:
        scores, contraction, code = self.scores, self.scores.contraction, self.code
        with code.loop(rows.count, "i") as i, code.loop(code.index(self._features), "step") as step:
            own = self.attention.all_coords(rows.batch, code.add(rows.top, i))[0]

            def vector(offset: int) -> SSAValue:
                coords = {**own, contraction.reduced: code.add(code.mul(step, TILE_STEP), offset)}
                return scores.vector(contraction.rows, coords, contraction.reduced, None)

            self._store_row(self._queries, i, step, vector)

    def _pack_shares(self, rows: Rows, steps: SSAValue, last: SSAValue) -> None:
        """The parts of what the chain left; there are none beyond the last column."""
        code = self.code
        with code.loop(rows.count, "i") as i, code.loop(steps, "step") as step:

            def vector(offset: int) -> SSAValue:
                column = code.add(code.mul(step, TILE_STEP), offset)
                value = code.load(rows.scores, [i, column], TILE_SIZE)
                return self._only(value, code.sub(last, column))

            self._store_row(self._shares, i, step, vector)

    def _store_row(self, registers: SSAValue, i: SSAValue, step: SSAValue, vector: Callable[[int], SSAValue]) -> None:
        """Splits the numbers of a step of a row."""
        code, numbers = self.code, _as_numbers(self.code, registers)
        register, within = code.divide(i, TILE_SIZE), code.remainder(i, TILE_SIZE)
        for offset in range(0, TILE_STEP, TILE_SIZE):
            for part, each in enumerate(bf16_parts(code, vector(offset), self.attention.parts)):
                code.store(each, numbers, [register, step, code.index(part), within, code.index(offset)])

    # Products

    def _multiply(
        self,
        rows: Rows,
        factors: tuple[SSAValue, SSAValue],
        steps: SSAValue,
        columns: SSAValue,
        put: Callable[[Rows, SSAValue, Sequence[SSAValue], SSAValue], None],
        restore: Callable[[SSAValue, SSAValue], None] | None = None,
    ) -> None:
        """All rows of the block times so many columns, 32 at a time.

        `restore(i, left)` makes a row once more where that is needed, in the tile that begins with a column.
        """
        code, tiles = self.code, self.attention.tiles
        with code.loop(code.divide(code.add(columns, tiles.nr - 1), tiles.nr), "panel") as panel:
            self._multiply_panel(factors, panel, steps)
            with code.loop(rows.count, "i") as i:
                left = code.mul(panel, tiles.nr)
                if restore is not None:
                    restore(i, left)
                put(rows, i, self.attention.vectors(self._tile, i, tiles.vectors), left)

    def _multiply_panel(self, factors: tuple[SSAValue, SSAValue], panel: SSAValue, steps: SSAValue) -> None:
        code, sides = self.code, range(SIDES)
        rows, columns = [code.index(i) for i in sides], [code.add(code.mul(panel, SIDES), v) for v in sides]
        for number in range(SIDES * SIDES):
            code.emit(ZeroTileOp(number))
        with code.loop(steps, "step") as step:
            last: tuple[int | None, int | None] = (None, None)
            for pair in PAIRS[self.attention.parts]:
                if pair[0] != last[0]:
                    self._load(factors[0], (ROWS, LAST_ROWS), rows, step, pair[0])
                if pair[1] != last[1]:
                    self._load(factors[1], (COLUMNS, LAST_COLUMNS), columns, step, pair[1])
                last = pair
                for i in sides:
                    for v in sides:
                        registers = (ROWS, LAST_ROWS)[i], (COLUMNS, LAST_COLUMNS)[v]
                        code.emit(DotTilesOp(i * SIDES + v, (bf16, bf16), *registers))
        for i in sides:
            for v in sides:
                at = [code.index(i * TILE_SIZE), code.index(v * TILE_SIZE)]
                code.emit(StoreTileOp(i * SIDES + v, self._tile, at))

    def _load(
        self, memory: SSAValue, registers: Sequence[int], tiles: Sequence[SSAValue], step: SSAValue, part: int
    ) -> None:
        """Loads a part of a step of two tiles."""
        zero = self.code.index(0)
        for register, tile in zip(registers, tiles, strict=True):
            self.code.emit(LoadTileOp(register, memory, [tile, step, self.code.index(part), zero, zero]))


def _as_numbers(code: Code, registers: SSAValue) -> SSAValue:
    """The same memory as numbers instead of groups."""
    *leading, rows, _ = SSAValue.get(registers, type=BufferType).type.shape
    return view(code, registers, [*leading, rows, TILE_STEP], bf16)


def emit_attention(kernel: Kernel, attention: Attention) -> None:
    """Generates attention by the form that suits the number of rows."""
    tiles, parts = tiling(kernel.target, byte_size(attention.scores.element)), attention_parts(kernel, attention)
    few = StreamedAttention(kernel, attention, tiles)
    many = PackedAttention(kernel, attention, tiles) if parts is None else TileAttention(kernel, attention, parts)
    code = kernel.code
    if not few.is_possible or few.m.constant_value is not None:
        (few if few.is_possible else many).emit()
        return
    with code.when(code.compare("sle", code.dim(few.m, "m"), SKINNY_MAX_M)) as branch:
        few.emit()
    with code.otherwise(branch):
        many.emit()
