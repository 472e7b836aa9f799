"""GEMM with small M: rows of B are read along their whole length.

A register tile reads one or two cache lines of each row of B, a pattern that prefetchers do not follow. Here some long
rows of B are read side by side, and all rows of A use them at once. The accumulators go through the caches, interleaved
vector by vector. If those of a row of A were contiguous, they and some row of B would often be a multiple of 4 KiB
apart, and loads would wait for recent stores to aliasing addresses.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from typing_extensions import override
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    L3_PART,
    SMALL_M_BURST,
    SMALL_M_BURST_ROWS,
    SMALL_M_L2_PART,
    SMALL_M_MAX_M,
    SMALL_M_MIN_K,
    SMALL_M_MIN_M,
    SMALL_M_MIN_N,
    SMALL_M_N_PER_ROW,
    SMALL_M_NARROW_SHAPE,
    SMALL_M_UNIT_BYTES,
    SMALL_M_WIDE_SHAPE,
    SUM_BLOCK_STEPS,
    TASK_MACS,
)
from lowering.kernels.emit.accumulators import in_blocks
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Routine, flat, shared_units
from lowering.kernels.gemm.epilogue import SinglePassGemm, can_store_tiles, output_tile
from lowering.kernels.gemm.micro_kernel import Matrix, elements_before_alignment, lies_evenly, operand
from lowering.kernels.gemm.problem import Coords, Gemm
from lowering.kernels.gemm.skinny import max_skinny_m, row_groups
from lowering.kernels.gemm.tall_skinny import is_tall
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES
from tir_dialect.types import BufferType

_SIZES = ("m", "k", "n", "first", "vectors", "shift", "row", "row_each", "row_step", "column", "column_step")
_BUFFERS = ("rows", "columns", "sums")


_Range = tuple[SSAValue, SSAValue]
"""Where some numbers begin, and how many these are or what is after them."""


@dataclass(frozen=True)
class GroupShape:
    """The rows of B and of A that are multiplied at once."""

    k_rows: int
    """Rows of B that are read side by side."""
    mr_sizes: tuple[int, ...]
    """Rows of A of a group, which share those rows of B, in falling order down to two. Where registers do not hold all
    their elements, some come from memory, as vectors."""
    prefetches: bool = False
    """Whether rows of B of the next iteration may be prefetched."""
    low: int = 0
    """Groups of at most so many rows prefetch in bursts, if they are alone: memory takes longer than their multiply-
    adds, so that nothing is gained by prefetching evenly. One loop then does for rows that are not prefetched too."""


@dataclass(frozen=True)
class SmallMRoutine(Routine):
    """Accumulators `[vectors, m, lanes]` of two or more rows of A with some vectors of columns of B.

    After them there is room for as many again, the totals between two blocks of steps.
    """

    dtype: AnyFloat
    lanes: int
    grid: GroupShape
    stores: bool
    """Whether they go on to the output, block by block; else there is one block."""

    @property
    @override
    def label(self) -> str:
        """The shape of a group."""
        return f"rows.{self.dtype}.{self.grid.mr_sizes[0]}x{self.grid.k_rows * self.lanes}"

    @override
    def sizes(self) -> Sequence[str]:
        return [*_SIZES, *["asked"] * self.grid.prefetches, *("most", "out", "out_each") * self.stores]

    @override
    def buffers(self) -> Mapping[str, BufferType]:
        return flat(self.dtype, *_BUFFERS, *["output"] * self.stores)

    @override
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        """The code of the function."""
        body = _Body(code, self.dtype, self.grid, Columns(code, self.lanes, size["n"], size["shift"]), size, buffer)
        extent = size["first"], size["vectors"]
        if not self.stores:
            body.accumulators(extent)
            return
        with blocks(code, extent, size["most"]) as block:
            body.accumulators(block)
            body.store(block)


@dataclass(frozen=True)
class Columns:
    """Columns as vectors, of which vector 0 starts `shift` columns before column 0.

    All lanes of each vector are read, but nothing before column 0 or after the last one: a vector at either end also
    contains columns of its neighbour.
    """

    code: Code
    lanes: int
    n: SSAValue
    shift: SSAValue

    def read(self, number: SSAValue) -> SSAValue:
        """The first column that a vector reads."""
        begin = self.code.sub(self.code.mul(number, self.lanes), self.shift)
        return self.code.minimum(self.code.maximum(begin, 0), self.code.sub(self.n, self.lanes))

    def own(self, number: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The first column that a vector alone has, how many these are, and the lanes before it."""
        code, begin = self.code, self.code.sub(self.code.mul(number, self.lanes), self.shift)
        column = code.maximum(begin, 0)
        count = code.sub(code.minimum(code.add(begin, self.lanes), self.n), column)
        return column, count, code.sub(column, self.read(number))


