"""Products with few rows whose operands are both contiguous along the reduction: `y = W x` for a row-major matrix.

Vectors are multiplied element by element, with one vector accumulator for each of some rows and columns. At the end,
pairs of accumulators are reduced together, half by half, so that a tree of shuffles makes as many accumulators as a
vector has lanes into one vector of results.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import shared_units
from lowering.kernels.cpu.emit.shuffles import is_power_of_two, row_sums, shuffle
from lowering.kernels.cpu.gemm.alignment import head_of
from lowering.kernels.cpu.gemm.dot.long_lines import are_long
from lowering.kernels.cpu.gemm.dot.sums import Line, asking, line_sums
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.gemm.skinny.streamed import MAX_ROWS, PRODUCTS_PER_TASK, can_stream
from lowering.kernels.cpu.gemm.whole_sums import WholeSums
from lowering.kernels.cpu.structure.contraction import Factor
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES

HEIGHTS = (3, 2, 1)
"""Rows that share vectors of columns, four columns at a time: their sums fill 16 registers. Longer vectors are summed
up for several rows at once."""
WIDE = 16
"""Lanes of longer vectors."""
ANY_ROWS, SUM_PER_ROW, WIDE_SUM_PER_ROW = 4, 8, 5
"""Rows that are few for sums of any length, and how much longer these have to be for one more: lanes are added up at
the end of each sum, while packed columns are transposed once for all rows."""


def can_dot(product: Product) -> bool:
    """Whether both factors lie along the reduction and there may be few rows."""
    rows, what = product.m.constant_value, product.what
    along = all(product.is_contiguous(factor, what.reduced) for factor in (what.rows, what.columns))
    return (
        along and what.longest is None and is_power_of_two(product.tiles.lanes) and (rows is None or rows <= MAX_ROWS)
    )


def dots_may_pay(product: Product) -> bool:
    """Whether rows may be few enough for the length of the sums."""
    spare = (most_rows(product) - product.m).constant_value
    return spare is None or spare >= 0


def most_rows(product: Product) -> Dim:
    """The most rows that are few: fewer for short sums where columns may be copied, or each row has its own sums."""
    wide, can_copy = product.tiles.lanes >= WIDE, can_stream(product)
    if wide and not can_copy:
        return constant(MAX_ROWS)
    least, longer = (1, WIDE_SUM_PER_ROW) if wide else (ANY_ROWS, SUM_PER_ROW)
    return minimum(constant(MAX_ROWS), maximum(constant(least), floordiv(product.k, constant(longer))))


class DotProduct(WholeSums):
    """Emits the code of one contraction for one batch."""

    @property
    def is_best(self) -> SSAValue | None:
        """Whether there are few rows; `None` if that is known."""
        m, most = self.product.m, most_rows(self.product)
        if (most - m).constant_value is not None:
            return None
        if (m.constant_value or MAX_ROWS) <= ANY_ROWS and not can_stream(self.product):
            return None
        return self.code.compare("sle", self.code.dim(m, "m"), self.code.dim(most))

    def emit(self, coords: Coords) -> None:
        """The product of one batch."""
        code, product = self.code, self.product
        units = ceildiv(product.n, constant(self.lanes)) * product.rounds
        tasks = minimum(units, product.threads(PRODUCTS_PER_TASK))
        with shared_units(code, units, tasks) as (lower, upper), code.loop(upper, "unit", lower=lower) as unit:
            here, left = product.panel_position(coords, unit, self.lanes)
            done = constant(0)
            for height, width in self._groups:
                groups = floordiv(product.m - done, constant(height))
                if groups.constant_value != 0:
                    self._group(here, left, (height, width), done, groups)
                done += groups * height

    @property
    def _groups(self) -> Sequence[tuple[int, int]]:
        """Rows and columns that are multiplied with each other at once, for fewer and fewer rows."""
        if self.lanes >= WIDE:
            return (4, self.lanes // 4), (3, self.lanes), (2, self.lanes), (1, self.lanes)
        return tuple((height, self.lanes) for height in HEIGHTS)

    def _group(self, coords: Coords, left: SSAValue, size: tuple[int, int], done: Dim, groups: Dim) -> None:
        """Some rows, groups from one on, times as many columns as a vector has lanes."""
        code, (height, width), lanes = self.code, size, self.lanes
        together = min(height, lanes // width)
        with (
            code.loop(code.dim(groups), "group") as group,
            code.loop(code.index(lanes // width), "part") as part,
        ):
            start = code.add(left, code.mul(part, width))
            top = code.add(code.mul(group, height), code.dim(done))
            sums = self._sums(coords, [code.add(top, i) for i in range(height)], start, width)
            for i in range(0, height, together):
                total = row_sums(code, sums[i * width : (i + together) * width])
                self._store(coords, total, code.add(top, i), together, start, width)

    def _store(self, coords: Coords, total: SSAValue, top: SSAValue, height: int, start: SSAValue, width: int) -> None:
        """A vector of sums, `width` of each row; those of a row are rotated to the front."""
        code, what, lanes = self.code, self.product.what, self.lanes
        count = code.minimum(code.sub(code.dim(self.product.n), start), width)
        for i in range(height):
            order = [(i * width + lane) % lanes for lane in range(lanes)]
            value = shuffle(code, (total, total), order) if i else total
            self.finish.store(value, {**coords, what.row: code.add(top, i), what.column: start}, count)

    def _sums(self, coords: Coords, rows: list[SSAValue], start: SSAValue, width: int) -> list[SSAValue]:
        """A vector of partial sums for each row and column, row by row."""
        code, product, what = self.code, self.product, self.product.what
        last = code.sub(code.dim(product.n), 1)

        def line(factor: Factor, here: Coords, r: SSAValue, on: SSAValue | None) -> SSAValue:
            return product.vector(factor, {**here, what.reduced: r}, what.reduced, on)

        def far(number: SSAValue) -> Line:
            column = code.minimum(code.add(start, number), last)
            return partial(line, what.columns, {**coords, what.column: column})

        near = [partial(line, what.rows, {**coords, what.row: row}) for row in rows]
        sums = code.alloc([len(rows) * width, self.lanes], what.element, "partial_sums")
        ask = asking(product, what.columns, {**coords, what.column: start}, what.column)
        line_sums(product, near, far, sums, width, ask, self._head(coords))
        return [code.load(sums, [code.index(i), code.index(0)], self.lanes) for i in range(len(rows) * width)]

    def _head(self, coords: Coords) -> SSAValue | None:
        """How many elements of long columns in a cache lie before those that are aligned; rows are often like them.

        A load from two cache lines takes twice as long.
        """
        code, product, what = self.code, self.product, self.product.what
        long = are_long(product, product.n)
        if long is None or self.lanes * byte_size(what.element) < LINE_BYTES:
            return None
        zero = code.index(0)
        head = head_of(product, what.columns, {**coords, what.column: zero, what.reduced: zero})
        return code.select(long, head, zero)
