"""Few columns times rows that lie side by side, as of a transposed matrix: the transposed product, which has few rows.

`C = A B` is computed as `C^T = B^T A^T`, along long lines of `A^T` as it lies. Of those sums, fewer than there are
products, registers make the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import shared_units
from lowering.kernels.cpu.emit.shuffles import is_power_of_two
from lowering.kernels.cpu.gemm.gemv.vector import VectorProduct, can_be_vector
from lowering.kernels.cpu.gemm.operands import lies_evenly
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.gemm.results import can_store_tiles, results
from lowering.kernels.cpu.gemm.skinny.few_rows import FewRowsProduct
from lowering.kernels.cpu.gemm.skinny.few_rows_choice import can_have_few_rows
from lowering.kernels.cpu.gemm.skinny.streamed import PRODUCTS_PER_TASK, StreamedProduct
from lowering.kernels.cpu.gemm.transposing import TransposingRoutine
from lowering.kernels.cpu.gemm.whole_sums import WholeSums
from lowering.kernels.cpu.structure.accesses import AffineAccess
from tir_dialect.dims import Dim, ceildiv, constant, minimum

MOST_COLUMNS = 8
"""With more columns the tiles of streamed products have a vector of them."""
LEAST_STEPS = 32
"""Shorter sums take no longer than it takes to exchange their axes."""


def can_be_exchanged(product: Product) -> bool:
    """Whether rows lie side by side and there may be few columns, both in memory, and nothing follows."""
    what, known = product.what, product.n.constant_value
    plain = what.longest is None and not what.outer and what.columns.panels is None and can_store_tiles(product)
    evenly = all(lies_evenly(product, *each) for each in ((what.rows, what.row), (what.columns, what.column)))
    few = known is None or 0 < known <= MOST_COLUMNS
    beside = product.is_contiguous(what.rows, what.row)
    return plain and evenly and few and beside and is_power_of_two(product.tiles.lanes)


class ExchangedProduct(WholeSums):
    """Emits the code of one contraction at a place of its batch axes."""

    @property
    def is_best(self) -> SSAValue:
        """Whether there are few columns, and sums are not short."""
        code, product = self.code, self.product
        few = code.compare("sle", code.dim(product.n, "n"), MOST_COLUMNS)
        return code.both(few, code.compare("sge", code.dim(product.k, "k"), LEAST_STEPS))

    def emit(self, coords: Coords) -> None:
        """The product at one place of the batch axes."""
        code, product, lanes = self.code, self.product, self.lanes
        pitch = ceildiv(product.m, constant(lanes)) * lanes
        most = product.n if product.n.constant_value is not None else minimum(product.n, constant(MOST_COLUMNS))
        sums = code.alloc([most * pitch], product.what.element, "exchanged")
        inner = self._exchanged(sums, pitch)
        ways: list[VectorProduct | FewRowsProduct | StreamedProduct] = []
        if can_be_vector(inner):
            ways.append(VectorProduct(inner))
        if can_have_few_rows(inner):
            ways.append(FewRowsProduct(inner))
        self._emit_best([*ways, StreamedProduct(inner)], coords)
        self._store(coords, sums, pitch)

    def _emit_best(self, ways: Sequence[VectorProduct | FewRowsProduct | StreamedProduct], coords: Coords) -> None:
        """The first way that is best in a call, or else the last one."""
        way, *others = ways
        is_best = way.is_best if others else None
        if is_best is None:
            way.emit(coords)
            return
        with self.code.when(is_best) as branch:
            way.emit(coords)
        with self.code.otherwise(branch):
            self._emit_best(others, coords)

    def _exchanged(self, sums: SSAValue, pitch: Dim) -> Product:
        """The transposed product, whose output is memory for its rows."""
        product, what = self.product, self.product.what
        extents, strides = what.stage.extents, [constant(0)] * len(what.stage.axes)
        for axes, step in ((what.row, constant(1)), (what.column, pitch)):
            for axis in reversed(axes):
                strides[axis], step = step, step * extents[axis]
        access = AffineAccess(constant(0), tuple(strides))
        stage = replace(what.stage, wholes={**what.stage.wholes, what.store: access})
        exchanged = replace(what, stage=stage, rows=what.columns, columns=what.rows, row=what.column, column=what.row)
        flat = {**product.kernel.flat, what.store.buffer: sums}
        return replace(product, kernel=replace(product.kernel, flat=flat), what=exchanged, is_exchanged=True)

    def _store(self, coords: Coords, sums: SSAValue, pitch: Dim) -> None:
        """Rows of the output from the sums of columns."""
        code, product, what, lanes = self.code, self.product, self.product.what, self.lanes
        zero, m = code.index(0), code.dim(product.m)
        out = results(product, {**coords, what.row: zero, what.column: zero}, zero)
        routine = TransposingRoutine(what.element, lanes, is_exact=True)
        vectors = ceildiv(product.m, constant(lanes))
        tasks = minimum(vectors, product.threads(PRODUCTS_PER_TASK))
        with shared_units(code, vectors, tasks, whole=True) as (lower, upper):
            first, end = code.mul(lower, lanes), code.minimum(code.mul(upper, lanes), m)
            begin = code.add(out.first, code.mul(first, out.each))
            sizes = [zero, code.dim(ceildiv(product.n, constant(lanes))), code.dim(product.n), code.sub(end, first)]
            sizes += [first, code.dim(pitch), begin, out.each]
            product.kernel.routines.call(code, routine, sizes, [sums, out.buffer])