@contextmanager
def blocks(code: Code, extent: tuple[SSAValue, SSAValue], most: SSAValue) -> Generator[tuple[SSAValue, SSAValue]]:
    """Partitions some numbers into blocks of at most `most` that are about as large: gives the first one and the size
    of each.
    """
    begin, count = extent
    number = code.divide(code.add(count, code.sub(most, 1)), most)
    each = code.divide(code.add(count, code.sub(number, 1)), code.maximum(number, 1))
    with code.loop(number, "block") as block:
        done = code.mul(block, each)
        yield code.add(begin, done), code.minimum(code.sub(count, done), each)


def accumulator_offset(code: Code, m: SSAValue, vector: SSAValue, row: SSAValue, lanes: int) -> SSAValue:
    """Where the accumulators of a vector of a block and a row begin."""
    return code.mul(code.add(code.mul(vector, m), row), lanes)


@dataclass(frozen=True)
class _Totals:
    """The totals of accumulators in memory between two blocks of steps: as many vectors after them."""

    code: Code
    dtype: AnyFloat
    lanes: int
    accumulators: SSAValue
    count: SSAValue

    def begin(self) -> None:
        """Makes all accumulators zero."""
        code = self.code
        with code.loop(self.count, "sum", vectorize=False) as number:
            code.store(code.zeros(self.dtype, self.lanes), self.accumulators, [code.mul(number, self.lanes)])

    def put_away(self, is_first: SSAValue) -> None:
        """As `blocks_of_sums.Totals` does."""
        code = self.code
        with code.when(is_first) as branch, code.loop(self.count, "sum", vectorize=False) as number:
            position, total = self._positions(number)
            code.store(code.load(self.accumulators, position, self.lanes), self.accumulators, total)
        with code.otherwise(branch), code.loop(self.count, "sum", vectorize=False) as number:
            code.store(self._added(number), self.accumulators, self._positions(number)[1])
        self.begin()

    def take_back(self) -> None:
        """As `blocks_of_sums.Totals` does."""
        with self.code.loop(self.count, "sum", vectorize=False) as number:
            self.code.store(self._added(number), self.accumulators, self._positions(number)[0])

    def _positions(self, number: SSAValue) -> tuple[list[SSAValue], list[SSAValue]]:
        code = self.code
        return [code.mul(number, self.lanes)], [code.mul(code.add(self.count, number), self.lanes)]

    def _added(self, number: SSAValue) -> SSAValue:
        position, total = self._positions(number)
        return self.code.add_floats(
            *(self.code.load(self.accumulators, each, self.lanes) for each in (total, position))
        )


@dataclass(frozen=True)
class _Groups:
    """Groups of one height."""

    mr: int
    count: SSAValue
    top: SSAValue
    """The first row of A."""


@dataclass(frozen=True)
class _Rows:
    """Some rows of A, to be multiplied with some rows of B."""

    first: SSAValue
    """The number of the first vector of a block."""
    top: SSAValue
    """The first row of A."""
    factors: Sequence[Sequence[SSAValue]]
    """The elements of the rows of A, broadcast, by row of B."""
    columns: Sequence[SSAValue]
    """Where the rows of B begin."""


