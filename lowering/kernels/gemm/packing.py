"""Packing: rows of A into strips of MR rows, columns of B into panels of NR columns, as the micro-kernel reads
them; and transposed copies in blocks that are transposed in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IndexType
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import PACKING_PREFETCH_ROWS, TASK_COPIED_ELEMENTS, WAY_BYTES
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Routine, buffer_type, flat, shared_units
from lowering.kernels.emit.vectorization import is_power_of_two, masks_are_registers, transposed
from lowering.kernels.gemm.epilogue import can_store_tiles
from lowering.kernels.gemm.micro_kernel import Computed, Matrix, Operand, lies_evenly, operand
from lowering.kernels.gemm.problem import Coords, Gemm
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum, mod
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.blocks import FlattenOp
from tir_dialect.target import LINE_BYTES
from tir_dialect.types import BufferType


class RowPanels:
    """Strips of rows `[row, depth]`, or `[depth, row]` where rows are contiguous in memory.

    A known number of rows whose stride is not close to a power of two is not packed at all: the micro-kernel reads
    elements along K anyway. Otherwise whole vectors are copied. The rows of a strip are an odd number of cache lines
    apart, to avoid conflict misses, and each continues in the next strip. A row past the last one repeats the last one.
    """

    def __init__(self, gemm: Gemm, room: int, step: Dim, tasks: Dim | None = None):
        """Room for so many elements of each row of the tile, of which a strip takes `step`; for each of some tasks."""
        self.gemm = gemm
        self.code = gemm.code
        self.tiles = gemm.tiles
        self.step = step
        contraction = gemm.contraction
        by_depth = gemm.is_contiguous(contraction.rows, contraction.reduced)
        self.direct = by_depth and self._is_well_spaced
        self.transposed = not by_depth and gemm.is_contiguous(contraction.rows, contraction.row)
        self.contiguous = by_depth or self.transposed
        size = byte_size(contraction.element)
        pitch = (-(-room * size // LINE_BYTES) | 1) * LINE_BYTES // size
        wide = -(-self.tiles.mr // self.tiles.lanes) * self.tiles.lanes
        shape = [room, wide] if self.transposed else [self.tiles.mr, pitch]
        self._shape = shape
        if not self.direct:
            before = [] if tasks is None or tasks.constant_value == 1 else [tasks]
            self.buffer = self.code.alloc([*before, *shape], contraction.element, "packed_rows")

    def take(self, task: SSAValue) -> None:
        """Uses the memory of a task from here on."""
        if not self.direct and len(buffer_type(self.buffer).shape) > len(self._shape):
            self.buffer = self.code.part(self.buffer, task, self._shape)

    @property
    def _is_well_spaced(self) -> bool:
        """Whether rows need no packing: they are so far apart that the cache keeps all those of a tile."""
        contraction, rows = self.gemm.contraction, self.gemm.m.constant_value
        step = contraction.rows.stride(contraction.row[-1]) if contraction.row else None
        bytes_ = byte_size(contraction.element) * (step or 0)
        return rows is not None and step is not None and bytes_ % WAY_BYTES != 0

    def reader(
        self, coords: Coords, strip: SSAValue, top: SSAValue, start: SSAValue
    ) -> Callable[[int, SSAValue], SSAValue]:
        """A function that gives an element of a strip whose first row is `top`, by its row and its step of K."""
        code, contraction = self.code, self.gemm.contraction

        def direct(row: int, depth: SSAValue) -> SSAValue:
            here = {**coords, contraction.row: code.add(top, row), contraction.reduced: code.add(start, depth)}
            return self.gemm.element(contraction.rows, here)

        first = self._first(strip)

        def packed(row: int, depth: SSAValue) -> SSAValue:
            return code.load(self.buffer, self._indices(code.index(row), code.add(first, depth)))

        return direct if self.direct else packed

    def operand(self, coords: Coords, strip: SSAValue, top: SSAValue, start: SSAValue) -> Operand:
        """The same for a micro-kernel."""
        contraction = self.gemm.contraction
        if self.direct:
            return operand(
                self.gemm,
                contraction.rows,
                {**coords, contraction.row: top, contraction.reduced: start},
                contraction.row,
            )
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
        """Packs the strip whose first row is `top`, from `start` along K."""
        contraction, code, first = self.gemm.contraction, self.code, self._first(strip)
        if self.transposed:
            with code.loop(length, "r") as r:
                self._columns(coords, top, {contraction.reduced: code.add(start, r)}, code.add(first, r))
            return
        last = code.sub(code.dim(self.gemm.m), 1)
        with code.loop(self._mr(top), "i") as i:
            row = code.minimum(code.add(top, i), last)
            here = {**coords, contraction.row: row}
            if self.contiguous:
                self._row(here, i, first, start, length)
            else:
                with code.loop(length, "r") as r:
                    value = self.gemm.element(contraction.rows, {**here, contraction.reduced: code.add(start, r)})
                    code.store(value, self.buffer, [i, code.add(first, r)])

    def _mr(self, top: SSAValue) -> SSAValue:
        """The rows of the tile that takes the rows from `top` on."""
        code, (mr, *smaller) = self.code, self.gemm.mr_sizes
        left = code.sub(code.dim(self.gemm.m), top)
        found = code.index(mr)
        for each in smaller:
            found = code.select(code.compare("sle", left, each), code.index(each), found)
        return found

    def _row(self, here: Coords, i: SSAValue, first: SSAValue, start: SSAValue, length: SSAValue) -> None:
        code, contraction, lanes = self.code, self.gemm.contraction, self.tiles.lanes

        def copy(r: SSAValue, on: SSAValue | None) -> None:
            chunk = self.gemm.vector(
                contraction.rows, {**here, contraction.reduced: code.add(start, r)}, contraction.reduced, on
            )
            code.store(chunk, self.buffer, [i, code.add(first, r)])

        whole = code.divide(length, lanes)
        later = Computed(
            self.gemm,
            contraction.rows,
            {**here, contraction.row: code.add(here[contraction.row], PACKING_PREFETCH_ROWS)},
            contraction.row,
        )
        with code.loop(whole, "v") as v:
            r = code.mul(v, lanes)
            later.prefetch(code, code.add(start, r), 0, 0, 1)
            copy(r, None)
        done = code.mul(whole, lanes)
        with code.when(code.compare("slt", done, length)):
            copy(done, code.sub(length, done))

    def _columns(self, coords: Coords, top: SSAValue, at: Coords, position: SSAValue) -> None:
        code, contraction, lanes = self.code, self.gemm.contraction, self.tiles.lanes
        m = code.dim(self.gemm.m)
        for first in range(0, self.tiles.mr, lanes):
            row = code.add(top, first)
            chunk = self.gemm.vector(
                contraction.rows, {**coords, **at, contraction.row: row}, contraction.row, code.sub(m, row)
            )
            code.store(chunk, self.buffer, [position, code.index(first)])


def has_window_rows(gemm: Gemm) -> bool:
    """Whether columns are windows: evenly spaced along the last axis of the image, but not from row to row."""
    contraction = gemm.contraction
    neighbours = any(
        gemm.is_contiguous(contraction.columns, axes) for axes in (contraction.column, contraction.reduced)
    )
    return not neighbours and len(contraction.column) > 1 and contraction.columns.is_linear


class ColumnPanel:
    """One panel `[depth, width]` of whole vectors; columns past the end are undefined.

    Where columns are contiguous, vectors are copied. Where they are contiguous along K, blocks are transposed in
    registers. Windows of an image are copied in runs that end where a row of the output ends.
    """

    def __init__(self, gemm: Gemm, buffer: SSAValue, offsets: SSAValue | None = None):
        """A panel in a buffer; `offsets` are those of the steps of K, where they are the same for all columns."""
        self.gemm = gemm
        self.code = gemm.code
        self.tiles = gemm.tiles
        self.buffer = buffer
        self.offsets = offsets

    def vector(self, depth: SSAValue, number: int) -> SSAValue:
        """A packed vector."""
        return self.code.load(self.buffer, [depth, self.code.index(number * self.tiles.lanes)], self.tiles.lanes)

    def pack(self, coords: Coords, left: SSAValue, start: SSAValue, length: SSAValue) -> None:
        """Packs the columns from `left` on, from `start` along K."""
        contraction = self.gemm.contraction
        if self.gemm.is_contiguous(contraction.columns, contraction.column):
            self._copy(coords, left, start, length)
        elif self.gemm.is_contiguous(contraction.columns, contraction.reduced) and is_power_of_two(self.tiles.lanes):
            self._transpose(coords, left, start, length)
        elif has_window_rows(self.gemm):
            # Packs the columns row by row of the image: along a row, the last column axis, they are evenly spaced.
            code, contraction = self.code, self.gemm.contraction
            *before, axis = contraction.column
            row = code.dim(contraction.stage.extents[axis])
            end = code.minimum(code.add(left, self.tiles.nr), code.dim(self.gemm.n))
            first, after = code.divide(left, row), code.divide(code.add(end, code.sub(row, 1)), row)
            with code.loop(after, "line", lower=first) as number:
                begin = code.mul(number, row)
                low = code.maximum(left, begin)
                high = code.minimum(end, code.add(begin, row))
                here = {**coords, tuple(before): number}
                self._run(here, axis, code.sub(low, begin), code.sub(low, left), code.sub(high, low), start, length)
        else:
            code, contraction = self.code, self.gemm.contraction
            last = code.sub(code.dim(self.gemm.n), 1)
            with code.loop(code.index(self.tiles.nr), "j") as j:
                here = {**coords, contraction.column: code.minimum(code.add(left, j), last)}
                with code.loop(length, "r") as r:
                    value = self.gemm.element(contraction.columns, {**here, contraction.reduced: code.add(start, r)})
                    code.store(value, self.buffer, [r, j])

    def _copy(self, coords: Coords, left: SSAValue, start: SSAValue, length: SSAValue) -> None:
        code, contraction, lanes = self.code, self.gemm.contraction, self.tiles.lanes
        starts = [code.add(left, v * lanes) for v in range(self.tiles.vectors)]
        counts = [code.sub(code.dim(self.gemm.n), column) for column in starts]

        def emit(masked: bool) -> None:
            with code.loop(length, "r") as r:
                here = {**coords, contraction.reduced: code.add(start, r)}
                for v, (column, on) in enumerate(zip(starts, counts, strict=True)):
                    at = {**here, contraction.column: column}
                    chunk = self.gemm.vector(contraction.columns, at, contraction.column, on if masked else None)
                    code.store(chunk, self.buffer, [r, code.index(v * lanes)])

        self.gemm.masked(counts[0], self.tiles.nr, emit)

    # Columns that lie along K.

    def _transpose(self, coords: Coords, left: SSAValue, start: SSAValue, length: SSAValue) -> None:
        code, contraction, lanes = self.code, self.gemm.contraction, self.tiles.lanes
        last = code.sub(code.dim(self.gemm.n), 1)
        with code.loop(code.index(self.tiles.vectors), "v") as v:
            column = code.mul(v, lanes)
            columns = [code.minimum(code.add(code.add(left, column), j), last) for j in range(lanes)]

            def block(number: SSAValue, masked: bool) -> None:
                r = code.mul(number, lanes)
                here = {**coords, contraction.reduced: code.add(start, r)}
                self._block(here, columns, code.sub(length, r) if masked else None, (r, column))
                if not masked:  # prefetchers follow loads of whole lines by themselves
                    self._prefetch(here, code.add(code.add(left, column), lanes), number)

            self._blocks(length, block)

    def _blocks(self, length: SSAValue, block: Callable[[SSAValue, bool], None]) -> None:
        """Emits all blocks of steps: where masks take long, without them but for the last one if it is not whole."""
        code, lanes = self.code, self.tiles.lanes
        masked = masks_are_registers(self.gemm.kernel)
        count = code.divide(code.add(length, lanes - 1) if masked else length, lanes)
        with code.loop(count, "block") as number:
            block(number, masked)
        if not masked:
            with code.when(code.compare("slt", code.mul(count, lanes), length)):
                block(count, True)

    def _block(
        self, here: Coords, columns: Sequence[SSAValue], on: SSAValue | None, target: tuple[SSAValue, SSAValue]
    ) -> None:
        """Transposes a block: as many steps of K as there are columns, of which so many are on."""
        code, contraction, (r, first) = self.code, self.gemm.contraction, target
        chunks = [
            self.gemm.vector(contraction.columns, {**here, contraction.column: column}, contraction.reduced, on)
            for column in columns
        ]
        for i, chunk in enumerate(transposed(code, chunks)):
            code.store(chunk, self.buffer, [code.add(r, i), first])

    def _prefetch(self, here: Coords, first: SSAValue, number: SSAValue) -> None:
        """Prefetches the columns from `first` on, which are packed next.

        A cache line takes several blocks, each of which prefetches those of some columns.
        """
        code, contraction, lanes = self.code, self.gemm.contraction, self.tiles.lanes
        chunks = max(1, min(lanes, LINE_BYTES // byte_size(contraction.element) // lanes))
        first = code.add(first, code.mul(code.remainder(number, chunks), lanes // chunks))
        columns = Computed(self.gemm, contraction.columns, {**here, contraction.column: first}, contraction.column)
        for j in range(lanes // chunks):
            columns.prefetch(code, code.index(0), 0, j, 2)

    # Windows.

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
        """Packs some columns of a row from `source` on, to the columns of the panel from `target` on."""
        code, lanes, contraction = self.code, self.tiles.lanes, self.gemm.contraction
        with code.loop(code.divide(code.add(count, lanes - 1), lanes), "v") as v:
            done = code.mul(v, lanes)
            on = code.sub(count, done)
            here = {**coords, (axis,): code.add(source, done)}
            with code.loop(length, "r") as r:
                if self.offsets is None:
                    step = None
                else:
                    step = self.code.value(arith.IndexCastOp(self.code.load(self.offsets, [r]), IndexType()))
                along = {contraction.reduced: code.add(start, r)} if step is None else {}
                chunk = self.gemm.vector(contraction.columns, {**here, **along}, (axis,), on, step)
                code.store(chunk, self.buffer, [r, code.add(target, done)], code.leading(on, lanes))


@dataclass(frozen=True)
class TransposeRoutine(Routine):
    """Element `r` of row `i` goes to position `i` of row `r`; the vectors of rows are `lower` to `upper`."""

    dtype: AnyFloat
    lanes: int
    is_exact: bool = False
    """Whether nothing else is written: else whole vectors are, and as many rows, with anything past the end."""

    @property
    @override
    def label(self) -> str:
        return f"transpose.{self.dtype}.{self.lanes}"

    @override
    def sizes(self) -> Sequence[str]:
        return ("lower", "upper", "count", "length", "first", "each", "out", "out_each")

    @override
    def buffers(self) -> Mapping[str, BufferType]:
        return flat(self.dtype, "matrix", "output")

    @override
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        lanes, last = self.lanes, code.sub(size["count"], 1)
        blocks = code.divide(code.add(size["length"], lanes - 1), lanes)
        with (
            code.loop(size["upper"], "vector", lower=size["lower"], vectorize=False) as vector,
            code.loop(blocks, "block", vectorize=False) as block,
        ):
            top, start = code.mul(vector, lanes), code.mul(block, lanes)
            mask = code.leading(code.sub(size["length"], start), lanes)
            k_rows = [code.minimum(code.add(top, i), last) for i in range(lanes)]
            offsets = [code.add(code.add(size["first"], code.mul(k_row, size["each"])), start) for k_row in k_rows]
            rows = transposed(code, [code.load(buffer["matrix"], [offset], lanes, mask) for offset in offsets])
            begin = code.add(code.add(size["out"], code.mul(start, size["out_each"])), top)
            count, left = code.sub(size["count"], top), code.sub(size["length"], start)
            for i, row in enumerate(rows):
                inside = code.select(code.compare("sgt", left, i), count, code.index(0)) if self.is_exact else None
                on = None if inside is None else code.leading(inside, lanes)
                code.store(row, buffer["output"], [code.add(begin, code.mul(size["out_each"], i))], on)


def can_copy_transposed(gemm: Gemm) -> bool:
    """Whether B is transposed, and both operands are matrices in memory and there is no epilogue."""
    contraction = gemm.contraction
    evenly = all(
        lies_evenly(gemm, *each)
        for each in ((contraction.rows, contraction.row), (contraction.columns, contraction.column))
    )
    along = (
        gemm.is_contiguous(contraction.columns, contraction.reduced)
        and contraction.columns.panels is None
        and not contraction.outer
    )
    return evenly and along and can_store_tiles(gemm) and is_power_of_two(gemm.tiles.lanes)


def copy_transposed(gemm: Gemm, columns: Matrix, threads: Dim) -> Matrix:
    """The copy `[depth, pitch]`: as many vectors as columns need, an odd number, so that rows go to different sets."""
    code, lanes = gemm.code, gemm.tiles.lanes
    vectors = ceildiv(gemm.n, constant(lanes))
    pitch = constant(lanes) * (vectors + 1 - mod(vectors, constant(2)))
    room = pitch * constant(lanes) * ceildiv(gemm.k, constant(lanes))
    buffer = code.alloc([room], gemm.contraction.element, "copied_columns")
    pieces = maximum(minimum(floordiv(gemm.n * gemm.k, constant(TASK_COPIED_ELEMENTS)), vectors), constant(1))
    each = columns.each if isinstance(columns.each, SSAValue) else code.index(columns.each)
    with shared_units(code, vectors, minimum(threads, pieces), whole=True) as units:
        sizes = [*units, *map(code.dim, (gemm.n, gemm.k)), columns.first, each, code.index(0), code.dim(pitch)]
        routine = TransposeRoutine(gemm.contraction.element, lanes)
        gemm.kernel.routines.call(code, routine, sizes, [columns.buffer, buffer])
    return Matrix(buffer, code.index(0), 1, code.dim(pitch), lanes)
