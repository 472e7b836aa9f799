"""Products with very few columns whose rows are contiguous along the reduction: `y = A x` for a row-major matrix.

Every element of the matrix is used only once per column, so memory is the bound. Columns that do not lie along the sums
are copied, each to contiguous memory; then some rows are multiplied with some columns element by element. The last
columns of a wider product go the same way.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import shared_units
from lowering.kernels.cpu.emit.shuffles import is_power_of_two, row_sums
from lowering.kernels.cpu.gemm.dot.column_tiles import Bounds, ColumnTiles, Few, possible_counts
from lowering.kernels.cpu.gemm.dot.long_lines import Copies, LongLines, are_long
from lowering.kernels.cpu.gemm.last_columns import (
    MOST_IN_ALL,
    are_very_few,
    leaves_last,
    lies_in_rows,
    most_columns,
    most_last,
    narrow_step,
)
from lowering.kernels.cpu.gemm.operands import Matrix, operand
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.gemm.skinny.streamed import PRODUCTS_PER_TASK
from lowering.kernels.cpu.gemm.whole_sums import WholeSums
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, minimum


def can_have_few_columns(product: Product) -> bool:
    """Whether there may be very few columns, in all or behind whole panels, and rows lie along the reduction."""
    return (
        (are_very_few(product) is not False or leaves_last(product))
        and lies_in_rows(product)
        and is_power_of_two(product.tiles.lanes)
    )


class FewColumnsProduct(WholeSums):
    """Emits the code of one contraction for one batch: for all columns if they are few, or the last."""

    @property
    def is_best(self) -> SSAValue | None:
        """Whether there are so few columns in all; `None` if that is known."""
        if are_very_few(self.product) is not None:
            return None
        return self.code.compare("sle", *map(self.code.dim, (self.product.n, most_columns(self.product))))

    def emit(self, coords: Coords) -> None:
        """The product of one batch."""
        code, n = self.code, self.product.n
        if n.constant_value is not None:
            if n.constant_value:
                self._columns(coords, code.index(0))
            return
        with code.when(code.compare("sgt", code.dim(n, "n"), 0)):
            self._columns(coords, code.index(0))

    def emit_last(self, coords: Coords, step: SSAValue) -> None:
        """The columns behind whole steps, if these are few; all columns if they are."""
        code, product = self.code, self.product
        n = code.dim(product.n, "n")
        rest = code.remainder(n, step)
        before = code.select(
            code.compare("sle", rest, code.dim(most_last(product, narrow_step(product)))), code.sub(n, rest), n
        )
        few = code.compare("sle", n, code.dim(most_columns(product)))
        first = code.select(few, code.index(0), before)
        with code.when(code.compare("slt", first, n)):
            self._columns(coords, first)

    def _columns(self, coords: Coords, first: SSAValue) -> None:
        """The columns from one on, so few as it says; each task copies them for itself."""
        code, product, what, zero = self.code, self.product, self.product.what, self.code.index(0)
        long = are_long(product, product.m)
        rows = LongLines.make(product, product.what.rows, coords, product.what.row)
        shift = code.index(0) if long is None else code.select(long, rows.shift, code.index(0))
        units = ceildiv(product.m, constant(self.lanes))
        tasks = minimum(units, product.threads(PRODUCTS_PER_TASK, self._work))
        with shared_units(code, units, tasks, whole=True) as (lower, upper):
            columns = operand(product, what.columns, {**coords, what.column: first, what.reduced: zero}, what.column)
            lies = isinstance(columns, Matrix) and product.is_contiguous(what.columns, what.reduced)
            copies = None if lies else self._packed(coords, first, shift)
            near = columns if copies is None else copies.operand(code)
            assert isinstance(near, Matrix)  # or they are copied
            tiles = ColumnTiles(product, coords, Few(near, first, code.sub(code.dim(product.n, "n"), first)))
            if long is None or 1 not in possible_counts(product):
                tiles.emit((lower, upper))
                return
            with code.when(code.both(long, code.compare("eq", tiles.few.count, 1))) as branch:
                self._lines(rows, copies or self._packed(coords, first, shift), tiles, (lower, upper))
            with code.otherwise(branch):
                tiles.emit((lower, upper))

    def _lines(self, rows: LongLines, copies: Copies, tiles: ColumnTiles, units: Bounds) -> None:
        """One column, with rows that are read one after the other."""
        code, lanes, dtype = self.code, self.lanes, self.product.what.element
        sums, totals = code.alloc([lanes, lanes], dtype, "partial_sums"), tiles.memory()
        with code.loop(units[1], "unit", lower=units[0]) as unit:
            top = code.mul(unit, lanes)
            rows.sums((copies, code.index(0)), top, sums)
            lines = [code.load(sums, [code.index(i), code.index(0)], lanes) for i in range(lanes)]
            code.store(row_sums(code, lines), totals, [code.index(0)])
            tiles.store(top, totals)

    @property
    def _work(self) -> Dim:
        """How many products there are."""
        product, step = self.product, narrow_step(self.product)
        count = product.n
        if leaves_last(product) and step > MOST_IN_ALL:  # all are behind whole steps if they are few
            count = count - step * floordiv(count, constant(step))
        return product.m * count * product.k

    def _packed(self, coords: Coords, first: SSAValue, shift: SSAValue) -> Copies:
        """The columns, each in one piece."""
        code, product, what = self.code, self.product, self.product.what
        packed = Copies.make(product, MOST_IN_ALL, shift)
        with (
            code.loop(code.dim(product.n, "n"), "j", lower=first) as j,
            code.loop(code.dim(product.k, "k"), "r", vectorize=False) as r,
        ):
            value = product.element(what.columns, {**coords, what.column: j, what.reduced: r})
            code.store(value, packed.buffer, [packed.offset(code, code.sub(j, first), r)])
        return packed
