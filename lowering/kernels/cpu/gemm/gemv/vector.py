"""Products with one row: a vector times a matrix whose columns are contiguous.

Every element of the matrix is used once, so memory is the bound. The matrix is read in place, some whole rows side by
side, and the accumulators go through L1. A vector that crosses a cache line costs two loads: where rows are a whole
number of vectors apart, all loads are aligned, and the accumulators have the same alignment. Each thread has parts of
whole rows, not a part of each, of which prefetchers would read more than it needs. The parts are the same for any
number of threads, and so are the results.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.blocked_accumulation import MOST
from lowering.kernels.cpu.emit.kernel import shared_units
from lowering.kernels.cpu.gemm.alignment import head_of
from lowering.kernels.cpu.gemm.finish import Finish
from lowering.kernels.cpu.gemm.gemv.sums import LINES, SIDE, Extent, Values, VectorSums, column_of
from lowering.kernels.cpu.gemm.operands import Matrix, operand
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.gemm.skinny.streamed import PRODUCTS_PER_TASK, can_stream
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES

BLOCK_BYTES = 4096
"""Of sums that are made before the next ones, and of each line: a page, from whose end prefetchers look no further."""
MOST_PARTS = 48
"""Of the lines, each with sums of its own: many numbers of threads divide it, and to add up so few takes little."""
LONGEST_PART = constant(LINES * MOST)
"""Lines of a part, unless there are very many: as many iterations as an accumulator may take numbers."""
LARGE_BLOCKS = 4
"""So many times longer are blocks of a matrix that comes from memory, where it takes longer until prefetchers start,
and blocks of any matrix where a vector is no whole cache line."""


def can_be_vector(product: Product) -> bool:
    """Whether there may be one row, and columns lie side by side in memory."""
    return product.m.constant_value in (None, 1) and can_read_columns(product) and can_stream(product)


def can_read_columns(product: Product) -> bool:
    """Whether columns lie side by side in memory, in rows that are worth reading in place."""
    what = product.what
    fits = what.longest is None or what.longest >= LINES
    beside = product.is_contiguous(what.columns, what.column) and what.columns.panels is None
    return fits and beside and not what.outer


class VectorProduct:
    """Emits the code of one contraction at given values of its batch axes.

    Accumulators are whole, numbered vectors: vector 0 has the `head` columns before the first aligned position, or all
    that there are if one has room for them, the others follow.
    """

    def __init__(self, product: Product):
        self.product = product
        self.code = product.code
        self.lanes = product.tiles.lanes
        self.finish = Finish(product, None, None)

    @property
    def is_best(self) -> SSAValue | None:
        """Whether there is one row; `None` if that is known."""
        m = self.product.m
        return None if m.constant_value is not None else self.code.compare("eq", self.code.dim(m, "m"), 1)

    def emit(self, coords: Coords) -> None:
        """The product of one batch."""
        self.emit_row(coords, self.code.index(0))

    def emit_row(self, coords: Coords, row: SSAValue) -> None:
        """One row of the product of one batch."""
        code, product, what = self.code, self.product, self.product.what
        here = {**coords, what.row: row}
        parts_of_lines = self._parts()
        tasks = minimum(parts_of_lines, product.threads(PRODUCTS_PER_TASK))
        width = self.lanes * (ceildiv(product.n, constant(self.lanes)) + SIDE)
        parts = code.alloc([parts_of_lines, width], i32 if what.is_integer else what.element, "sums")
        first = {**here, what.column: code.index(0), what.reduced: code.index(0)}
        head = self._head(first)
        number = code.dim(parts_of_lines)
        with (
            shared_units(code, parts_of_lines, tasks, whole=True) as (lower, upper),
            code.loop(upper, "part", lower=lower) as part,
        ):
            self._part(here, code.part(parts, part, [width]), head, self._lines(part, number))
        total = code.part(parts, code.index(0), [width])
        if parts_of_lines.constant_value != 1:
            with code.loop(number, "part", lower=code.index(1)) as part:
                self._add_part(total, code.part(parts, part, [width]), head)
        self._finish(here, total, head)

    def _parts(self) -> Dim:
        """In how many parts lines are summed up: as many for any number of threads, so that results are the same."""
        product = self.product
        wanted = maximum(floordiv(product.k * product.n, constant(PRODUCTS_PER_TASK)), ceildiv(product.k, LONGEST_PART))
        iterations = maximum(ceildiv(product.k, constant(LINES)), constant(1))
        return minimum(iterations, maximum(minimum(wanted, constant(MOST_PARTS)), constant(1)))

    def _lines(self, part: SSAValue, parts: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The first line of a part, and the one behind its last: whole iterations."""
        code = self.code
        iterations = code.dim(maximum(ceildiv(self.product.k, constant(LINES)), constant(1)))
        ends = (code.divide(code.mul(each, iterations), parts) for each in (part, code.add(part, 1)))
        first, end = (code.mul(each, LINES) for each in ends)
        return first, code.minimum(end, code.dim(self.product.k))

    def _head(self, first: Coords) -> SSAValue:
        """How many columns vector 0 has."""
        code, known, n = self.code, self.product.n.constant_value, self.code.dim(self.product.n)
        if known is not None and known <= self.lanes:
            return n
        aligned = head_of(self.product, self.product.what.columns, first)
        return code.select(code.compare("sle", n, self.lanes), n, aligned) if known is None else aligned

    def _part(self, coords: Coords, sums: SSAValue, head: SSAValue, lines: tuple[SSAValue, SSAValue]) -> None:
        """The sums over some lines: by a routine where the row and the matrix lie in memory."""
        code, product, what = self.code, self.product, self.product.what
        vectors = self._vectors(head)
        asks = self._is_wide
        asked = code.select(self._is_near, code.index(0), code.index(1)) if asks else None
        extent = Extent(*lines, code.dim(product.n), head, vectors, self._block(vectors), asked)
        kind = VectorSums(what.element, self.lanes, product.has_cheap_masks, asks)
        row = operand(product, what.rows, coords, what.row)
        columns = operand(product, what.columns, {**coords, what.column: code.index(0)}, what.column)
        if what.is_integer or not isinstance(row, Matrix) or not isinstance(columns, Matrix):
            kind = replace(kind, asks=False)
            kind.emit(code, replace(extent, asked=None), self._values(coords), sums)
            return
        buffers = [row.buffer, columns.buffer, sums]
        sizes = [code.index(each) if isinstance(each, int) else each for each in kind.arguments(extent, row, columns)]
        product.kernel.routines.call(code, kind, sizes, buffers)

    def _values(self, coords: Coords) -> Values:
        """The operands as they are computed."""
        product, what = self.product, self.product.what

        def element(line: SSAValue) -> SSAValue:
            return product.element(what.rows, {**coords, what.reduced: line})

        def vector(line: SSAValue, column: SSAValue, on: SSAValue | None) -> SSAValue:
            return product.vector(what.columns, {**coords, what.reduced: line, what.column: column}, what.column, on)

        def added(earlier: SSAValue, total: SSAValue) -> SSAValue:
            return self.finish.added(earlier, self.finish.as_output(total))

        def zeros() -> SSAValue:
            return self.finish.as_output(self.code.zeros(what.element, self.lanes))

        return Values(element, vector, added, zeros)

    def _vectors(self, head: SSAValue) -> SSAValue:
        """How many vectors there are."""
        code = self.code
        return code.add(code.divide(code.add(code.sub(code.dim(self.product.n), head), self.lanes - 1), self.lanes), 1)

    def _block(self, vectors: SSAValue) -> SSAValue:
        """Vectors of a block, whole groups: blocks are about as large as they should be, and equally large."""
        code, product = self.code, self.product
        page = BLOCK_BYTES // byte_size(product.what.element) // self.lanes
        best = code.index(LARGE_BLOCKS * page)
        if self._is_wide:
            best = code.select(self._is_near, code.index(page), best)
        blocks = code.maximum(code.divide(code.add(vectors, code.divide(best, 2)), best), 1)
        all_groups = code.mul(blocks, SIDE)
        return code.mul(code.divide(code.add(vectors, code.sub(all_groups, 1)), all_groups), SIDE)

    @property
    def _is_wide(self) -> bool:
        """Whether a vector is a whole line of the cache."""
        return self.lanes * byte_size(self.product.what.element) >= LINE_BYTES

    @property
    def _is_near(self) -> SSAValue:
        """Whether the matrix need not come from memory."""
        code, product = self.code, self.product
        room = product.kernel.target.l3_bytes // 2 // byte_size(product.what.element)
        return code.compare("sle", code.dim(product.k * product.n), room)

    def _add_part(self, total: SSAValue, part: SSAValue, head: SSAValue) -> None:
        """Adds the sums of a part to those of the first."""
        code = self.code
        with code.loop(self._vectors(head), "v", vectorize=False) as v:
            index = [code.mul(v, self.lanes)]
            vectors = [code.load(each, index, self.lanes) for each in (total, part)]
            code.store(self.finish.added(*vectors), total, index)

    def _finish(self, coords: Coords, total: SSAValue, head: SSAValue) -> None:
        """Results of complete sums."""
        code, product = self.code, self.product
        with code.loop(self._vectors(head), "v", vectorize=False) as v:
            is_head, (later, number) = code.compare("eq", v, 0), column_of(code, self.lanes, head, v)
            column = code.select(is_head, code.index(0), later)
            count = code.select(is_head, head, code.sub(code.dim(product.n), column))
            value = code.load(total, [number], self.lanes)
            emit = partial(self.finish.put, value, {**coords, product.what.column: column})
            product.masked(count, self.lanes, lambda masked: emit(count if masked else None))
