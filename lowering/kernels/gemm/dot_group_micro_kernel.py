"""The micro-kernel on dot-product groups: views of memory, dot products, and a register tile of accumulators; and which
steps of a panel of bytes cannot saturate sums of two products, on machines without dot products of bytes.

Products of a row without a sign and a column with one are at most 255 times the column. So two of them fit 16 bits with
a sign, whatever the row is, if neither the positive nor the negative numbers of the pair add up to more than 128. Few
weights are large enough for more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
    bf16,
    i8,
    i16,
    i32,
)
from xdsl.ir import Attribute, SSAValue

from lowering.kernels.cost_model import DOT_GROUP_ACCUMULATORS, MAX_K_SPLITS
from lowering.kernels.emit.code import Code
from lowering.kernels.gemm.dot_group_contraction import DotGroupContraction
from lowering.kernels.gemm.problem import Gemm
from tir_dialect.dims import Dim, DimLike
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.arithmetic import ConvertOp
from tir_dialect.ops.blocks import ViewOp
from tir_dialect.ops.tile_registers import (
    COLUMNS,
    LAST_COLUMNS,
    LAST_ROWS,
    ROWS,
    TILE_SIZE,
    DotTilesOp,
    LoadTileOp,
    StoreTileOp,
    ZeroTileOp,
)
from tir_dialect.ops.vectors import CompareOp, DotOp, FirstLaneOp
from tir_dialect.target import LINE_BYTES
from tir_dialect.types import BufferType

GROUP_BYTES = 4
BYTE_BITS = 8
LOW_BYTES = 0x00FF00FF
"""A group of bytes with the odd ones 0."""
TILE_STEP = 2 * TILE_SIZE
"""Numbers of `bf16` along K that tile registers multiply at once."""
SIGN_BIT = -128
"""A byte of which only the highest bit is set."""
SIGN_GROUP = -0x7F7F7F80
"""A group of four such bytes."""


def view(code: Code, buffer: SSAValue, shape: Sequence[DimLike], dtype: AnyFloat | IntegerType) -> SSAValue:
    """The memory of a buffer with another shape and dtype."""
    scope = SSAValue.get(buffer, type=BufferType).type.scope
    return code.value(ViewOp(buffer, BufferType(shape, dtype, scope=scope)), buffer.name_hint)


def constant_number(code: Code, value: int, dtype: AnyFloat | IntegerType) -> SSAValue:
    """A constant."""
    return code.value(
        arith.ConstantOp(
            IntegerAttr(value, dtype) if isinstance(dtype, IntegerType) else FloatAttr(float(value), dtype)
        )
    )


def splat(code: Code, value: int, dtype: AnyFloat | IntegerType, lanes: int) -> SSAValue:
    """A vector of one constant."""
    return code.splat(constant_number(code, value, dtype), lanes)


def dot(
    code: Code,
    dtypes: tuple[Attribute, Attribute],
    a: SSAValue,
    b: SSAValue,
    total: SSAValue,
    *,
    saturating: bool = False,
) -> SSAValue:
    """A vector accumulator, with the products of the numbers in two vectors of groups added."""
    return code.value(DotOp(dtypes, a, b, total, saturating=saturating))


def with_flipped_sign(code: Code, values: SSAValue, lanes: int) -> SSAValue:
    """A vector of bytes with flipped sign bits: 128 more or less."""
    return code.value(arith.XOrIOp(values, splat(code, SIGN_BIT, i8, lanes)))


def as_int16(code: Code, values: SSAValue, dtype: Attribute, lanes: int) -> SSAValue:
    """A vector of bytes of a dtype, extended to 16 bits."""
    return code.value(ConvertOp("extsi" if dtype == i8 else "extui", values, VectorType(i16, [lanes])))


def sign_groups(code: Code, lanes: int) -> SSAValue:
    """A vector of groups of four bytes of which only the highest bit is set."""
    return splat(code, SIGN_GROUP, i32, lanes)


def lanes_of_line(dtype: AnyFloat | IntegerType) -> int:
    """How many numbers a cache line has."""
    return LINE_BYTES // byte_size(dtype)


def bf16_parts(code: Code, value: SSAValue, count: int) -> list[SSAValue]:
    """A vector of `f32` as a sum of so many vectors of `bf16`, the greatest first: each has 8 more bits of a number."""
    lanes = SSAValue.get(value, type=VectorType).type.get_shape()
    found = list[SSAValue]()
    for number in range(count):
        found.append(code.value(ConvertOp("truncf", value, VectorType(bf16, lanes))))
        if number + 1 < count:
            value = code.value(arith.SubfOp(value, code.value(ConvertOp("extf", found[-1], value.type))))
    return found


GroupAt = Callable[[int, SSAValue], SSAValue]
"""Gives a group of the rows, by its row in the tile and its step of K."""

TileOfMemory = Callable[[int, SSAValue], tuple[SSAValue, Sequence[SSAValue]]]
"""Gives the buffer and the indices of a register's first group: by its first row or column in the tile, and its step of
K.
"""

Accumulators = Sequence[Sequence[Sequence[SSAValue]]]
"""The indices of the vectors of each row of a tile."""

PanelVector = Callable[[SSAValue, int], SSAValue]
"""Gives a vector of groups of a panel, by its step of K and its number."""


@dataclass(frozen=True)
class Steps:
    """The steps of a panel in an order: first some in which no sum of two products saturates."""

    fitting: SSAValue
    """How many these are."""
    step: Callable[[SSAValue], SSAValue]
    """The step of K with a number in the order."""


def in_halves(code: Code, groups: SSAValue, lanes: int) -> tuple[SSAValue, SSAValue]:
    """The even and the odd ones of the bytes with signs in a vector of groups, extended to 16 bits."""
    kind, bits = VectorType(i16, [2 * lanes]), splat(code, BYTE_BITS, i16, 2 * lanes)
    pairs = code.value(vector.BitcastOp(groups, kind))
    even = code.value(arith.ShRSIOp(code.value(arith.ShLIOp(pairs, bits)), bits))
    return even, code.value(arith.ShRSIOp(pairs, bits))


class DotGroupTile:
    """A register tile: accumulators of some rows with the columns of a panel."""

    def __init__(self, gemm: Gemm, groups: DotGroupContraction, columns: PanelVector, steps: Steps | None = None):
        """Where the sign of the rows is flipped, accumulators begin with a correction, which is computed here.

        Without `steps` all are exact, in the order of K.
        """
        self.gemm, self.groups, self.columns, self.steps = gemm, groups, columns, steps
        self.code, self.tiles = gemm.code, gemm.tiles
        self.depth = self.code.dim(groups.depth)
        self.first = self._sign_correction() if groups.is_flipped else None

    def _sign_correction(self) -> SSAValue:
        code, tiles = self.code, self.tiles
        buffer = code.alloc([1, tiles.nr], self.groups.total, "first", scope="local")
        accumulators = [[code.index(0), code.index(v * tiles.lanes)] for v in range(tiles.vectors)]
        zeros, signs = splat(code, 0, self.groups.total, tiles.lanes), sign_groups(code, tiles.lanes)
        for accumulator in accumulators:
            code.store(zeros, buffer, accumulator)
        with code.loop(self.depth, "r") as r:
            for v, accumulator in enumerate(accumulators):
                column = self.columns(r, v)
                total = code.load(buffer, accumulator, tiles.lanes)
                code.store(dot(code, self.groups.factors, signs, column, total), buffer, accumulator)
        for accumulator in accumulators:
            code.store(
                code.value(arith.SubiOp(zeros, code.load(buffer, accumulator, tiles.lanes))), buffer, accumulator
            )
        return buffer

    def emit(self, mr: int, group: GroupAt, tile: SSAValue, halves: Sequence[GroupAt] = ()) -> None:
        """Emits the accumulators of `mr` rows, into the buffer `tile`; `halves` are the even and the odd bytes of a
        group, extended, for steps that are exact beside others.
        """
        code, tiles = self.code, self.tiles
        chunks = min(MAX_K_SPLITS, max(1, DOT_GROUP_ACCUMULATORS // (mr * tiles.vectors)))
        registers = code.alloc([chunks * mr, tiles.nr], self.groups.total, "sums", scope="local")
        rows = [
            [
                [[code.index(chunk * mr + i), code.index(v * tiles.lanes)] for v in range(tiles.vectors)]
                for i in range(mr)
            ]
            for chunk in range(chunks)
        ]
        self._begin(registers, rows)
        if self.steps is None:
            self._accumulate(registers, rows, (code.index(0), self.depth), partial(self._step, group))
        else:
            fitting = self.steps.fitting
            self._accumulate(registers, rows, (code.index(0), fitting), partial(self._step, group))
            for number, half in enumerate(halves):  # one after the other, so that all is in registers
                self._accumulate(registers, rows, (fitting, self.depth), partial(self._exact_step, number, half))
        for i in range(mr):
            for v, accumulator in enumerate(rows[0][i]):
                values = [code.load(registers, chunk[i][v], tiles.lanes) for chunk in rows]
                code.store(reduce(self._added, values), tile, accumulator)

    def _accumulate(
        self,
        registers: SSAValue,
        rows: Sequence[Sequence[Sequence[Sequence[SSAValue]]]],
        bounds: tuple[SSAValue, SSAValue],
        emit_step: Callable[[SSAValue, Accumulators, SSAValue], None],
    ) -> None:
        """Emits some steps, which take turns with the accumulators of chunks."""
        code, (done, end), chunks = self.code, bounds, len(rows)

        def step(number: SSAValue, chunk: int) -> None:
            r = number if self.steps is None else self.steps.step(number)
            emit_step(registers, rows[chunk], r)

        if chunks > 1:
            first, iterations = done, code.divide(code.sub(end, done), chunks)
            with code.loop(iterations, "iteration") as iteration:
                for chunk in range(chunks):
                    step(code.add(first, code.add(code.mul(iteration, chunks), chunk)), chunk)
            done = code.add(first, code.mul(iterations, chunks))
        with code.loop(end, "r", lower=done) as number:
            step(number, 0)

    def emit_in_tiles(self, mr: int, rows: TileOfMemory, columns: TileOfMemory, tile: SSAValue) -> None:
        """The same in tile registers, which are configured for the last step."""
        code = self.code
        tops = range(mr // TILE_SIZE)
        sides = range(self.tiles.vectors)
        numbers = {(i, v): i * len(sides) + v for i in tops for v in sides}
        for number in numbers.values():
            code.emit(ZeroTileOp(number))

        def step(r: SSAValue, row_tile: int, column_tile: int) -> None:
            # Columns of one register are loaded again for each row: the other three are for the last step.
            for i in tops:
                code.emit(LoadTileOp(row_tile, *rows(i * TILE_SIZE, r)))
                for v in sides if i % 2 == 0 else reversed(sides):
                    if i == 0 or v != sides[-1]:
                        code.emit(LoadTileOp(column_tile, *columns(v * TILE_SIZE, r)))
                    code.emit(DotTilesOp(numbers[i, v], self.groups.factors, row_tile, column_tile))

        whole = code.divide(self.depth, TILE_SIZE)
        with code.loop(whole, "step") as number:
            step(code.mul(number, TILE_SIZE), ROWS, COLUMNS)
        done = code.mul(whole, TILE_SIZE)
        with code.when(code.compare("slt", done, self.depth)):
            step(done, LAST_ROWS, LAST_COLUMNS)
        for (i, v), number in numbers.items():
            code.emit(StoreTileOp(number, tile, [code.index(i * TILE_SIZE), code.index(v * TILE_SIZE)]))

    def _begin(self, registers: SSAValue, rows: Sequence[Sequence[Sequence[Sequence[SSAValue]]]]) -> None:
        code, tiles = self.code, self.tiles
        zeros = splat(code, 0, self.groups.total, tiles.lanes)
        for number, chunk in enumerate(rows):
            for row in chunk:
                for v, accumulator in enumerate(row):
                    start = [code.index(0), code.index(v * tiles.lanes)]
                    given = None if number or self.first is None else code.load(self.first, start, tiles.lanes)
                    code.store(zeros if given is None else given, registers, accumulator)

    def _step(self, group: GroupAt, registers: SSAValue, rows: Accumulators, r: SSAValue) -> None:
        """Emits the dot products of one group of each row with those of the columns."""
        code, tiles, saturating = self.code, self.tiles, self.steps is not None
        columns = [self.columns(r, v) for v in range(tiles.vectors)]
        for i, tile_row in enumerate(rows):
            row = code.splat(group(i, r), tiles.lanes)
            for accumulator, column in zip(tile_row, columns, strict=True):
                total = code.load(registers, accumulator, tiles.lanes)
                total = dot(code, self.groups.factors, row, column, total, saturating=saturating)
                code.store(total, registers, accumulator)

    def _exact_step(self, number: int, half: GroupAt, registers: SSAValue, rows: Accumulators, r: SSAValue) -> None:
        """The same in 16 bits, for the even or the odd bytes."""
        code, lanes = self.code, self.tiles.lanes
        columns = [in_halves(code, self.columns(r, v), lanes)[number] for v in range(self.tiles.vectors)]
        factors = [code.value(vector.BitcastOp(column, VectorType(i32, [lanes]))) for column in columns]
        for i, tile_row in enumerate(rows):
            row = code.splat(half(i, r), lanes)
            for accumulator, factor in zip(tile_row, factors, strict=True):
                total = code.load(registers, accumulator, lanes)
                code.store(dot(code, (i16, i16), row, factor, total), registers, accumulator)

    def _added(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.code.value(arith.AddfOp(a, b) if isinstance(self.groups.total, AnyFloat) else arith.AddiOp(a, b))


LARGEST = 128
"""To which the numbers of one sign in a pair may add up: 255 times as much fits 16 bits."""


class StepOrder:
    """The steps of a panel for each task: first those that cannot saturate, in their order, then the others."""

    def __init__(self, gemm: Gemm, depth: Dim, tasks: Dim):
        self.gemm, self.code, self.depth = gemm, gemm.code, depth
        self.order = self.code.alloc([tasks, depth], i32, "order")
        self.ends = self.code.alloc([tasks, LINE_BYTES // GROUP_BYTES], i32, "ends")
        """How many steps cannot saturate, and the first of the others in the order; a cache line for each task."""

    def of(self, task: SSAValue, columns: PanelVector) -> Steps:
        """The steps of a panel, found once for all rows."""
        code, depth, first, second = self.code, self.code.dim(self.depth), self.code.index(0), self.code.index(1)
        code.store(self._number(first), self.ends, [task, first])
        code.store(self._number(depth), self.ends, [task, second])
        with code.loop(depth, "r", vectorize=False) as r:
            front, back = (self._index(self.ends, [task, each]) for each in (first, second))
            fits = self._fits(columns, r)
            back = code.select(fits, back, code.sub(back, 1))
            code.store(self._number(r), self.order, [task, code.select(fits, front, back)])
            code.store(self._number(code.select(fits, code.add(front, 1), front)), self.ends, [task, first])
            code.store(self._number(back), self.ends, [task, second])
        return Steps(self._index(self.ends, [task, first]), lambda number: self._index(self.order, [task, number]))

    def _fits(self, columns: PanelVector, r: SSAValue) -> SSAValue:
        """Whether no pair of a step can saturate."""
        code, tiles = self.code, self.gemm.tiles
        lanes = 2 * tiles.lanes
        zero = code.zeros(i16, lanes)
        sums: list[SSAValue] = []
        for number in range(tiles.vectors):
            halves = in_halves(code, columns(r, number), tiles.lanes)
            positive, negative = (
                code.value(arith.AddiOp(code.value(kind(halves[0], zero)), code.value(kind(halves[1], zero))))
                for kind in (arith.MaxSIOp, arith.MinSIOp)
            )
            sums += [positive, code.value(arith.SubiOp(zero, negative))]
        largest = reduce(lambda a, b: code.value(arith.MaxSIOp(a, b)), sums)
        beyond = code.value(CompareOp("sgt", largest, splat(code, LARGEST, i16, lanes)))
        return code.compare("eq", code.value(FirstLaneOp(beyond)), lanes)

    def _number(self, index: SSAValue) -> SSAValue:
        return self.code.value(arith.IndexCastOp(index, i32))

    def _index(self, buffer: SSAValue, indices: list[SSAValue]) -> SSAValue:
        return self.code.value(arith.IndexCastOp(self.code.load(buffer, indices), IndexType()))
