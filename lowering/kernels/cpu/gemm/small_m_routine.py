"""The routine of GEMM with small M: some rows of B at a time, for all rows of A.

The accumulators of all rows are interleaved vector by vector. If those of a row were contiguous, they and some row of B
would often be a multiple of 4 KiB apart, and loads would wait for recent stores to aliasing addresses.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from typing_extensions import override
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.blocked_accumulation import MOST, in_blocks
from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.routines import Routine, flat
from lowering.kernels.cpu.gemm.cost_model import SMALL_M_BURST
from tir_dialect.dims import constant
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
    heights: tuple[int, ...]
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
        return f"rows.{self.dtype}.{self.grid.heights[0]}x{self.grid.k_rows * self.lanes}"

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

    height: int
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
                        top = code.add(some.top, code.mul(group, some.height))
                        self._rows(extent, top, some.height, k_rows, self._upcoming(groups, some, group))

        in_blocks(code, (None, iterations), run, lambda: totals, constant(MOST // each))
        with code.loop(size["k"], "line", lower=code.mul(iterations, each)) as k_row, code.loop(size["m"], "i") as i:
            self._rows(extent, i, 1, [k_row])

    def _groups(self) -> list[_Groups]:
        """The tallest groups of rows of A, but where that would leave a single row."""
        code, found, top, left = self.code, list[_Groups](), self.code.index(0), self.size["m"]
        for height in self.grid.heights:
            single = code.compare("eq", code.remainder(left, height), 1)
            count = code.divide(code.sub(left, code.select(single, code.index(height), code.index(0))), height)
            found.append(_Groups(height, count, top))
            taken = code.mul(count, height)
            top, left = code.add(top, taken), code.sub(left, taken)
        return found

    def _upcoming(self, groups: Sequence[_Groups], some: _Groups, group: SSAValue) -> _Range | None:
        """The rows of B of the next iteration that a group prefetches: each an equal share, so that all take as long.

        Low groups leave it to the others, if there are any.
        """
        if not self.grid.prefetches:
            return None
        code, prefetched, is_low = self.code, self.size["asked"], some.height <= self.grid.low
        if is_low:
            others = self._count(each for each in groups if each.height > self.grid.low)
            prefetched = code.select(code.compare("eq", others, 0), prefetched, code.index(0))
        alike = [each for each in groups if (each.height <= self.grid.low) is is_low]
        number = code.maximum(self._count(alike), 1)
        begin = code.add(self._count(each for each in alike if each.height > some.height), group)
        lower, upper = (code.divide(code.mul(prefetched, each), number) for each in (begin, code.add(begin, 1)))
        return lower, upper

    def _count(self, groups: Iterable[_Groups]) -> SSAValue:
        return reduce(self.code.add, (each.count for each in groups), self.code.index(0))

    def _rows(
        self, extent: _Range, top: SSAValue, height: int, k_rows: Sequence[SSAValue], upcoming: _Range | None = None
    ) -> None:
        """Some rows of B for some rows of A. Where nothing is prefetched the loop has no code for it, which takes time
        too.
        """
        code, size = self.code, self.size
        starts = [code.add(size["row"], code.mul(code.add(top, i), size["row_each"])) for i in range(height)]
        positions = [[code.add(start, code.mul(k_row, size["row_step"])) for start in starts] for k_row in k_rows]
        factors = [
            [code.splat(code.load(self.buffer["rows"], [at]), self.lanes) for at in k_row] for k_row in positions
        ]
        columns = [code.add(size["column"], code.mul(k_row, size["column_step"])) for k_row in k_rows]
        first, vectors = extent
        every, rows = (code.index(0), vectors), _Rows(first, top, factors, columns)
        if upcoming is None:
            self._vectors(rows, every)
        elif height <= self.grid.low:
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
