"""Packed columns: a panel as wide as the register tile, which stays in the L1 cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.shuffles import is_power_of_two, transposed
from lowering.kernels.cpu.emit.vectorization import masks_are_registers
from lowering.kernels.cpu.gemm.operands import Computed
from lowering.kernels.cpu.gemm.product import Coords, Product
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES


def has_lines(product: Product) -> bool:
    """Whether columns are lines of windows: evenly spaced along the last axis, but not from line to line."""
    what = product.what
    neighbours = any(product.is_contiguous(what.columns, axes) for axes in (what.column, what.reduced))
    return not neighbours and len(what.column) > 1 and what.columns.is_linear


class ColumnPanel:
    """One panel `[depth, width]` of whole vectors; columns past the end are undefined.

    Where columns are contiguous, vectors are copied; where the reduction is contiguous, blocks are transposed in
    registers; windows of an image are copied in runs that end where a line of the output ends.
    """

    def __init__(self, product: Product, buffer: SSAValue, offsets: SSAValue | None = None):
        """A panel in a buffer; `offsets` say how far the elements of a sum are apart, if that is the same for all."""
        self.product = product
        self.code = product.code
        self.tiles = product.tiles
        self.buffer = buffer
        self.offsets = offsets

    def vector(self, depth: SSAValue, number: int) -> SSAValue:
        """A packed vector."""
        return self.code.load(self.buffer, [depth, self.code.index(number * self.tiles.lanes)], self.tiles.lanes)

    def pack(self, coords: Coords, left: SSAValue, start: SSAValue, length: SSAValue) -> None:
        """Packs the columns from `left` on, from `start` along the reduction."""
        what = self.product.what
        if self.product.is_contiguous(what.columns, what.column):
            self._copy(coords, left, start, length)
        elif self.product.is_contiguous(what.columns, what.reduced) and is_power_of_two(self.tiles.lanes):
            self._transpose(coords, left, start, length)
        elif has_lines(self.product):
            self._runs(coords, left, start, length)
        else:
            self._elements(coords, left, start, length)

    def _copy(self, coords: Coords, left: SSAValue, start: SSAValue, length: SSAValue) -> None:
        code, what, lanes = self.code, self.product.what, self.tiles.lanes
        starts = [code.add(left, v * lanes) for v in range(self.tiles.vectors)]
        counts = [code.sub(code.dim(self.product.n), column) for column in starts]

        def emit(masked: bool) -> None:
            with code.loop(length, "r") as r:
                here = {**coords, what.reduced: code.add(start, r)}
                for v, (column, on) in enumerate(zip(starts, counts, strict=True)):
                    at = {**here, what.column: column}
                    part = self.product.vector(what.columns, at, what.column, on if masked else None)
                    code.store(part, self.buffer, [r, code.index(v * lanes)])

        self.product.masked(counts[0], self.tiles.width, emit)

    def _elements(self, coords: Coords, left: SSAValue, start: SSAValue, length: SSAValue) -> None:
        code, what = self.code, self.product.what
        last = code.sub(code.dim(self.product.n), 1)
        with code.loop(code.index(self.tiles.width), "j") as j:
            here = {**coords, what.column: code.minimum(code.add(left, j), last)}
            with code.loop(length, "r") as r:
                value = self.product.element(what.columns, {**here, what.reduced: code.add(start, r)})
                code.store(value, self.buffer, [r, j])

    # Columns that lie along the reduction.

    def _transpose(self, coords: Coords, left: SSAValue, start: SSAValue, length: SSAValue) -> None:
        code, what, lanes = self.code, self.product.what, self.tiles.lanes
        last = code.sub(code.dim(self.product.n), 1)
        with code.loop(code.index(self.tiles.vectors), "v") as v:
            column = code.mul(v, lanes)
            columns = [code.minimum(code.add(code.add(left, column), j), last) for j in range(lanes)]

            def block(number: SSAValue, masked: bool) -> None:
                r = code.mul(number, lanes)
                here = {**coords, what.reduced: code.add(start, r)}
                self._block(here, columns, code.sub(length, r) if masked else None, (r, column))
                if not masked:  # prefetchers follow loads of whole lines by themselves
                    self._prefetch(here, code.add(code.add(left, column), lanes), number)

            self._blocks(length, block)

    def _blocks(self, length: SSAValue, block: Callable[[SSAValue, bool], None]) -> None:
        """All blocks of steps: where masks take long, without them but for the last one if it is not whole."""
        code, lanes = self.code, self.tiles.lanes
        masked = masks_are_registers(self.product.kernel)
        count = code.divide(code.add(length, lanes - 1) if masked else length, lanes)
        with code.loop(count, "block") as number:
            block(number, masked)
        if not masked:
            with code.when(code.compare("slt", code.mul(count, lanes), length)):
                block(count, True)

    def _block(
        self, here: Coords, columns: Sequence[SSAValue], on: SSAValue | None, target: tuple[SSAValue, SSAValue]
    ) -> None:
        """As many steps as there are columns, of which so many are on, from a step of the reduction on."""
        code, what, (r, first) = self.code, self.product.what, target
        parts = [
            self.product.vector(what.columns, {**here, what.column: column}, what.reduced, on) for column in columns
        ]
        for i, part in enumerate(transposed(code, parts)):
            code.store(part, self.buffer, [code.add(r, i), first])

    def _prefetch(self, here: Coords, first: SSAValue, number: SSAValue) -> None:
        """Asks for the columns from `first` on, which are packed next.

        A line takes several blocks, each of which asks for the lines of some columns.
        """
        code, what, lanes = self.code, self.product.what, self.tiles.lanes
        shares = max(1, min(lanes, LINE_BYTES // byte_size(what.element) // lanes))
        first = code.add(first, code.mul(code.remainder(number, shares), lanes // shares))
        columns = Computed(self.product, what.columns, {**here, what.column: first}, what.column)
        for j in range(lanes // shares):
            columns.prefetch(code, code.index(0), 0, j, 2)

    # Windows.

    def _runs(self, coords: Coords, left: SSAValue, start: SSAValue, length: SSAValue) -> None:
        """The columns line by line: along a line, the last column axis, they are evenly spaced."""
        code, what = self.code, self.product.what
        *before, axis = what.column
        line = code.dim(what.stage.extents[axis])
        end = code.minimum(code.add(left, self.tiles.width), code.dim(self.product.n))
        first, after = code.divide(left, line), code.divide(code.add(end, code.sub(line, 1)), line)
        with code.loop(after, "line", lower=first) as number:
            begin = code.mul(number, line)
            low = code.maximum(left, begin)
            high = code.minimum(end, code.add(begin, line))
            here = {**coords, tuple(before): number}
            self._run(here, axis, code.sub(low, begin), code.sub(low, left), code.sub(high, low), start, length)

    def _run(
        self,
        coords: Coords,
        axis: int,
        source: SSAValue,
        target: SSAValue,
        count: SSAValue,
        start: SSAValue,
        length: SSAValue,
    ) -> None:
        """So many columns of a line from `source` on, to the columns of the panel from `target` on."""
        code, lanes, what = self.code, self.tiles.lanes, self.product.what
        with code.loop(code.divide(code.add(count, lanes - 1), lanes), "v") as v:
            done = code.mul(v, lanes)
            on = code.sub(count, done)
            here = {**coords, (axis,): code.add(source, done)}
            with code.loop(length, "r") as r:
                step = self._steps(r)
                along = {what.reduced: code.add(start, r)} if step is None else {}
                part = self.product.vector(what.columns, {**here, **along}, (axis,), on, step)
                code.store(part, self.buffer, [r, code.add(target, done)], code.leading(on, lanes))

    def _steps(self, r: SSAValue) -> SSAValue | None:
        if self.offsets is None:
            return None
        return self.code.value(arith.IndexCastOp(self.code.load(self.offsets, [r]), IndexType()))
