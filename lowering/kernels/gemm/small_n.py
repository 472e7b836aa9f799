"""GEMM with small N whose rows are contiguous along K: `y = A x` for a row-major matrix.

Every element of the matrix is used only once per column, so memory is the bound. Columns that do not lie along K are
copied, each to contiguous memory; then some rows are multiplied with some columns element by element. The columns that
remain after the last whole panel of a wider GEMM are multiplied like this, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from typing_extensions import override
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    DOT_STREAMS,
    L3_PART,
    REMAINDER_COLUMNS,
    SMALL_N,
    SMALL_N_ACCUMULATORS,
    SMALL_N_L2_PART,
    SUM_BLOCK_STEPS,
    TASK_MACS,
)
from lowering.kernels.emit.accumulators import VectorTotals, in_blocks
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Routine, flat, shared_units
from lowering.kernels.emit.vectorization import is_power_of_two, masks_are_registers, row_sums, shuffle
from lowering.kernels.gemm.dot import PrefetchRow, row_prefetcher
from lowering.kernels.gemm.epilogue import EpilogueEmitter, SinglePassGemm, can_store_accumulators
from lowering.kernels.gemm.long_rows import Copies, LongRows, RowVector, are_long
from lowering.kernels.gemm.micro_kernel import Matrix, operand
from lowering.kernels.gemm.problem import Coords, Gemm
from lowering.kernels.gemm.register_tile import (
    has_contiguous_rows,
    has_remainder,
    is_small_n,
    max_remainder,
    max_small_n,
    narrow_step,
)
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.types import BufferType

PrefetchTileRow = Callable[[int, SSAValue], None]
"""Prefetches what follows a row, by its number in the tile, at a step of K."""


_SIZES = ("lower", "upper", "m", "k", "count", "near", "width", "first", "each", "out", "out_each", "asked")
_BUFFERS = ("copies", "matrix", "output")


@dataclass(frozen=True)
class SmallNRoutine(Routine):
    """A tile of accumulators: rows and columns, both powers of two."""

    dtype: AnyFloat
    lanes: int
    rows: int
    columns: int
    has_masks: bool = False
    """Whether masks cost nothing."""

    @staticmethod
    def of(dtype: AnyFloat, lanes: int, columns: int, registers: int) -> SmallNRoutine:
        """A tile with as many rows as are read side by side, fewer if registers or lanes do not suffice."""
        fits = registers > 2 * SMALL_N_ACCUMULATORS or columns * DOT_STREAMS <= SMALL_N_ACCUMULATORS
        return SmallNRoutine(dtype, lanes, min(lanes, DOT_STREAMS if fits else DOT_STREAMS // 2), columns)

    @property
    def together(self) -> int:
        """How many results one vector has, row by row."""
        return min(self.lanes, self.rows * self.columns)

    def emit(
        self,
        code: Code,
        k: SSAValue,
        near: Sequence[RowVector],
        far: Sequence[RowVector],
        prefetch: PrefetchTileRow | None = None,
    ) -> Sequence[SSAValue]:
        """The results of a tile in vectors of so many `together`: the `near` columns times the rows that are `far`."""
        lanes, count = self.lanes, self.columns
        buffer = code.alloc([self.rows * count, lanes], self.dtype, "sums", scope="local")
        positions = [[[code.index(i * count + j), code.index(0)] for j in range(count)] for i in range(self.rows)]
        for position in (position for vectors in positions for position in vectors):
            code.store(code.zeros(self.dtype, lanes), buffer, position)

        def add(r: SSAValue, on: SSAValue | None) -> None:
            columns = [vectors(r, on) for vectors in near]
            for vectors, own in zip(far, positions, strict=True):
                vector = vectors(r, on)
                for column, position in zip(columns, own, strict=True):
                    code.store(code.fma(vector, column, code.load(buffer, position, lanes)), buffer, position)

        whole = code.divide(k, lanes)

        def run(lower: SSAValue | None, upper: SSAValue) -> None:
            with code.loop(upper, "v", lower=lower, vectorize=False) as v:
                r = code.mul(v, lanes)
                if prefetch is not None:
                    for i in range(self.rows):
                        prefetch(i, r)
                add(r, None)

        indices = [position for vectors in positions for position in vectors]
        in_blocks(
            code,
            (None, whole),
            run,
            lambda: VectorTotals(code, self.dtype, buffer, indices, lanes),
            constant(SUM_BLOCK_STEPS),
        )
        done = code.mul(whole, lanes)
        with code.when(code.compare("slt", done, k)):
            add(done, code.sub(k, done))
        accumulators = [code.load(buffer, position, lanes) for vectors in positions for position in vectors]
        return [row_sums(code, accumulators[i : i + self.together]) for i in range(0, len(accumulators), self.together)]

    # As a routine.

    @property
    @override
    def label(self) -> str:
        """The shape of the tile."""
        return f"columns.{self.dtype}.{self.rows}x{self.columns}"

    @override
    def sizes(self) -> Sequence[str]:
        return _SIZES

    @override
    def buffers(self) -> Mapping[str, BufferType]:
        return flat(self.dtype, *_BUFFERS)

    @override
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        """The code of the function."""
        _Body(self, code, size, buffer).emit()


@dataclass(frozen=True)
class _Body:
    kind: SmallNRoutine
    code: Code
    size: Mapping[str, SSAValue]
    buffer: Mapping[str, SSAValue]

    def emit(self) -> None:
        """The tiles from `lower` to before `upper`; rows after the last one are that once more."""
        code, kind, size = self.code, self.kind, self.size
        near = [self._copy(j) for j in range(kind.columns)]
        count = code.compare("eq", size["count"], kind.columns)
        dense = code.both(count, code.compare("eq", size["out_each"], kind.columns))
        with code.loop(size["upper"], "tile", lower=size["lower"], vectorize=False) as tile:
            top = code.mul(tile, kind.rows)
            rows = [code.minimum(code.add(top, i), code.sub(size["m"], 1)) for i in range(kind.rows)]
            positions = [code.add(size["first"], code.mul(row, size["each"])) for row in rows]

            def prefetch(i: int, r: SSAValue) -> None:
                with code.when(code.compare("ne", size["asked"], 0)):
                    position = code.add(positions[i], code.mul(size["each"], kind.rows))
                    for ahead in (0, kind.lanes):
                        code.prefetch(self.buffer["matrix"], [code.add(code.add(position, r), ahead)], 2)

            k_rows = [self._row_vector("matrix", position) for position in positions]
            totals = kind.emit(code, size["k"], near, k_rows, prefetch)
            with code.when(dense) as branch:
                self._dense(totals, top)
            with code.otherwise(branch):
                self._rows(totals, rows)

    def _copy(self, number: int) -> RowVector:
        """A column; that after the last one is that once more."""
        code, size = self.code, self.size
        column = code.minimum(code.sub(size["count"], 1), number)
        return self._row_vector("copies", code.add(size["near"], code.mul(size["width"], column)))

    def _row_vector(self, buffer: str, begin: SSAValue) -> RowVector:
        code, lanes = self.code, self.kind.lanes

        def vector(r: SSAValue, on: SSAValue | None) -> SSAValue:
            mask = None if on is None else code.leading(on, lanes)
            return code.load(self.buffer[buffer], [code.add(begin, r)], lanes, mask)

        return vector

    def _dense(self, totals: Sequence[SSAValue], top: SSAValue) -> None:
        """Stores to rows that are nothing but these columns."""
        code, kind, size = self.code, self.kind, self.size
        left = code.mul(code.sub(size["m"], top), kind.columns)
        first = code.add(size["out"], code.mul(top, kind.columns))
        for i, total in enumerate(totals):
            position, rest = [code.add(first, i * kind.together)], code.sub(left, i * kind.together)
            with code.when(code.compare("sge", rest, kind.together)) as branch:
                code.store(total, self.buffer["output"], position)
            with code.otherwise(branch):
                code.store(total, self.buffer["output"], position, code.leading(rest, kind.together))

    def _rows(self, totals: Sequence[SSAValue], rows: Sequence[SSAValue]) -> None:
        """Stores to some columns of rows."""
        code, kind, size = self.code, self.kind, self.size
        for i, row in enumerate(rows):
            position = code.add(size["out"], code.mul(row, size["out_each"]))
            for j in range(0, kind.columns, kind.together):
                number, first = divmod(i * kind.columns + j, kind.together)
                self._columns(totals[number], first, code.add(position, j), code.sub(size["count"], j))

    def _columns(self, total: SSAValue, first: int, position: SSAValue, count: SSAValue) -> None:
        """Stores some neighbouring results from one on, at most those of a row."""
        code, width = self.code, min(self.kind.columns, self.kind.together)

        def put(first: int, lanes: int, position: SSAValue, mask: SSAValue | None = None) -> None:
            values = shuffle(code, (total, total), range(first, first + lanes))
            code.store(values, self.buffer["output"], [position], mask)

        if self.kind.columns <= 2:  # which are there
            put(first, width, position)
        elif self.kind.has_masks:
            put(first, width, position, code.leading(count, width))
        else:
            with code.when(code.compare("sge", count, width)) as branch:
                put(first, width, position)
            with code.otherwise(branch):  # one column less
                if width > 2:
                    put(first, 2, position)
                put(first + width - 2, 1, code.add(position, width - 2))


Bounds = tuple[SSAValue, SSAValue]
"""The numbers from the first value to before the second."""


@dataclass(frozen=True)
class SmallNColumns:
    """A small N, each contiguous along K."""

    near: Matrix
    """Where they lie, from column `first` on."""
    first: SSAValue
    count: SSAValue
    """How many, at least one."""


def possible_counts(gemm: Gemm) -> Sequence[int]:
    """How many columns a group may have."""
    known, most = gemm.n.constant_value, REMAINDER_COLUMNS
    if known is None:
        return range(1, most + 1)
    found = {known % narrow_step(gemm), known % gemm.tiles.nr} if has_remainder(gemm) else set[int]()
    if is_small_n(gemm) is not False:
        found |= {min(known, most), known % most}
    return sorted(count for count in found if 0 < count <= most)


class SmallNTiles:
    """Emits tiles of rows times a few columns, for one batch: to the output, or through memory to an epilogue."""

    def __init__(self, gemm: Gemm, coords: Coords, few: SmallNColumns):
        self.gemm = gemm
        self.code = gemm.code
        self.lanes = gemm.tiles.lanes
        self.few = few
        self.coords = {**coords, gemm.contraction.column: few.first}

    def emit(self, units: Bounds) -> None:
        """Emits all rows of some units, each as many as a vector has lanes, times each group of columns."""
        code, gemm, few = self.code, self.gemm, self.few
        known = gemm.n.constant_value
        if known is not None and (known <= REMAINDER_COLUMNS or is_small_n(gemm) is False):
            self._group(units)
            return
        room = gemm.kernel.target.l2_bytes // SMALL_N_L2_PART // byte_size(gemm.contraction.element) // self.lanes
        block = code.dim(maximum(floordiv(constant(room), maximum(gemm.k, constant(1))), constant(1)))
        blocks = code.divide(code.add(code.sub(units[1], units[0]), code.sub(block, 1)), block)
        groups = code.divide(code.add(few.count, REMAINDER_COLUMNS - 1), REMAINDER_COLUMNS)
        with (
            code.loop(blocks, "block", vectorize=False) as number,
            code.loop(groups, "group", vectorize=False) as group,
        ):
            lower = code.add(units[0], code.mul(number, block))
            first = code.mul(group, REMAINDER_COLUMNS)
            count = code.minimum(code.sub(few.count, first), REMAINDER_COLUMNS)
            columns = SmallNColumns(replace(few.near, first=self._begin(first)), code.add(few.first, first), count)
            chunk = SmallNTiles(gemm, self.coords, columns)
            chunk._group((lower, code.minimum(code.add(lower, block), units[1])))

    def _group(self, units: Bounds) -> None:
        """Emits all rows of some units times all columns, at most as many as a tile has."""
        code, contraction = self.code, self.gemm.contraction
        zero = code.index(0)
        rows = operand(
            self.gemm,
            contraction.rows,
            {**self.coords, contraction.row: zero, contraction.reduced: zero},
            contraction.row,
        )
        if isinstance(rows, Matrix) and can_store_accumulators(self.gemm):
            self._by_width(partial(self._to_output, rows, units))
            return
        totals = self.memory()
        with code.loop(units[1], "unit", lower=units[0]) as unit:
            top = code.mul(unit, self.lanes)
            if isinstance(rows, Matrix):
                self._by_width(partial(self._to_memory, rows, top, totals))
            else:
                self._by_width(partial(self._computed, top, totals))
            self.store(top, totals)

    def memory(self) -> SSAValue:
        """Memory for the accumulators of a unit."""
        return self.code.alloc([self.lanes * REMAINDER_COLUMNS], self.gemm.contraction.element, "totals")

    def _by_width(self, emit: Callable[[int], None]) -> None:
        """Emits tiles for so many columns, or one more: there are tiles of 1, 2 and 4 columns."""
        code, count = self.code, self.few.count
        widths = sorted({1 << (count - 1).bit_length() for count in possible_counts(self.gemm)})

        def narrower(width: int, *wider: int) -> None:
            if not wider:
                emit(width)
                return
            with code.when(code.compare("sle", count, width)) as branch:
                emit(width)
            with code.otherwise(branch):
                narrower(*wider)

        narrower(*widths)

    def _kind(self, width: int) -> SmallNRoutine:
        gemm = self.gemm
        registers = gemm.kernel.target.vector_registers
        kind = SmallNRoutine.of(gemm.contraction.element, self.lanes, width, registers)
        return replace(kind, has_masks=masks_are_registers(gemm.kernel))

    def _to_output(self, rows: Matrix, units: Bounds, width: int) -> None:
        """Emits the rows of some units, to the output."""
        code, gemm, contraction = self.code, self.gemm, self.gemm.contraction
        kind, m, zero = self._kind(width), code.dim(gemm.m, "m"), code.index(0)
        lower, upper = (code.mul(unit, self.lanes // kind.rows) for unit in units)
        upper = code.minimum(upper, code.divide(code.add(m, kind.rows - 1), kind.rows))
        out = gemm.offset(contraction.output, {**self.coords, contraction.row: zero})
        each = code.dim(contraction.output.strides[contraction.row[-1]])
        self._call(kind, rows, (lower, upper, m), (gemm.accumulators, out, each))

    def _to_memory(self, rows: Matrix, top: SSAValue, totals: SSAValue, width: int) -> None:
        """Emits the rows of a unit, side by side in memory."""
        code, kind = self.code, self._kind(width)
        count = code.minimum(code.sub(code.dim(self.gemm.m, "m"), top), self.lanes)
        tiles = code.divide(code.add(count, kind.rows - 1), kind.rows)
        here = replace(rows, first=code.add(rows.first, code.mul(top, rows.each)))
        self._call(kind, here, (code.index(0), tiles, count), (totals, code.index(0), code.index(width)))

    def _call(
        self,
        kind: SmallNRoutine,
        rows: Matrix,
        tiles: tuple[SSAValue, SSAValue, SSAValue],
        out: tuple[SSAValue, SSAValue, SSAValue],
    ) -> None:
        """Some tiles of so many rows, into a buffer from one index on, with so many elements for each row."""
        code, gemm, few = self.code, self.gemm, self.few
        each, near_each = (
            each if isinstance(each, SSAValue) else code.index(each) for each in (rows.each, few.near.each)
        )
        buffers = [few.near.buffer, rows.buffer, out[0]]
        near = [few.count, few.near.first, near_each]
        sizes = [*tiles, code.dim(gemm.k, "k"), *near, rows.first, each, *out[1:], self._prefetched]
        gemm.kernel.routines.call(code, kind, sizes, buffers)

    @property
    def _prefetched(self) -> SSAValue:
        """1 if rows come from memory, else 0."""
        code, gemm = self.code, self.gemm
        room = gemm.kernel.target.l3_bytes // L3_PART // byte_size(gemm.contraction.element)
        is_far = code.compare("sgt", code.dim(gemm.m * gemm.k), room)
        return code.select(is_far, code.index(1), code.index(0))

    def _computed(self, top: SSAValue, totals: SSAValue, width: int) -> None:
        """Emits the rows of a unit that are computed on the way, side by side in memory."""
        code, gemm, contraction, few = self.code, self.gemm, self.gemm.contraction, self.few
        kind, last = self._kind(width), code.sub(code.dim(gemm.m, "m"), 1)
        columns = [code.minimum(code.sub(few.count, 1), j) for j in range(width)]
        near = [self._column(column) for column in columns]

        def row_vector(row: SSAValue, r: SSAValue, on: SSAValue | None) -> SSAValue:
            return gemm.vector(
                contraction.rows, {**self.coords, contraction.row: row, contraction.reduced: r}, contraction.reduced, on
            )

        def far(row: SSAValue) -> RowVector:
            return partial(row_vector, code.minimum(row, last))

        with code.loop(code.index(self.lanes // kind.rows), "tile", vectorize=False) as tile:
            first = code.add(top, code.mul(tile, kind.rows))
            upcoming = row_prefetcher(
                gemm, contraction.rows, {**self.coords, contraction.row: code.add(first, kind.rows)}, contraction.row
            )
            prefetch = None if upcoming is None else partial(self._prefetch, upcoming)
            rows = [far(code.add(first, i)) for i in range(kind.rows)]
            accumulators = kind.emit(code, code.dim(gemm.k, "k"), near, rows, prefetch)
            position = code.mul(tile, kind.rows * width)
            for i, each in enumerate(accumulators):
                code.store(each, totals, [code.add(position, i * kind.together)])

    def _column(self, number: SSAValue) -> RowVector:
        """A column by its number."""
        code, near, begin = self.code, self.few.near, self._begin(number)

        def vector(r: SSAValue, on: SSAValue | None) -> SSAValue:
            mask = None if on is None else code.leading(on, self.lanes)
            return code.load(near.buffer, [code.add(begin, r)], self.lanes, mask)

        return vector

    def _begin(self, number: SSAValue) -> SSAValue:
        """Where a column begins."""
        code, each = self.code, self.few.near.each
        return code.add(self.few.near.first, code.mul(number, code.index(each) if isinstance(each, int) else each))

    def _prefetch(self, upcoming: PrefetchRow, number: int, r: SSAValue) -> None:
        upcoming(self.code.index(number), r)

    def store(self, top: SSAValue, totals: SSAValue) -> None:
        """The epilogue of a unit, from its accumulators side by side.

        Vectors that are no wider than a row wait for no other row's results to be in the cache.
        """
        code, gemm, contraction, count = self.code, self.gemm, self.gemm.contraction, self.few.count
        lanes = min(REMAINDER_COLUMNS, self.lanes)
        epilogue = EpilogueEmitter(replace(gemm, tiles=replace(gemm.tiles, lanes=lanes, vectors=1)), None, None)
        width = code.select(code.compare("eq", count, 3), code.index(4), count)
        rows = code.minimum(code.sub(code.dim(gemm.m, "m"), top), self.lanes)
        with code.loop(rows, "i", vectorize=False) as i:
            here = {**self.coords, contraction.row: code.add(top, i)}
            position = code.mul(i, width)
            epilogue.store(code.load(totals, [position], lanes), here, count)
            for j in range(lanes, REMAINDER_COLUMNS, lanes):  # where vectors have two lanes
                with code.when(code.compare("sgt", count, j)):
                    there = {**here, contraction.column: code.add(self.few.first, j)}
                    epilogue.store(code.load(totals, [code.add(position, j)], lanes), there, code.sub(count, j))


def can_be_small_n(gemm: Gemm) -> bool:
    """Whether N may be small, or may have a small remainder after whole panels, and rows are contiguous along K."""
    return (
        (is_small_n(gemm) is not False or has_remainder(gemm))
        and has_contiguous_rows(gemm)
        and is_power_of_two(gemm.tiles.lanes)
    )


class SmallNGemm(SinglePassGemm):
    """Emits a GEMM with small N, for one batch: for all columns if they are few, or those that remain."""

    @property
    def is_best(self) -> SSAValue | None:
        """Whether N is small; `None` if that is known."""
        if is_small_n(self.gemm) is not None:
            return None
        return self.code.compare("sle", *map(self.code.dim, (self.gemm.n, max_small_n(self.gemm))))

    def emit(self, coords: Coords) -> None:
        """The GEMM of one batch."""
        code, n = self.code, self.gemm.n
        if n.constant_value is not None:
            if n.constant_value:
                self._columns(coords, code.index(0))
            return
        with code.when(code.compare("sgt", code.dim(n, "n"), 0)):
            self._columns(coords, code.index(0))

    def emit_last(self, coords: Coords, step: SSAValue) -> None:
        """The columns that remain after whole steps, if these are few; all columns if they are."""
        code, gemm = self.code, self.gemm
        n = code.dim(gemm.n, "n")
        rest = code.remainder(n, step)
        before = code.select(
            code.compare("sle", rest, code.dim(max_remainder(gemm, narrow_step(gemm)))), code.sub(n, rest), n
        )
        few = code.compare("sle", n, code.dim(max_small_n(gemm)))
        first = code.select(few, code.index(0), before)
        with code.when(code.compare("slt", first, n)):
            self._columns(coords, first)

    def _columns(self, coords: Coords, first: SSAValue) -> None:
        """The columns from one on, so few as it says; each task copies them for itself."""
        code, gemm, contraction, zero = self.code, self.gemm, self.gemm.contraction, self.code.index(0)
        long = are_long(gemm, gemm.m)
        rows = LongRows.make(gemm, gemm.contraction.rows, coords, gemm.contraction.row)
        shift = code.index(0) if long is None else code.select(long, rows.shift, code.index(0))
        units = ceildiv(gemm.m, constant(self.lanes))
        tasks = minimum(units, gemm.threads(TASK_MACS, self._work))
        with shared_units(code, units, tasks, whole=True) as (lower, upper):
            columns = operand(
                gemm,
                contraction.columns,
                {**coords, contraction.column: first, contraction.reduced: zero},
                contraction.column,
            )
            lies = isinstance(columns, Matrix) and gemm.is_contiguous(contraction.columns, contraction.reduced)
            copies = None if lies else self._packed(coords, first, shift)
            near = columns if copies is None else copies.operand(code)
            assert isinstance(near, Matrix)  # or they are copied
            tiles = SmallNTiles(gemm, coords, SmallNColumns(near, first, code.sub(code.dim(gemm.n, "n"), first)))
            if long is None or 1 not in possible_counts(gemm):
                tiles.emit((lower, upper))
                return
            with code.when(code.both(long, code.compare("eq", tiles.few.count, 1))) as branch:
                self._long_rows(rows, copies or self._packed(coords, first, shift), tiles, (lower, upper))
            with code.otherwise(branch):
                tiles.emit((lower, upper))

    def _long_rows(self, rows: LongRows, copies: Copies, tiles: SmallNTiles, units: Bounds) -> None:
        """One column, with rows that are read one after the other."""
        code, lanes, dtype = self.code, self.lanes, self.gemm.contraction.element
        accumulators, totals = code.alloc([lanes, lanes], dtype, "partial_sums"), tiles.memory()
        with code.loop(units[1], "unit", lower=units[0]) as unit:
            top = code.mul(unit, lanes)
            rows.accumulate((copies, code.index(0)), top, accumulators)
            vectors = [code.load(accumulators, [code.index(i), code.index(0)], lanes) for i in range(lanes)]
            code.store(row_sums(code, vectors), totals, [code.index(0)])
            tiles.store(top, totals)

    @property
    def _work(self) -> Dim:
        """How many multiply-adds there are."""
        gemm, step = self.gemm, narrow_step(self.gemm)
        count = gemm.n
        if has_remainder(gemm) and step > SMALL_N:  # all are after whole steps if they are few
            count = count - step * floordiv(count, constant(step))
        return gemm.m * count * gemm.k

    def _packed(self, coords: Coords, first: SSAValue, shift: SSAValue) -> Copies:
        """The columns, each in one piece."""
        code, gemm, contraction = self.code, self.gemm, self.gemm.contraction
        packed = Copies.make(gemm, SMALL_N, shift)
        with (
            code.loop(code.dim(gemm.n, "n"), "j", lower=first) as j,
            code.loop(code.dim(gemm.k, "k"), "r", vectorize=False) as r,
        ):
            value = gemm.element(contraction.columns, {**coords, contraction.column: j, contraction.reduced: r})
            code.store(value, packed.buffer, [packed.offset(code, code.sub(j, first), r)])
        return packed
