"""Dot products: GEMM with small M whose operands are both contiguous along K, `y = W x` for a row-major matrix.

Vectors are multiplied element by element, with one vector accumulator for each of some rows and columns. At the end,
pairs of accumulators are reduced together, half by half: a tree of shuffles makes as many accumulators as a vector has
lanes into one vector of results. For one row and long columns, `LongDotGemm` aligns all loads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    DOT_ANY_K_M,
    DOT_K_PER_ROW,
    DOT_ROWS,
    DOT_STREAMS,
    DOT_WIDE_K_PER_ROW,
    DOT_WIDE_LANES,
    L3_PART,
    LONG_DOT_MAX_M,
    SKINNY_MAX_M,
    SUM_BLOCK_STEPS,
    TASK_MACS,
)
from lowering.kernels.emit.accumulators import VectorTotals, in_blocks
from lowering.kernels.emit.kernel import shared_units
from lowering.kernels.emit.vectorization import is_power_of_two, row_sums, shuffle
from lowering.kernels.gemm.epilogue import SinglePassGemm
from lowering.kernels.gemm.long_rows import Copies, LongRows, RowVector, are_long
from lowering.kernels.gemm.micro_kernel import Computed, elements_before_alignment
from lowering.kernels.gemm.problem import Coords, Gemm
from lowering.kernels.gemm.skinny import can_be_skinny
from lowering.kernels.structure.contraction import Factor
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES

PrefetchRow = Callable[[SSAValue, SSAValue], None]
"""Prefetches a streamed row, by its number, at a step of K."""


def emit_dots(
    gemm: Gemm,
    near: Sequence[RowVector],
    far: Callable[[SSAValue], RowVector],
    memory: SSAValue,
    count: int,
    prefetch: PrefetchRow | None = None,
    head: SSAValue | None = None,
) -> None:
    """Fills memory with vector accumulators, those of the first of the `near` rows with each `far` one, and so on.

    `near` rows are reused, `far` ones are streamed: they are numbered up to `count`, a power of two, and some are taken
    at a time, while the next ones may be prefetched. All vectors are whole but the last one, and the first one if there
    is a `head`: so many elements are before the others, fewer than a vector has lanes.
    """
    code, group = gemm.code, min(count, DOT_STREAMS)
    with code.loop(code.index(count // group), "part") as chunk:
        first = code.mul(chunk, group)
        numbers = [code.add(first, j) for j in range(group)]
        upcoming = [] if prefetch is None else [partial(prefetch, code.add(number, group)) for number in numbers]
        found = _streams(gemm, near, [far(number) for number in numbers], upcoming, head)
        for i, row in enumerate(found):
            for number, accumulators in zip(numbers, row, strict=True):
                code.store(accumulators, memory, [code.add(number, i * count), code.index(0)])


def _streams(
    gemm: Gemm,
    near: Sequence[RowVector],
    far: Sequence[RowVector],
    upcoming: Sequence[Callable[[SSAValue], None]],
    head: SSAValue | None,
) -> list[list[SSAValue]]:
    """For each of the `near` rows the accumulators with all `far` ones."""
    code, lanes = gemm.code, gemm.tiles.lanes
    k, accumulators = code.dim(gemm.k, "k"), _Accumulators(gemm, len(near), len(far))
    first = code.index(0)
    if head is not None:
        first = code.minimum(head, k)
        with code.when(code.compare("sgt", first, 0)):
            accumulators.add(near, far, code.index(0), first)
    whole = code.divide(code.sub(k, first), lanes)

    def run(lower: SSAValue | None, upper: SSAValue) -> None:
        with code.loop(upper, "v", lower=lower) as v:
            r = code.add(first, code.mul(v, lanes))
            for each in upcoming:
                each(r)
            accumulators.add(near, far, r, None)

    in_blocks(code, (None, whole), run, accumulators.totals, constant(SUM_BLOCK_STEPS))
    done = code.add(first, code.mul(whole, lanes))
    if code.known(done) is None or code.known(done) != code.known(k):
        with code.when(code.compare("slt", done, k)):
            accumulators.add(near, far, done, code.sub(k, done))
    return accumulators.found()


class _Accumulators:
    """Vector accumulators in registers, zero at first: one for each near row with each far one."""

    def __init__(self, gemm: Gemm, near: int, far: int):
        self._code, self._lanes, self._dtype = gemm.code, gemm.tiles.lanes, gemm.contraction.element
        code, dtype = self._code, self._dtype
        self._memory = code.alloc([near * far, self._lanes], dtype, "sums", scope="local")
        self._indices = [[[code.index(i * far + j), code.index(0)] for j in range(far)] for i in range(near)]
        for index in (index for row in self._indices for index in row):
            code.store(code.zeros(dtype, self._lanes), self._memory, index)

    def add(self, near: Sequence[RowVector], far: Sequence[RowVector], r: SSAValue, on: SSAValue | None) -> None:
        """Emits the multiply-adds of all rows at a step of K: of all lanes, or so many."""
        code, lanes = self._code, self._lanes
        factors = [row(r, on) for row in near]
        for j, row in enumerate(far):
            vector = row(r, on)
            for factor, own in zip(factors, self._indices, strict=True):
                accumulators = code.fma(factor, vector, code.load(self._memory, own[j], lanes))
                code.store(accumulators, self._memory, own[j])

    def totals(self) -> VectorTotals:
        """Memory for the totals between two blocks of steps."""
        indices = [index for row in self._indices for index in row]
        return VectorTotals(self._code, self._dtype, self._memory, indices, self._lanes)

    def found(self) -> list[list[SSAValue]]:
        """The accumulators: for each near row, those with all far ones."""
        return [[self._code.load(self._memory, index, self._lanes) for index in row] for row in self._indices]


def row_prefetcher(gemm: Gemm, factor: Factor, coords: Coords, along: tuple[int, ...]) -> PrefetchRow | None:
    """What prefetches the rows of a factor that follow given values of some axes, if they come from memory.

    `None` where a vector is not a whole cache line, or addresses are looked up.
    """
    code, size = gemm.code, byte_size(gemm.contraction.element)
    if gemm.tiles.lanes * size < LINE_BYTES:
        return None
    if any(access.computed for access in factor.accesses):
        return None
    room = gemm.kernel.target.l3_bytes // L3_PART // size
    is_far = code.compare("sgt", code.dim(gemm.size(along) * gemm.k), room)
    cache_lines = Computed(gemm, factor, coords, along)

    def prefetch(number: SSAValue, r: SSAValue) -> None:
        with code.when(is_far):
            cache_lines.prefetch(code, r, 0, number, 2)

    return prefetch


def can_dot(gemm: Gemm) -> bool:
    """Whether both operands are contiguous along K and M may be small."""
    contraction = gemm.contraction
    along = all(gemm.is_contiguous(factor, contraction.reduced) for factor in (contraction.rows, contraction.columns))
    return along and _may_be_few(gemm)


def can_dot_pages(gemm: Gemm) -> bool:
    """As `can_dot`, but addresses may be looked up along other axes."""
    contraction = gemm.contraction
    along = all(gemm.has_vectors(factor, contraction.reduced) for factor in (contraction.rows, contraction.columns))
    return along and _may_be_few(gemm)


def _may_be_few(gemm: Gemm) -> bool:
    rows, is_rounded = gemm.m.constant_value, gemm.contraction.longest is None
    return is_rounded and is_power_of_two(gemm.tiles.lanes) and (rows is None or rows <= SKINNY_MAX_M)


def dot_may_be_profitable(gemm: Gemm) -> bool:
    """Whether M may be small enough for K."""
    spare = (max_dot_m(gemm) - gemm.m).constant_value
    return spare is None or spare >= 0


def max_dot_m(gemm: Gemm) -> Dim:
    """The largest M that is small: less for short K where columns may be copied."""
    wide, can_copy = gemm.tiles.lanes >= DOT_WIDE_LANES, can_be_skinny(gemm)
    if wide and not can_copy:
        return constant(SKINNY_MAX_M)
    least, longer = (1, DOT_WIDE_K_PER_ROW) if wide else (DOT_ANY_K_M, DOT_K_PER_ROW)
    return minimum(constant(SKINNY_MAX_M), maximum(constant(least), floordiv(gemm.k, constant(longer))))


class DotGemm(SinglePassGemm):
    """Emits dot products, for one batch."""

    @property
    def is_best(self) -> SSAValue | None:
        """Whether M is small; `None` if that is known."""
        m, most = self.gemm.m, max_dot_m(self.gemm)
        if (most - m).constant_value is not None:
            return None
        if (m.constant_value or SKINNY_MAX_M) <= DOT_ANY_K_M and not can_be_skinny(self.gemm):
            return None
        return self.code.compare("sle", self.code.dim(m, "m"), self.code.dim(most))

    def emit(self, coords: Coords) -> None:
        """The GEMM of one batch."""
        code, gemm = self.code, self.gemm
        units = ceildiv(gemm.n, constant(self.lanes)) * gemm.rounds
        tasks = minimum(units, gemm.threads(TASK_MACS))
        with shared_units(code, units, tasks) as (lower, upper), code.loop(upper, "unit", lower=lower) as unit:
            here, left = gemm.panel_position(coords, unit, self.lanes)
            self.multiply(here, (left, self.lanes), (code.index(0), code.dim(gemm.m, "m")))

    def multiply(self, coords: Coords, columns: tuple[SSAValue, int], rows: tuple[SSAValue, SSAValue]) -> None:
        """Some rows, from one to before another, times some columns: the first one, and how many there are."""
        code, (top, end) = self.code, rows
        for mr, width in self.groups:
            groups = code.divide(code.sub(end, top), mr)
            if code.known(groups) != 0:
                self._group(coords, columns, (mr, width), top, groups)
            top = code.add(top, code.mul(groups, mr))

    @property
    def groups(self) -> Sequence[tuple[int, int]]:
        """Rows and columns that are multiplied with each other at once, for fewer and fewer rows."""
        if self.lanes >= DOT_WIDE_LANES:
            return (4, self.lanes // 4), (3, self.lanes), (2, self.lanes), (1, self.lanes)
        return tuple((mr, self.lanes) for mr in DOT_ROWS)

    def _group(
        self, coords: Coords, columns: tuple[SSAValue, int], size: tuple[int, int], first: SSAValue, groups: SSAValue
    ) -> None:
        """So many groups of rows, from the first row on, times some columns."""
        code, (mr, width), lanes, (left, count) = self.code, size, self.lanes, columns
        together = lanes // width
        with (
            code.loop(groups, "group") as group,
            code.loop(code.index(count // width), "part") as chunk,
        ):
            start = code.add(left, code.mul(chunk, width))
            top = code.add(first, code.mul(group, mr))
            accumulators = self._accumulate(coords, [code.add(top, i) for i in range(mr)], start, width)
            for i in range(0, mr, together):
                own = accumulators[i * width : (i + together) * width]
                total = row_sums(code, own + own[-1:] * (lanes - len(own)))
                self._store(coords, total, code.add(top, i), min(together, mr - i), start, width)

    def _store(self, coords: Coords, total: SSAValue, top: SSAValue, mr: int, start: SSAValue, width: int) -> None:
        """A vector accumulator, `width` of each row; those of a row are rotated to the front."""
        code, contraction, lanes = self.code, self.gemm.contraction, self.lanes
        count = code.minimum(code.sub(code.dim(self.gemm.n), start), width)
        for i in range(mr):
            order = [(i * width + lane) % lanes for lane in range(lanes)]
            value = shuffle(code, (total, total), order) if i else total
            here = {**coords, contraction.row: code.add(top, i), contraction.column: start}
            (self.epilogue.store if width == lanes else self.epilogue.store_some)(value, here, count)

    def _accumulate(self, coords: Coords, rows: list[SSAValue], start: SSAValue, width: int) -> list[SSAValue]:
        """A vector accumulator for each row and column, row by row."""
        code, gemm, contraction = self.code, self.gemm, self.gemm.contraction
        last = code.sub(code.dim(gemm.n), 1)

        near = [self._row_vector(contraction.rows, {**coords, contraction.row: row}) for row in rows]

        def far(number: SSAValue) -> RowVector:
            return self.column_vector(coords, code.minimum(code.add(start, number), last))

        accumulators = code.alloc([len(rows) * width, self.lanes], contraction.element, "partial_sums")
        emit_dots(gemm, near, far, accumulators, width, self.prefetcher(coords, start), self.head(coords))
        return [code.load(accumulators, [code.index(i), code.index(0)], self.lanes) for i in range(len(rows) * width)]

    def _row_vector(self, factor: Factor, here: Coords) -> RowVector:
        def vector(r: SSAValue, on: SSAValue | None) -> SSAValue:
            reduced = self.gemm.contraction.reduced
            return self.gemm.vector(factor, {**here, reduced: r}, reduced, on)

        return vector

    def column_vector(self, coords: Coords, column: SSAValue) -> RowVector:
        """The vectors of a column."""
        contraction = self.gemm.contraction
        return self._row_vector(contraction.columns, {**coords, contraction.column: column})

    def prefetcher(self, coords: Coords, start: SSAValue) -> PrefetchRow | None:
        """What prefetches the columns after the one at `start`."""
        contraction = self.gemm.contraction
        return row_prefetcher(self.gemm, contraction.columns, {**coords, contraction.column: start}, contraction.column)

    def head(self, coords: Coords) -> SSAValue | None:
        """How many elements of long columns in a cache lie before the aligned ones; those of rows are often as many.

        A load from two cache lines takes twice as long.
        """
        code, gemm, contraction = self.code, self.gemm, self.gemm.contraction
        long = are_long(gemm, gemm.n)
        if long is None or self.lanes * byte_size(contraction.element) < LINE_BYTES:
            return None
        zero = code.index(0)
        head = elements_before_alignment(
            gemm, contraction.columns, {**coords, contraction.column: zero, contraction.reduced: zero}
        )
        return code.select(long, head, zero)


def can_long_dot(gemm: Gemm) -> bool:
    """Whether both operands are contiguous along K, in a single matrix, and there may be one row."""
    rows, contraction = gemm.m.constant_value, gemm.contraction
    return (
        can_dot(gemm) and not contraction.outer and not contraction.batch and (rows is None or rows <= LONG_DOT_MAX_M)
    )


class LongDotGemm(SinglePassGemm):
    """Emits dot products, for one batch."""

    @property
    def is_best(self) -> SSAValue:
        """Whether there is one row, and long columns."""
        code, gemm = self.code, self.gemm
        few = code.compare("sle", code.dim(gemm.m, "m"), LONG_DOT_MAX_M)
        long = are_long(gemm, gemm.n)
        assert long is not None  # there are no batches
        return code.both(few, long)

    def emit(self, coords: Coords) -> None:
        """The GEMM of one batch."""
        code, gemm, contraction = self.code, self.gemm, self.gemm.contraction
        units = ceildiv(gemm.n, constant(self.lanes))
        tasks = minimum(units, gemm.threads(TASK_MACS))
        columns = LongRows.make(gemm, contraction.columns, coords, contraction.column)
        with shared_units(code, units, tasks, whole=True) as (lower, upper):
            copies = self._copies(coords, columns.shift)
            accumulators = code.alloc([self.lanes, self.lanes], contraction.element, "partial_sums")
            with (
                code.loop(upper, "unit", lower=lower) as unit,
                code.loop(code.dim(gemm.m, "m"), "row") as row,
            ):
                start = code.mul(unit, self.lanes)
                columns.accumulate((copies, row), start, accumulators)
                vectors = [
                    code.load(accumulators, [code.index(i), code.index(0)], self.lanes) for i in range(self.lanes)
                ]
                here, count = (
                    {**coords, contraction.row: row, contraction.column: start},
                    code.sub(code.dim(gemm.n), start),
                )
                self.epilogue.store(row_sums(code, vectors), here, count)

    def _copies(self, coords: Coords, shift: SSAValue) -> Copies:
        """The rows, each in one piece."""
        code, gemm, contraction = self.code, self.gemm, self.gemm.contraction
        copies = Copies.make(gemm, LONG_DOT_MAX_M, shift)
        with (
            code.loop(code.dim(gemm.m, "m"), "row") as row,
            code.loop(code.divide(code.dim(gemm.k), self.lanes), "v", vectorize=False) as v,  # whole vectors
        ):
            r = code.mul(v, self.lanes)
            value = gemm.vector(
                contraction.rows, {**coords, contraction.row: row, contraction.reduced: r}, contraction.reduced, None
            )
            code.store(value, copies.buffer, [copies.offset(code, row, r)])
        return copies
