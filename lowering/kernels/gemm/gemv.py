"""GEMV: a vector times a matrix whose columns are contiguous, `y = x B`.

Every element of the matrix is used once, so memory is the bound. The matrix is read in place, some whole rows side by
side, and the accumulators go through L1. A vector that crosses a cache line costs two loads: where rows are a whole
number of vectors apart, all loads are aligned, and the accumulators have the same alignment. A thread has chunks of
whole rows: of a part of each row, prefetchers would read more than the thread needs. The chunks are the same for any
number of threads, and so are the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from typing_extensions import override
from xdsl.dialects.builtin import AnyFloat, i32
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    GEMV_BLOCK_BYTES,
    GEMV_FAR_BLOCKS,
    GEMV_MAX_PART_ROWS,
    GEMV_MAX_PARTS,
    GEMV_ROWS,
    GEMV_VECTORS,
    TASK_MACS,
)
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Routine, flat, shared_units
from lowering.kernels.gemm.epilogue import EpilogueEmitter
from lowering.kernels.gemm.micro_kernel import Matrix, elements_before_alignment, operand
from lowering.kernels.gemm.problem import Coords, Gemm
from lowering.kernels.gemm.skinny import can_be_skinny
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES
from tir_dialect.types import BufferType

_Bounds = tuple[SSAValue, SSAValue]
_Column = tuple[SSAValue, SSAValue]
"""The first column of a vector, and where its accumulators are."""
_Add = Callable[[Sequence[_Column], Sequence[SSAValue] | None], None]
"""Adds to some vectors; all lanes, or so many or more."""


@dataclass(frozen=True)
class Values:
    """The operands."""

    element: Callable[[SSAValue], SSAValue]
    """The element of the vector for a row of the matrix."""
    vector: Callable[[SSAValue, SSAValue, SSAValue | None], SSAValue]
    """A vector of a row of the matrix from a column on: all lanes, or so many or more."""
    added: Callable[[SSAValue, SSAValue], SSAValue]
    """The sum of a vector accumulator and a vector of the products of some rows."""
    zeros: Callable[[], SSAValue]
    """A vector accumulator that is zero."""
    prefetch: Callable[[SSAValue, SSAValue], None] | None = None
    """Prefetches a row of the matrix, which need not exist, at a column."""


@dataclass(frozen=True)
class Extent:
    """The range of rows and columns of the matrix."""

    lower: SSAValue
    upper: SSAValue
    """The first row, and the one after the last."""
    n: SSAValue
    """Columns."""
    head: SSAValue
    vectors: SSAValue
    block: SSAValue
    """Vector accumulators that are made before the next ones; whole groups."""
    prefetched: SSAValue | None = None
    """Not 0 where the rows of the next iteration are prefetched."""


@dataclass(frozen=True)
class GemvRoutine(Routine):
    """The kind of elements and vectors."""

    dtype: AnyFloat
    lanes: int
    masks: bool
    """Whether masks cost next to nothing."""
    prefetches: bool = False
    """Whether rows may be prefetched."""

    def emit(self, code: Code, extent: Extent, values: Values, accumulators: SSAValue) -> None:
        """Inlined code, for operands that are computed."""
        _Body(self, code, extent, values, accumulators).emit()

    @property
    @override
    def label(self) -> str:
        """The lanes."""
        return f"vector.{self.dtype}.{self.lanes}"

    @override
    def sizes(self) -> Sequence[str]:
        return [*self._extent, "row", "row_step", "column", "column_step"]

    @override
    def buffers(self) -> Mapping[str, BufferType]:
        return flat(self.dtype, "rows", "columns", "sums")

    @property
    def _extent(self) -> Sequence[str]:
        return ["lower", "upper", "n", "head", "vectors", "block", *["asked"] * self.prefetches]

    def arguments(self, extent: Extent, row: Matrix, columns: Matrix) -> list[SSAValue | int]:
        """The sizes of a call, without those of the buffers."""
        sizes = [extent.lower, extent.upper, extent.n, extent.head, extent.vectors, extent.block]
        prefetched = [extent.prefetched] if extent.prefetched is not None else []
        return [*sizes, *prefetched, row.first, row.step, columns.first, columns.step]

    @override
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        """The code of the function."""

        def element(row: SSAValue) -> SSAValue:
            return code.load(buffer["rows"], [code.add(size["row"], code.mul(row, size["row_step"]))])

        def begin(row: SSAValue) -> SSAValue:
            return code.add(size["column"], code.mul(row, size["column_step"]))

        def vector(row: SSAValue, j: SSAValue, on: SSAValue | None) -> SSAValue:
            index = code.add(begin(row), j)
            mask = None if on is None else code.leading(on, self.lanes)
            return code.load(buffer["columns"], [index], self.lanes, mask)

        def prefetch(row: SSAValue, j: SSAValue) -> None:
            code.prefetch(buffer["columns"], [code.add(begin(row), j)], 2)

        values = Values(element, vector, code.add_floats, lambda: code.zeros(self.dtype, self.lanes), prefetch)
        self.emit(code, Extent(*(size[name] for name in self._extent)), values, buffer["sums"])


@dataclass(frozen=True)
class _Body:
    kind: GemvRoutine
    code: Code
    extent: Extent
    values: Values
    accumulators: SSAValue

    def emit(self) -> None:
        """The accumulators of some rows, block by block: those of an iteration, then what is left, one by one."""
        code, extent = self.code, self.extent
        with code.loop(code.add(extent.vectors, GEMV_VECTORS - 1), "v", vectorize=False) as v:
            code.store(self.values.zeros(), self.accumulators, [code.mul(v, self.kind.lanes)])
        iterations = code.divide(code.sub(extent.upper, extent.lower), GEMV_ROWS)
        rest = code.add(extent.lower, code.mul(iterations, GEMV_ROWS))
        blocks = code.divide(code.add(extent.vectors, code.sub(extent.block, 2)), extent.block)
        with code.loop(code.maximum(blocks, 1), "block") as number:
            begin = code.add(code.mul(number, extent.block), 1)  # the first one has number 0 too
            bounds = begin, code.minimum(code.add(begin, extent.block), extent.vectors)
            with code.loop(iterations, "iteration") as iteration:
                first = code.add(extent.lower, code.mul(iteration, GEMV_ROWS))
                self._rows([code.add(first, row) for row in range(GEMV_ROWS)], bounds)
            with code.loop(extent.upper, "line", lower=rest) as row:
                self._rows([row], bounds)

    def _rows(self, rows: Sequence[SSAValue], bounds: _Bounds) -> None:
        """Adds some rows times their elements of the vector, to all accumulators within bounds.

        Several vectors at a time, without masks but at the ends.
        """
        code, (n, head), (begin, end) = self.code, (self.extent.n, self.extent.head), bounds
        factors = [code.splat(self.values.element(row), self.kind.lanes) for row in rows]
        add = partial(self._add, rows, factors)
        with code.when(code.compare("sle", begin, code.minimum(head, 1))):
            add([(code.index(0), code.index(0))], [head])
        if len(rows) == 1:
            self._single(add, begin, end)
            return
        whole = code.minimum(end, code.add(code.divide(code.sub(n, head), self.kind.lanes), 1))
        groups = code.divide(code.maximum(code.sub(whole, begin), 0), GEMV_VECTORS)
        prefetched = self.extent.prefetched
        if prefetched is None:
            self._groups(add, begin, groups)
        else:
            with code.when(code.compare("ne", prefetched, 0)) as branch:
                self._groups(add, begin, groups, [code.add(row, GEMV_ROWS) for row in rows])
            with code.otherwise(branch):
                self._groups(add, begin, groups)
        self._rest(add, code.add(begin, code.mul(groups, GEMV_VECTORS)), end)

    def _groups(self, add: _Add, begin: SSAValue, groups: SSAValue, upcoming: Sequence[SSAValue] = ()) -> None:
        """Some groups of vectors; the same vectors of the `upcoming` rows are prefetched."""
        code = self.code
        with code.loop(groups, "group", vectorize=False) as group:
            first = code.add(begin, code.mul(group, GEMV_VECTORS))
            targets = [
                column_of(code, self.kind.lanes, self.extent.head, code.add(first, v)) for v in range(GEMV_VECTORS)
            ]
            if self.values.prefetch is not None:
                for row in upcoming:
                    for column, _ in targets:
                        self.values.prefetch(row, column)
            add(targets, None)

    def _rest(self, add: _Add, begin: SSAValue, end: SSAValue) -> None:
        """The vectors after whole groups, fewer than one: where masks cost little, as one that reaches into padding.

        Only the last block has some, so that what is off adds to nothing: zero times infinity is no zero.
        """
        code, extent = self.code, self.extent
        if not self.kind.masks:
            self._single(add, begin, end)
            return
        with code.when(code.compare("slt", begin, end)):
            targets = [column_of(code, self.kind.lanes, extent.head, code.add(begin, v)) for v in range(GEMV_VECTORS)]
            add(targets, [code.sub(extent.n, column) for column, _ in targets])

    def _single(self, add: _Add, begin: SSAValue, end: SSAValue) -> None:
        """Vectors one by one."""
        code, lanes = self.code, self.kind.lanes
        with code.loop(end, "v", lower=begin, vectorize=False) as v:
            target = column_of(code, lanes, self.extent.head, v)
            count = code.sub(self.extent.n, target[0])
            if self.kind.masks:
                add([target], [count])
                return
            with code.when(code.compare("sge", count, lanes)) as branch:
                add([target], None)
            with code.otherwise(branch):
                add([target], [count])

    def _add(
        self,
        rows: Sequence[SSAValue],
        factors: Sequence[SSAValue],
        targets: Sequence[_Column],
        on: Sequence[SSAValue] | None,
    ) -> None:
        """Adds the products of some rows to some vector accumulators.

        All accumulators are read before one is written, and all lanes of them: what is off in `on` adds zero.
        """
        code, lanes = self.code, self.kind.lanes
        totals = [code.zeros(self.kind.dtype, lanes)] * len(targets)
        counts = [None] * len(targets) if on is None else on
        for factor, row in zip(factors, rows, strict=True):
            columns = [
                self.values.vector(row, column, count) for (column, _), count in zip(targets, counts, strict=True)
            ]
            totals = [code.fma(factor, column, total) for column, total in zip(columns, totals, strict=True)]
        old = [code.load(self.accumulators, [number], lanes) for _, number in targets]
        for (_, number), earlier, total in zip(targets, old, totals, strict=True):
            code.store(self.values.added(earlier, total), self.accumulators, [number])


def column_of(code: Code, lanes: int, head: SSAValue, vector: SSAValue) -> _Column:
    """The first column of a vector, but for number 0, and where its accumulators are."""
    return code.add(head, code.mul(code.sub(vector, 1), lanes)), code.mul(vector, lanes)


def can_be_gemv(gemm: Gemm) -> bool:
    """Whether M may be 1, and columns are contiguous in memory."""
    return gemm.m.constant_value in (None, 1) and can_read_columns(gemm) and can_be_skinny(gemm)


def can_read_columns(gemm: Gemm) -> bool:
    """Whether columns are contiguous in memory, in rows that are worth reading in place."""
    contraction = gemm.contraction
    fits = contraction.longest is None or contraction.longest >= GEMV_ROWS
    beside = gemm.is_contiguous(contraction.columns, contraction.column) and contraction.columns.panels is None
    return fits and beside and not contraction.outer


class Gemv:
    """Emits a GEMV at given values of the batch axes.

    Accumulators are whole, numbered vectors. Vector 0 has the `head` columns before the first aligned position, or all
    columns if one vector has room for them; the others follow.
    """

    def __init__(self, gemm: Gemm):
        self.gemm = gemm
        self.code = gemm.code
        self.lanes = gemm.tiles.lanes
        self.epilogue = EpilogueEmitter(gemm, None, None)

    @property
    def is_best(self) -> SSAValue | None:
        """Whether M is 1; `None` if that is known."""
        m = self.gemm.m
        return None if m.constant_value is not None else self.code.compare("eq", self.code.dim(m, "m"), 1)

    def emit(self, coords: Coords) -> None:
        """The GEMM of one batch."""
        self.emit_row(coords, self.code.index(0))

    def emit_row(self, coords: Coords, row: SSAValue) -> None:
        """One row of the GEMM of one batch."""
        code, gemm, contraction = self.code, self.gemm, self.gemm.contraction
        here = {**coords, contraction.row: row}
        part_count = self._parts()
        tasks = minimum(part_count, gemm.threads(TASK_MACS))
        width = self.lanes * (ceildiv(gemm.n, constant(self.lanes)) + GEMV_VECTORS)
        chunks = code.alloc([part_count, width], i32 if contraction.is_integer else contraction.element, "sums")
        first = {**here, contraction.column: code.index(0), contraction.reduced: code.index(0)}
        head = self._head(first)
        number = code.dim(part_count)
        with (
            shared_units(code, part_count, tasks, whole=True) as (lower, upper),
            code.loop(upper, "part", lower=lower) as chunk,
        ):
            self._part(here, code.part(chunks, chunk, [width]), head, self._rows_of(chunk, number))
        total = code.part(chunks, code.index(0), [width])
        if part_count.constant_value != 1:
            with code.loop(number, "part", lower=code.index(1)) as chunk:
                self._add_part(total, code.part(chunks, chunk, [width]), head)
        # The epilogue.
        code, gemm = self.code, self.gemm
        with code.loop(self._vectors(head), "v", vectorize=False) as v:
            is_head, (later, number) = code.compare("eq", v, 0), column_of(code, self.lanes, head, v)
            column = code.select(is_head, code.index(0), later)
            count = code.select(is_head, head, code.sub(code.dim(gemm.n), column))
            value = code.load(total, [number], self.lanes)
            emit = partial(self.epilogue.put, value, {**here, gemm.contraction.column: column})
            gemm.masked(count, self.lanes, lambda masked: emit(count if masked else None))

    def _parts(self) -> Dim:
        """In how many chunks rows are partitioned: as many for any number of threads, so that results are the same."""
        gemm = self.gemm
        wanted = maximum(floordiv(gemm.k * gemm.n, constant(TASK_MACS)), ceildiv(gemm.k, constant(GEMV_MAX_PART_ROWS)))
        iterations = maximum(ceildiv(gemm.k, constant(GEMV_ROWS)), constant(1))
        return minimum(iterations, maximum(minimum(wanted, constant(GEMV_MAX_PARTS)), constant(1)))

    def _rows_of(self, chunk: SSAValue, chunks: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The first row of a chunk, and the one after its last: whole iterations."""
        code = self.code
        iterations = code.dim(maximum(ceildiv(self.gemm.k, constant(GEMV_ROWS)), constant(1)))
        ends = (code.divide(code.mul(each, iterations), chunks) for each in (chunk, code.add(chunk, 1)))
        first, end = (code.mul(each, GEMV_ROWS) for each in ends)
        return first, code.minimum(end, code.dim(self.gemm.k))

    def _head(self, first: Coords) -> SSAValue:
        """How many columns vector 0 has."""
        code, known, n = self.code, self.gemm.n.constant_value, self.code.dim(self.gemm.n)
        if known is not None and known <= self.lanes:
            return n
        aligned = elements_before_alignment(self.gemm, self.gemm.contraction.columns, first)
        return code.select(code.compare("sle", n, self.lanes), n, aligned) if known is None else aligned

    def _part(self, coords: Coords, accumulators: SSAValue, head: SSAValue, rows: tuple[SSAValue, SSAValue]) -> None:
        """The accumulators of some rows: by a routine where the vector and the matrix lie in memory."""
        code, gemm, contraction = self.code, self.gemm, self.gemm.contraction
        vectors = self._vectors(head)
        prefetches = self._is_wide
        prefetched = code.select(self._is_near, code.index(0), code.index(1)) if prefetches else None
        extent = Extent(*rows, code.dim(gemm.n), head, vectors, self._block(vectors), prefetched)
        kind = GemvRoutine(contraction.element, self.lanes, gemm.has_cheap_masks, prefetches)
        row = operand(gemm, contraction.rows, coords, contraction.row)
        columns = operand(gemm, contraction.columns, {**coords, contraction.column: code.index(0)}, contraction.column)
        if contraction.is_integer or not isinstance(row, Matrix) or not isinstance(columns, Matrix):
            kind = replace(kind, prefetches=False)
            kind.emit(code, replace(extent, prefetched=None), self._values(coords), accumulators)
            return
        buffers = [row.buffer, columns.buffer, accumulators]
        sizes = [code.index(each) if isinstance(each, int) else each for each in kind.arguments(extent, row, columns)]
        gemm.kernel.routines.call(code, kind, sizes, buffers)

    def _values(self, coords: Coords) -> Values:
        """The operands as they are computed."""
        gemm, contraction = self.gemm, self.gemm.contraction

        def element(k_row: SSAValue) -> SSAValue:
            return gemm.element(contraction.rows, {**coords, contraction.reduced: k_row})

        def vector(k_row: SSAValue, column: SSAValue, on: SSAValue | None) -> SSAValue:
            return gemm.vector(
                contraction.columns,
                {**coords, contraction.reduced: k_row, contraction.column: column},
                contraction.column,
                on,
            )

        def added(earlier: SSAValue, total: SSAValue) -> SSAValue:
            return self.epilogue.added(earlier, self.epilogue.as_output(total))

        def zeros() -> SSAValue:
            return self.epilogue.as_output(self.code.zeros(contraction.element, self.lanes))

        return Values(element, vector, added, zeros)

    def _vectors(self, head: SSAValue) -> SSAValue:
        """How many vectors there are."""
        code = self.code
        return code.add(code.divide(code.add(code.sub(code.dim(self.gemm.n), head), self.lanes - 1), self.lanes), 1)

    def _block(self, vectors: SSAValue) -> SSAValue:
        """Vectors of a block, whole groups: blocks are about as large as they should be, and equally large."""
        code, gemm = self.code, self.gemm
        page = GEMV_BLOCK_BYTES // byte_size(gemm.contraction.element) // self.lanes
        best = code.index(GEMV_FAR_BLOCKS * page)
        if self._is_wide:
            best = code.select(self._is_near, code.index(page), best)
        blocks = code.maximum(code.divide(code.add(vectors, code.divide(best, 2)), best), 1)
        all_groups = code.mul(blocks, GEMV_VECTORS)
        return code.mul(code.divide(code.add(vectors, code.sub(all_groups, 1)), all_groups), GEMV_VECTORS)

    @property
    def _is_wide(self) -> bool:
        """Whether a vector is a whole cache line."""
        return self.lanes * byte_size(self.gemm.contraction.element) >= LINE_BYTES

    @property
    def _is_near(self) -> SSAValue:
        """Whether the matrix fits half of the last-level cache."""
        code, gemm = self.code, self.gemm
        room = gemm.kernel.target.l3_bytes // 2 // byte_size(gemm.contraction.element)
        return code.compare("sle", code.dim(gemm.k * gemm.n), room)

    def _add_part(self, total: SSAValue, chunk: SSAValue, head: SSAValue) -> None:
        """Adds the accumulators of a chunk to those of the first."""
        code = self.code
        with code.loop(self._vectors(head), "v", vectorize=False) as v:
            index = [code.mul(v, self.lanes)]
            vectors = [code.load(each, index, self.lanes) for each in (total, chunk)]
            code.store(self.epilogue.added(*vectors), total, index)