@dataclass(frozen=True)
class _Body:
    code: Code
    dtype: AnyFloat
    grid: GroupShape
    columns: Columns
    size: Mapping[str, SSAValue]
    buffer: Mapping[str, SSAValue]

    @property
    def lanes(self) -> int:
        return self.columns.lanes

    def accumulators(self, extent: tuple[SSAValue, SSAValue]) -> None:
        """All rows of B: some at a time, then what is left one by one."""
        code, size, each, (_, vectors) = self.code, self.size, self.grid.k_rows, extent
        totals = _Totals(code, self.dtype, self.lanes, self.buffer["sums"], code.mul(vectors, size["m"]))
        totals.begin()
        iterations = code.divide(size["k"], each)
        groups = self._groups()

        def run(lower: SSAValue | None, upper: SSAValue) -> None:
            with code.loop(upper, "iteration", lower=lower) as iteration:
                k_rows = [code.add(code.mul(iteration, each), k_row) for k_row in range(each)]
                for some in groups:
                    with code.loop(some.count, "group") as group:
                        top = code.add(some.top, code.mul(group, some.mr))
                        self._rows(extent, top, some.mr, k_rows, self._upcoming(groups, some, group))

        in_blocks(code, (None, iterations), run, lambda: totals, constant(SUM_BLOCK_STEPS // each))
        with code.loop(size["k"], "line", lower=code.mul(iterations, each)) as k_row, code.loop(size["m"], "i") as i:
            self._rows(extent, i, 1, [k_row])

    def _groups(self) -> list[_Groups]:
        """The tallest groups of rows of A, but where that would leave a single row."""
        code, found, top, left = self.code, list[_Groups](), self.code.index(0), self.size["m"]
        for mr in self.grid.mr_sizes:
            single = code.compare("eq", code.remainder(left, mr), 1)
            count = code.divide(code.sub(left, code.select(single, code.index(mr), code.index(0))), mr)
            found.append(_Groups(mr, count, top))
            taken = code.mul(count, mr)
            top, left = code.add(top, taken), code.sub(left, taken)
        return found

    def _upcoming(self, groups: Sequence[_Groups], some: _Groups, group: SSAValue) -> _Range | None:
        """The rows of B of the next iteration that a group prefetches: each an equal share, so that all take as long.

        Low groups leave it to the others, if there are any.
        """
        if not self.grid.prefetches:
            return None
        code, prefetched, is_low = self.code, self.size["asked"], some.mr <= self.grid.low
        if is_low:
            others = self._count(each for each in groups if each.mr > self.grid.low)
            prefetched = code.select(code.compare("eq", others, 0), prefetched, code.index(0))
        alike = [each for each in groups if (each.mr <= self.grid.low) is is_low]
        number = code.maximum(self._count(alike), 1)
        begin = code.add(self._count(each for each in alike if each.mr > some.mr), group)
        lower, upper = (code.divide(code.mul(prefetched, each), number) for each in (begin, code.add(begin, 1)))
        return lower, upper

    def _count(self, groups: Iterable[_Groups]) -> SSAValue:
        return reduce(self.code.add, (each.count for each in groups), self.code.index(0))

    def _rows(
        self, extent: _Range, top: SSAValue, mr: int, k_rows: Sequence[SSAValue], upcoming: _Range | None = None
    ) -> None:
        """Some rows of B for some rows of A. Where nothing is prefetched the loop has no code for it, which takes time
        too.
        """
        code, size = self.code, self.size
        starts = [code.add(size["row"], code.mul(code.add(top, i), size["row_each"])) for i in range(mr)]
        positions = [[code.add(start, code.mul(k_row, size["row_step"])) for start in starts] for k_row in k_rows]
        factors = [
            [code.splat(code.load(self.buffer["rows"], [at]), self.lanes) for at in k_row] for k_row in positions
        ]
        columns = [code.add(size["column"], code.mul(k_row, size["column_step"])) for k_row in k_rows]
        first, vectors = extent
        every, rows = (code.index(0), vectors), _Rows(first, top, factors, columns)
        if upcoming is None:
            self._vectors(rows, every)
        elif mr <= self.grid.low:
            self._in_bursts(rows, vectors, upcoming)
        else:
            with code.when(code.compare("ne", size["asked"], 0)) as branch:
                self._vectors(rows, every, upcoming)
            with code.otherwise(branch):
                self._vectors(rows, every)

    def _in_bursts(self, rows: _Rows, vectors: SSAValue, upcoming: _Range) -> None:
        """All vectors, a burst at a time after what they prefetch; all at once where nothing is prefetched."""
        code = self.code
        prefetches = code.compare("slt", *upcoming)
        each = code.select(prefetches, code.index(SMALL_M_BURST), code.maximum(vectors, 1))
        with code.loop(code.divide(code.add(vectors, code.sub(each, 1)), each), "burst") as burst:
            begin = code.mul(burst, each)
            end = code.minimum(code.add(begin, each), vectors)
            with (
                code.loop(upcoming[1], "soon", lower=upcoming[0], vectorize=False) as k_row,
                code.loop(end, "asked", lower=begin, vectorize=False) as v,
            ):
                self._prefetch(rows, v, k_row)
            self._vectors(rows, (begin, end))

    def _vectors(self, rows: _Rows, some: _Range, upcoming: _Range | None = None) -> None:
        """Vector by vector: all accumulators are read before one is written."""
        code, size, accumulators = self.code, self.size, self.buffer["sums"]
        with code.loop(some[1], "v", lower=some[0], vectorize=False) as v:
            if upcoming is not None:
                with code.loop(upcoming[1], "soon", lower=upcoming[0], vectorize=False) as k_row:
                    self._prefetch(rows, v, k_row)
            j = self.columns.read(code.add(rows.first, v))
            position, factors = accumulator_offset(code, size["m"], v, rows.top, self.lanes), rows.factors
            at = [code.add(position, i * self.lanes) for i in range(len(factors[0]))]
            totals = [code.load(accumulators, [each], self.lanes) for each in at]
            for own, column in zip(factors, rows.columns, strict=True):
                vector = code.load(self.buffer["columns"], [code.add(column, j)], self.lanes)
                totals = [code.fma(factor, vector, total) for factor, total in zip(own, totals, strict=True)]
            for each, total in zip(at, totals, strict=True):
                code.store(total, accumulators, [each])

    def _prefetch(self, rows: _Rows, v: SSAValue, k_row: SSAValue) -> None:
        """Prefetches a row of B of the next iteration, at the columns of a vector of this one."""
        code = self.code
        position = code.add(rows.columns[0], self.columns.read(code.add(rows.first, v)))
        away = code.mul(code.add(k_row, self.grid.k_rows), self.size["column_step"])
        code.prefetch(self.buffer["columns"], [code.add(position, away)], 2)

    def store(self, extent: tuple[SSAValue, SSAValue]) -> None:
        """Stores the accumulators of a block to the output."""
        code, size, lanes, output, (first, vectors) = self.code, self.size, self.lanes, self.buffer["output"], extent
        with code.loop(size["m"], "i") as i, code.loop(vectors, "v", vectorize=False) as v:
            column, count, skipped = self.columns.own(code.add(first, v))
            position = code.add(accumulator_offset(code, size["m"], v, i, lanes), skipped)
            value = code.load(self.buffer["sums"], [position], lanes)
            target = code.add(code.add(size["out"], code.mul(i, size["out_each"])), column)
            with code.when(code.compare("sge", count, lanes)) as branch:
                code.store(value, output, [target])
            with code.otherwise(branch):
                code.store(value, output, [target], code.leading(count, lanes))


NARROW = GroupShape(*SMALL_M_NARROW_SHAPE)
WIDE = GroupShape(*SMALL_M_WIDE_SHAPE, prefetches=True, low=SMALL_M_BURST_ROWS)


def group_shape(gemm: Gemm) -> GroupShape:
    """The rows of B and of A that are multiplied at once."""
    return WIDE if _is_wide(gemm) else NARROW


def can_be_small_m(gemm: Gemm) -> bool:
    """Whether M may be small and N large enough, both in memory."""
    contraction = gemm.contraction
    if contraction.longest is not None or contraction.outer or contraction.columns.panels is not None:
        return False
    if _known(_all(gemm)).count(False) or (_any(gemm) and set(_known(_any(gemm))) == {False}):
        return False
    if not gemm.is_contiguous(contraction.columns, contraction.column):
        return False
    return lies_evenly(gemm, contraction.rows, contraction.row) and lies_evenly(
        gemm, contraction.columns, contraction.column
    )


def replaces_skinny(gemm: Gemm) -> bool:
    """Whether this takes every call that would be a skinny GEMM with two rows or more: columns are always enough."""
    enough = gemm.n.constant_value is not None and max_skinny_m(gemm) <= _max_m(gemm)
    return enough and not _is_wide(gemm) and can_be_small_m(gemm) and is_tall(gemm) is False


def is_small_m(gemm: Gemm) -> SSAValue | None:
    """Whether M is small and N large enough in a call; `None` if that is known."""
    code, known = gemm.code, _known(_any(gemm))

    def holds(test: _AtMost) -> SSAValue:
        return code.compare("sle", code.dim(test[0]), code.dim(test[1]))

    tests = [holds(test) for test, is_true in zip(_all(gemm), _known(_all(gemm)), strict=True) if is_true is None]
    if known and True not in known:
        tests.append(reduce(code.either, [holds(test) for test in _any(gemm)]))
    return reduce(code.both, tests) if tests else None


def from_memory(gemm: Gemm) -> _AtMost:
    """What holds where the matrix comes from memory."""
    room = gemm.kernel.target.l3_bytes // L3_PART // byte_size(gemm.contraction.element)
    return constant(room + 1), gemm.k * gemm.n


_AtMost = tuple[Dim, Dim]
"""What has to be at most something else."""


def _all(gemm: Gemm) -> Sequence[_AtMost]:
    """All of these have to hold."""
    m, least = gemm.m, constant(SMALL_M_MIN_N)
    few = (constant(SMALL_M_MIN_M), m), (m, constant(_max_m(gemm)))
    if not _is_wide(gemm):
        return *few, (least, gemm.n)
    wide = maximum(least, SMALL_M_N_PER_ROW * m * gemm.threads(TASK_MACS))
    return *few, (wide, gemm.n), (constant(SMALL_M_MIN_K), gemm.k)


def _any(gemm: Gemm) -> Sequence[_AtMost]:
    """One of these has to hold, if there are any.

    A skinny GEMM is as fast for rows that fill its tallest tiles, if B is in a cache.
    """
    if not _is_wide(gemm):
        return ()
    return from_memory(gemm), (constant(1), gemm.m % row_groups(gemm)[0])


def _known(tests: Sequence[_AtMost]) -> list[bool | None]:
    """Which hold for every call, and for none."""
    spare = [(more - less).constant_value for less, more in tests]
    return [None if each is None else each >= 0 for each in spare]


def _max_m(gemm: Gemm) -> int:
    """The largest M that is small."""
    return min(gemm.kernel.target.schedule.unpacked_rows or SMALL_M_MAX_M, SMALL_M_MAX_M)


def _is_wide(gemm: Gemm) -> bool:
    """Whether vectors are whole cache lines, and there are many registers."""
    size = byte_size(gemm.contraction.element)
    return gemm.tiles.lanes * size >= LINE_BYTES and gemm.kernel.target.vector_registers >= 32


class SmallMGemm(SinglePassGemm):
    """Emits a GEMM with small M, for one batch."""

    @property
    def is_best(self) -> SSAValue | None:
        """Whether M is small and there are enough columns; `None` if that is known."""
        return is_small_m(self.gemm)

    def emit(self, coords: Coords) -> None:
        """The GEMM of one batch: tasks have vectors of columns."""
        code, gemm, lanes = self.code, self.gemm, self.lanes
        start = {**coords, gemm.contraction.column: code.index(0), gemm.contraction.reduced: code.index(0)}
        shift = code.remainder(
            code.sub(code.index(lanes), elements_before_alignment(gemm, gemm.contraction.columns, start)), lanes
        )
        vectors = code.divide(code.add(code.add(code.dim(gemm.n, "n"), shift), lanes - 1), lanes)
        unit = self._unit
        units = ceildiv(gemm.n + (lanes - 1), constant(unit * lanes))
        tasks = minimum(units, gemm.threads(TASK_MACS))
        with shared_units(code, units, tasks, whole=True) as (lower, upper):
            accumulators = code.alloc([(2 * self._most * self._rows + 1) * lanes], gemm.contraction.element, "sums")
            begin, end = code.mul(lower, unit), code.minimum(code.mul(upper, unit), vectors)
            extent, most = (begin, code.sub(end, begin)), code.dim(self._most)
            if can_store_tiles(gemm):
                out = output_tile(gemm, {**start, gemm.contraction.row: code.index(0)}, code.index(0))
                self._call(coords, accumulators, (*extent, shift), [most, out.first, out.each], [out.buffer])
                return
            with blocks(code, extent, most) as block:
                self._call(coords, accumulators, (*block, shift), [], [])
                # The epilogue of a block.
                code, contraction, (first, vectors) = self.code, self.gemm.contraction, block
                m, columns = code.dim(self.gemm.m, "m"), Columns(code, self.lanes, code.dim(self.gemm.n, "n"), shift)
                with code.loop(m, "i") as i, code.loop(vectors, "v", vectorize=False) as v:
                    column, count, skipped = columns.own(code.add(first, v))
                    position = code.add(accumulator_offset(code, m, v, i, self.lanes), skipped)
                    value = code.load(accumulators, [position], self.lanes)
                    self.epilogue.store(value, {**coords, contraction.row: i, contraction.column: column}, count)

    @property
    def _rows(self) -> Dim:
        """Rows that there is room for."""
        m = self.gemm.m
        return m if m.constant_value is not None else maximum(minimum(m, constant(SMALL_M_MAX_M)), constant(1))

    @property
    def _most(self) -> Dim:
        """Most vectors of columns in a block."""
        room = self.gemm.kernel.target.l2_bytes // SMALL_M_L2_PART // self._vector_bytes
        return maximum(floordiv(constant(room), self._rows), constant(self._unit))

    @property
    def _unit(self) -> int:
        """Vectors that are not partitioned."""
        return max(1, SMALL_M_UNIT_BYTES // self._vector_bytes)

    @property
    def _vector_bytes(self) -> int:
        return self.lanes * byte_size(self.gemm.contraction.element)

    def _call(
        self,
        coords: Coords,
        accumulators: SSAValue,
        extent: tuple[SSAValue, SSAValue, SSAValue],
        more: Sequence[SSAValue],
        output: Sequence[SSAValue],
    ) -> None:
        """Calls the routine for some vectors of columns; it also stores the accumulators if there is an output."""
        code, gemm, contraction, zero = self.code, self.gemm, self.gemm.contraction, self.code.index(0)
        rows = operand(
            gemm, contraction.rows, {**coords, contraction.row: zero, contraction.reduced: zero}, contraction.row
        )
        columns = operand(
            gemm,
            contraction.columns,
            {**coords, contraction.column: zero, contraction.reduced: zero},
            contraction.column,
        )
        assert isinstance(rows, Matrix)  # they lie evenly
        assert isinstance(columns, Matrix)
        layout = [rows.first, rows.each, rows.step, columns.first, columns.step]
        values = [code.index(each) if isinstance(each, int) else each for each in layout]
        buffers = [rows.buffer, columns.buffer, accumulators, *output]
        kind = group_shape(gemm)
        prefetched = [self._prefetched(kind)] * kind.prefetches
        sizes = [*map(code.dim, (gemm.m, gemm.k, gemm.n)), *extent, *values, *prefetched, *more]
        routine = SmallMRoutine(contraction.element, self.lanes, kind, bool(output))
        gemm.kernel.routines.call(code, routine, sizes, buffers)

    def _prefetched(self, kind: GroupShape) -> SSAValue:
        """How many rows of B of the next iteration are prefetched: all if they come from memory."""
        code, (room, size) = self.code, map(self.code.dim, from_memory(self.gemm))
        return code.select(code.compare("sle", room, size), code.index(kind.k_rows), code.index(0))
