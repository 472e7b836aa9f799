"""Products of a few rows, along long lines.

A register tile reads one or two cache lines of each row of the second operand, a pattern that prefetchers do not
follow. Here that operand is read along long rows, some side by side, each of which all rows of the first operand use at
once; the accumulators go through the caches.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import shared_units
from lowering.kernels.cpu.gemm.alignment import head_of
from lowering.kernels.cpu.gemm.operands import Matrix, operand
from lowering.kernels.cpu.gemm.product import Coords
from lowering.kernels.cpu.gemm.results import can_store_tiles, results
from lowering.kernels.cpu.gemm.skinny.few_rows_choice import MOST_ROWS, from_memory, grid, has_few_rows
from lowering.kernels.cpu.gemm.skinny.few_rows_routine import (
    Columns,
    FewRowsRoutine,
    Grid,
    blocks,
    offset_of_sums,
)
from lowering.kernels.cpu.gemm.skinny.streamed import PRODUCTS_PER_TASK
from lowering.kernels.cpu.gemm.whole_sums import WholeSums
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size

UNIT_BYTES = 256
"""Of columns that are not shared out: some cache lines."""
SUMS_PART = 4
"""The sums of a block take at most such a part of the second-level cache. In the first level they would be nearer, but
lines shorter: prefetchers begin with each line anew."""


class FewRowsProduct(WholeSums):
    """Emits the code of one contraction for one batch."""

    @property
    def is_best(self) -> SSAValue | None:
        """Whether there are few rows and enough columns; `None` if that is known."""
        return has_few_rows(self.product)

    def emit(self, coords: Coords) -> None:
        """The product of one batch: tasks have vectors of columns."""
        code, product, lanes = self.code, self.product, self.lanes
        start = {**coords, product.what.column: code.index(0), product.what.reduced: code.index(0)}
        shift = code.remainder(code.sub(code.index(lanes), head_of(product, product.what.columns, start)), lanes)
        vectors = code.divide(code.add(code.add(code.dim(product.n, "n"), shift), lanes - 1), lanes)
        unit = self._unit
        units = ceildiv(product.n + (lanes - 1), constant(unit * lanes))
        tasks = minimum(units, product.threads(PRODUCTS_PER_TASK))
        with shared_units(code, units, tasks, whole=True) as (lower, upper):
            sums = code.alloc([(2 * self._most * self._rows + 1) * lanes], product.what.element, "sums")
            begin, end = code.mul(lower, unit), code.minimum(code.mul(upper, unit), vectors)
            extent, most = (begin, code.sub(end, begin)), code.dim(self._most)
            if can_store_tiles(product):
                out = results(product, {**start, product.what.row: code.index(0)}, code.index(0))
                self._call(coords, sums, (*extent, shift), [most, out.first, out.each], [out.buffer])
                return
            with blocks(code, extent, most) as block:
                self._call(coords, sums, (*block, shift), [], [])
                self._store(coords, sums, block, shift)

    @property
    def _rows(self) -> Dim:
        """Rows that there is room for."""
        m = self.product.m
        return m if m.constant_value is not None else maximum(minimum(m, constant(MOST_ROWS)), constant(1))

    @property
    def _most(self) -> Dim:
        """Most vectors of columns in a block."""
        room = self.product.kernel.target.l2_bytes // SUMS_PART // self._vector_bytes
        return maximum(floordiv(constant(room), self._rows), constant(self._unit))

    @property
    def _unit(self) -> int:
        """Vectors that are not shared out."""
        return max(1, UNIT_BYTES // self._vector_bytes)

    @property
    def _vector_bytes(self) -> int:
        return self.lanes * byte_size(self.product.what.element)

    def _call(
        self,
        coords: Coords,
        sums: SSAValue,
        extent: tuple[SSAValue, SSAValue, SSAValue],
        more: Sequence[SSAValue],
        output: Sequence[SSAValue],
    ) -> None:
        """The sums of some vectors of columns, by a routine; it also stores them if there is an output."""
        code, product, what, zero = self.code, self.product, self.product.what, self.code.index(0)
        rows = operand(product, what.rows, {**coords, what.row: zero, what.reduced: zero}, what.row)
        columns = operand(product, what.columns, {**coords, what.column: zero, what.reduced: zero}, what.column)
        assert isinstance(rows, Matrix)  # they lie evenly
        assert isinstance(columns, Matrix)
        layout = [rows.first, rows.each, rows.step, columns.first, columns.step]
        values = [code.index(each) if isinstance(each, int) else each for each in layout]
        buffers = [rows.buffer, columns.buffer, sums, *output]
        kind = grid(product)
        asked = [self._asked(kind)] * kind.asks
        sizes = [*map(code.dim, (product.m, product.k, product.n)), *extent, *values, *asked, *more]
        routine = FewRowsRoutine(what.element, self.lanes, kind, bool(output))
        product.kernel.routines.call(code, routine, sizes, buffers)

    def _asked(self, kind: Grid) -> SSAValue:
        """Lines of the next iteration that are asked for: all where they come from memory."""
        code, (room, size) = self.code, map(self.code.dim, from_memory(self.product))
        return code.select(code.compare("sle", room, size), code.index(kind.lines), code.index(0))

    def _store(self, coords: Coords, sums: SSAValue, block: tuple[SSAValue, SSAValue], shift: SSAValue) -> None:
        """What follows the sums of a block."""
        code, what, (first, vectors) = self.code, self.product.what, block
        m, columns = code.dim(self.product.m, "m"), Columns(code, self.lanes, code.dim(self.product.n, "n"), shift)
        with code.loop(m, "i") as i, code.loop(vectors, "v", vectorize=False) as v:
            column, count, skipped = columns.own(code.add(first, v))
            position = code.add(offset_of_sums(code, m, v, i, self.lanes), skipped)
            value = code.load(sums, [position], self.lanes)
            self.finish.store(value, {**coords, what.row: i, what.column: column}, count)
