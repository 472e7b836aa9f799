"""Products with one row whose operands are both contiguous along the reduction, for matrices with long rows.

Each task copies that row for itself: fetching what another core has written would take longer than
fetching what both only read.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import shared_units
from lowering.kernels.cpu.emit.shuffles import row_sums
from lowering.kernels.cpu.gemm.dot.dot import can_dot
from lowering.kernels.cpu.gemm.dot.long_lines import Copies, LongLines, are_long
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.gemm.skinny.streamed import PRODUCTS_PER_TASK
from lowering.kernels.cpu.gemm.whole_sums import WholeSums
from tir_dialect.dims import ceildiv, constant, minimum

MOST_ROWS = 1
"""More of them share a vector of columns once it is loaded."""


def can_long_dot(product: Product) -> bool:
    """Whether both factors lie along the reduction, in a single matrix, and there may be one row."""
    rows, what = product.m.constant_value, product.what
    return can_dot(product) and not what.outer and not what.batch and (rows is None or rows <= MOST_ROWS)


class LongDotProduct(WholeSums):
    """Emits the code of one contraction for one batch."""

    @property
    def is_best(self) -> SSAValue:
        """Whether there is one row, and long columns."""
        code, product = self.code, self.product
        few = code.compare("sle", code.dim(product.m, "m"), MOST_ROWS)
        long = are_long(product, product.n)
        assert long is not None  # there are no batches
        return code.both(few, long)

    def emit(self, coords: Coords) -> None:
        """The product of one batch."""
        code, product, what = self.code, self.product, self.product.what
        units = ceildiv(product.n, constant(self.lanes))
        tasks = minimum(units, product.threads(PRODUCTS_PER_TASK))
        columns = LongLines.make(product, what.columns, coords, what.column)
        with shared_units(code, units, tasks, whole=True) as (lower, upper):
            copies = self._copies(coords, columns.shift)
            sums = code.alloc([self.lanes, self.lanes], what.element, "partial_sums")
            with (
                code.loop(upper, "unit", lower=lower) as unit,
                code.loop(code.dim(product.m, "m"), "row") as row,
            ):
                start = code.mul(unit, self.lanes)
                columns.sums((copies, row), start, sums)
                lines = [code.load(sums, [code.index(i), code.index(0)], self.lanes) for i in range(self.lanes)]
                here, count = {**coords, what.row: row, what.column: start}, code.sub(code.dim(product.n), start)
                self.finish.store(row_sums(code, lines), here, count)

    def _copies(self, coords: Coords, shift: SSAValue) -> Copies:
        """The rows, each in one piece."""
        code, product, what = self.code, self.product, self.product.what
        copies = Copies.make(product, MOST_ROWS, shift)
        with (
            code.loop(code.dim(product.m, "m"), "row") as row,
            code.loop(code.divide(code.dim(product.k), self.lanes), "v", vectorize=False) as v,  # whole vectors
        ):
            r = code.mul(v, self.lanes)
            value = product.vector(what.rows, {**coords, what.row: row, what.reduced: r}, what.reduced, None)
            code.store(value, copies.buffer, [copies.offset(code, row, r)])
        return copies
