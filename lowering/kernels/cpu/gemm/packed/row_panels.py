"""Packed rows: strips as high as the register tile, which the micro-kernel reads sequentially."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import buffer_type
from lowering.kernels.cpu.gemm.operands import Computed, Matrix, Operand, operand
from lowering.kernels.cpu.gemm.product import Coords, Product
from tir_dialect.dims import Dim
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.flatten import FlattenOp
from tir_dialect.target import LINE_BYTES

WAY_BYTES = 4096
"""Elements so far apart share a set of the first-level cache, which has room for fewer than a tile has rows."""
NEXT_ROW = 2
"""So many rows below the one that is packed is what is asked for: prefetchers do not know that a row goes on there."""


class RowPanels:
    """Consecutive strips `[row, depth]`, or `[depth, row]` where rows are contiguous in memory.

    A known number of rows whose stride is not close to a power of two is not packed at all: the micro-kernel reads
    elements along the reduction anyway. Otherwise whole vectors are copied. The rows of a strip are an odd number of
    cache lines apart, to avoid conflict misses, and each continues in the next strip. A row past the last one repeats
    the last one.
    """

    def __init__(self, product: Product, room: int, step: Dim, tasks: Dim | None = None):
        """Room for so many elements of each row of the tile, of which a strip takes `step`; for each of some tasks."""
        self.product = product
        self.code = product.code
        self.tiles = product.tiles
        self.step = step
        what = product.what
        by_depth = product.is_contiguous(what.rows, what.reduced)
        self.direct = by_depth and self._is_well_spaced
        self.transposed = not by_depth and product.is_contiguous(what.rows, what.row)
        self.contiguous = by_depth or self.transposed
        size = byte_size(what.element)
        pitch = (-(-room * size // LINE_BYTES) | 1) * LINE_BYTES // size
        wide = -(-self.tiles.rows // self.tiles.lanes) * self.tiles.lanes
        shape = [room, wide] if self.transposed else [self.tiles.rows, pitch]
        self._shape = shape
        if not self.direct:
            before = [] if tasks is None or tasks.constant_value == 1 else [tasks]
            self.buffer = self.code.alloc([*before, *shape], what.element, "packed_rows")

    def take(self, task: SSAValue) -> None:
        """Uses the memory of a task from here on."""
        if not self.direct and len(buffer_type(self.buffer).shape) > len(self._shape):
            self.buffer = self.code.part(self.buffer, task, self._shape)

    @property
    def _is_well_spaced(self) -> bool:
        """Whether rows are as good where they are: so far apart that the cache keeps all those of a tile."""
        what, rows = self.product.what, self.product.m.constant_value
        step = what.rows.stride(what.row[-1]) if what.row else None
        bytes_ = byte_size(what.element) * (step or 0)
        return rows is not None and step is not None and bytes_ % WAY_BYTES != 0

    def reader(
        self, coords: Coords, strip: SSAValue, top: SSAValue, start: SSAValue
    ) -> Callable[[int, SSAValue], SSAValue]:
        """What gives an element of a strip whose first row is `top`, by its row and its step of the reduction."""
        code, what = self.code, self.product.what

        def direct(row: int, depth: SSAValue) -> SSAValue:
            here = {**coords, what.row: code.add(top, row), what.reduced: code.add(start, depth)}
            return self.product.element(what.rows, here)

        first = self._first(strip)

        def packed(row: int, depth: SSAValue) -> SSAValue:
            return code.load(self.buffer, self._indices(code.index(row), code.add(first, depth)))

        return direct if self.direct else packed

    def operand(self, coords: Coords, strip: SSAValue, top: SSAValue, start: SSAValue) -> Operand:
        """The same for a micro-kernel."""
        what = self.product.what
        if self.direct:
            return operand(self.product, what.rows, {**coords, what.row: top, what.reduced: start}, what.row)
        flat, first = self.code.value(FlattenOp(self.buffer)), self._first(strip)
        pitch = buffer_type(self.buffer).strides[0].constant_value
        assert pitch is not None  # the shape is of numbers
        if self.transposed:
            return Matrix(flat, self.code.mul(first, pitch), 1, pitch, self.tiles.lanes)
        return Matrix(flat, first, pitch, 1, self.tiles.lanes)

    def _first(self, strip: SSAValue) -> SSAValue:
        """Where a strip begins."""
        return self.code.mul(strip, self.code.dim(self.step))

    def _indices(self, row: SSAValue, depth: SSAValue) -> list[SSAValue]:
        return [depth, row] if self.transposed else [row, depth]

    def pack(self, coords: Coords, strip: SSAValue, top: SSAValue, start: SSAValue, length: SSAValue) -> None:
        """Packs the strip whose first row is `top`, from `start` along the reduction."""
        what, code, first = self.product.what, self.code, self._first(strip)
        if self.transposed:
            with code.loop(length, "r") as r:
                self._columns(coords, top, {what.reduced: code.add(start, r)}, code.add(first, r))
            return
        last = code.sub(code.dim(self.product.m), 1)
        with code.loop(self._height(top), "i") as i:
            row = code.minimum(code.add(top, i), last)
            here = {**coords, what.row: row}
            if self.contiguous:
                self._row(here, i, first, start, length)
            else:
                with code.loop(length, "r") as r:
                    value = self.product.element(what.rows, {**here, what.reduced: code.add(start, r)})
                    code.store(value, self.buffer, [i, code.add(first, r)])

    def _height(self, top: SSAValue) -> SSAValue:
        """The rows of the tile that takes the rows from `top` on."""
        code, (height, *smaller) = self.code, self.product.heights
        left = code.sub(code.dim(self.product.m), top)
        found = code.index(height)
        for each in smaller:
            found = code.select(code.compare("sle", left, each), code.index(each), found)
        return found

    def _row(self, here: Coords, i: SSAValue, first: SSAValue, start: SSAValue, length: SSAValue) -> None:
        code, what, lanes = self.code, self.product.what, self.tiles.lanes

        def copy(r: SSAValue, on: SSAValue | None) -> None:
            part = self.product.vector(what.rows, {**here, what.reduced: code.add(start, r)}, what.reduced, on)
            code.store(part, self.buffer, [i, code.add(first, r)])

        whole = code.divide(length, lanes)
        later = Computed(self.product, what.rows, {**here, what.row: code.add(here[what.row], NEXT_ROW)}, what.row)
        with code.loop(whole, "v") as v:
            r = code.mul(v, lanes)
            later.prefetch(code, code.add(start, r), 0, 0, 1)
            copy(r, None)
        done = code.mul(whole, lanes)
        with code.when(code.compare("slt", done, length)):
            copy(done, code.sub(length, done))

    def _columns(self, coords: Coords, top: SSAValue, at: Coords, position: SSAValue) -> None:
        code, what, lanes = self.code, self.product.what, self.tiles.lanes
        m = code.dim(self.product.m)
        for first in range(0, self.tiles.rows, lanes):
            row = code.add(top, first)
            part = self.product.vector(what.rows, {**coords, **at, what.row: row}, what.row, code.sub(m, row))
            code.store(part, self.buffer, [position, code.index(first)])
