"""Products with very few columns whose rows lie along the sums: `y = A x` for a matrix in row-major order.

Every element of the matrix is used for each column alone, so that its memory is the bound. The columns are copied, each
in one piece; then rows are multiplied with a column element by element, as many as a vector has lanes for a vector of
results.
"""

from __future__ import annotations

from functools import partial

from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.tasks import shared_units
from lowering.schedule.cpu.emit.transpose import is_power_of_two, total_in_lanes
from lowering.schedule.cpu.products.product import Product, Spot
from lowering.schedule.cpu.products.streamed import PRODUCTS_PER_TASK
from lowering.schedule.cpu.products.sums import Line, line_sums
from lowering.schedule.cpu.products.whole_sums import WholeSums
from tir_dialect.dims import ceildiv, constant, minimum

MOST_COLUMNS = 8
"""With more columns it pays to use an element of the matrix for several at once."""


def can_have_few_columns(product: Product) -> bool:
    """Whether there may be very few columns, and rows lie along the sums."""
    what, columns = product.what, product.n.constant_value
    few = columns is None or columns <= MOST_COLUMNS
    plain = what.longest is None and not what.outer and what.columns.panels is None
    several = bool(what.row) and product.m.constant_value != 1
    return few and plain and several and _along(product) and is_power_of_two(product.tiles.lanes)


def _along(product: Product) -> bool:
    return product.is_contiguous(product.what.rows, product.what.reduced)


class FewColumnsProduct(WholeSums):
    """Emits the code of one contraction at a place of its batch axes."""

    @property
    def is_best(self) -> SSAValue | None:
        """Whether there are so few columns; `None` if that is known."""
        n = self.product.n
        known = n.constant_value is not None
        return None if known else self.code.compare("sle", self.code.dim(n, "n"), MOST_COLUMNS)

    def emit(self, spot: Spot) -> None:
        """The product at one place of the batch axes."""
        code, product = self.code, self.product
        packed = self._packed(spot)
        units = ceildiv(product.m, constant(self.lanes))
        tasks = minimum(units, product.threads(PRODUCTS_PER_TASK))
        with (
            shared_units(code, units, tasks, whole=True) as (lower, upper),
            code.loop(upper, "unit", lower=lower) as unit,
            code.loop(code.dim(product.n, "n"), "j") as j,
        ):
            self._rows({**spot, product.what.column: j}, code.mul(unit, self.lanes), packed, j)

    def _packed(self, spot: Spot) -> SSAValue:
        """The columns, one after another."""
        code, product, what = self.code, self.product, self.product.what
        buffer = code.alloc([MOST_COLUMNS, product.k], what.element, "packed_columns")
        with (
            code.loop(code.dim(product.n, "n"), "j") as j,
            code.loop(code.dim(product.k, "k"), "r", vectorize=False) as r,
        ):
            value = product.element(what.columns, {**spot, what.column: j, what.reduced: r})
            code.store(value, buffer, [j, r])
        return buffer

    def _rows(self, spot: Spot, top: SSAValue, packed: SSAValue, column: SSAValue) -> None:
        """As many rows as a vector has lanes times a column."""
        code, product, what = self.code, self.product, self.product.what
        end = code.dim(product.m, "m")
        last = code.sub(end, 1)

        def near(r: SSAValue, on: SSAValue | None) -> SSAValue:
            mask = None if on is None else code.leading(on, self.lanes)
            return code.load(packed, [column, r], self.lanes, mask)

        def line(row: SSAValue, r: SSAValue, on: SSAValue | None) -> SSAValue:
            return product.vector(what.rows, {**spot, what.row: row, what.reduced: r}, what.reduced, on)

        def far(number: SSAValue) -> Line:
            return partial(line, code.minimum(code.add(top, number), last))

        sums = line_sums(product, [near], far, self.lanes)
        with code.loop(code.minimum(code.sub(end, top), self.lanes), "i", vectorize=False) as i:
            total = total_in_lanes(code, code.load(sums, [i, code.index(0)], self.lanes), self.lanes)
            self.finish.store(total, {**spot, what.row: code.add(top, i)}, code.index(1))
