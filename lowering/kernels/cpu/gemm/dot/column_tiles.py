"""Tiles of rows times a few columns that lie along the sums: to the output, or by way of memory to an epilogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.vectorization import masks_are_registers
from lowering.kernels.cpu.gemm.dot.column_sums import ColumnSums
from lowering.kernels.cpu.gemm.dot.sums import L3_PART, Ask, Line, asking
from lowering.kernels.cpu.gemm.finish import Finish
from lowering.kernels.cpu.gemm.last_columns import MOST_COLUMNS, are_very_few, leaves_last, narrow_step
from lowering.kernels.cpu.gemm.operands import Matrix, operand
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.gemm.results import can_store_sums
from tir_dialect.dims import constant, floordiv, maximum
from tir_dialect.dtypes import byte_size

Bounds = tuple[SSAValue, SSAValue]
"""The numbers from the first value to before the second."""


ROWS_PART = 4
"""Rows that are multiplied with several groups of columns take such a part of the second-level cache."""


@dataclass(frozen=True)
class Few:
    """Columns that lie along the sums, element beside element."""

    near: Matrix
    """Where they lie, from column `first` on."""
    first: SSAValue
    count: SSAValue
    """How many, at least one."""


def possible_counts(product: Product) -> Sequence[int]:
    """How many columns a group may have."""
    known, most = product.n.constant_value, MOST_COLUMNS
    if known is None:
        return range(1, most + 1)
    found = {known % narrow_step(product), known % product.tiles.width} if leaves_last(product) else set[int]()
    if are_very_few(product) is not False:
        found |= {min(known, most), known % most}
    return sorted(count for count in found if 0 < count <= most)


class ColumnTiles:
    """Emits the code for one batch."""

    def __init__(self, product: Product, coords: Coords, few: Few):
        self.product = product
        self.code = product.code
        self.lanes = product.tiles.lanes
        self.few = few
        self.coords = {**coords, product.what.column: few.first}

    def emit(self, units: Bounds) -> None:
        """All rows of some units, each as many as a vector has lanes, times one group of columns after the other."""
        code, product, few = self.code, self.product, self.few
        known = product.n.constant_value
        if known is not None and (known <= MOST_COLUMNS or are_very_few(product) is False):
            self._group(units)
            return
        room = product.kernel.target.l2_bytes // ROWS_PART // byte_size(product.what.element) // self.lanes
        block = code.dim(maximum(floordiv(constant(room), maximum(product.k, constant(1))), constant(1)))
        blocks = code.divide(code.add(code.sub(units[1], units[0]), code.sub(block, 1)), block)
        groups = code.divide(code.add(few.count, MOST_COLUMNS - 1), MOST_COLUMNS)
        with (
            code.loop(blocks, "block", vectorize=False) as number,
            code.loop(groups, "group", vectorize=False) as group,
        ):
            lower = code.add(units[0], code.mul(number, block))
            first = code.mul(group, MOST_COLUMNS)
            count = code.minimum(code.sub(few.count, first), MOST_COLUMNS)
            columns = Few(replace(few.near, first=self._begin(first)), code.add(few.first, first), count)
            part = ColumnTiles(product, self.coords, columns)
            part._group((lower, code.minimum(code.add(lower, block), units[1])))

    def _group(self, units: Bounds) -> None:
        """All rows of some units times all columns, of which there are as many as a tile has at most."""
        code, what = self.code, self.product.what
        zero = code.index(0)
        rows = operand(self.product, what.rows, {**self.coords, what.row: zero, what.reduced: zero}, what.row)
        if isinstance(rows, Matrix) and can_store_sums(self.product):
            self._by_width(partial(self._to_output, rows, units))
            return
        totals = self.memory()
        with code.loop(units[1], "unit", lower=units[0]) as unit:
            top = code.mul(unit, self.lanes)
            if isinstance(rows, Matrix):
                self._by_width(partial(self._to_memory, rows, top, totals))
            else:
                self._by_width(partial(self._computed, top, totals))
            self.store(top, totals)

    def memory(self) -> SSAValue:
        """Memory for the sums of a unit."""
        return self.code.alloc([self.lanes * MOST_COLUMNS], self.product.what.element, "totals")

    def _by_width(self, emit: Callable[[int], None]) -> None:
        """What is done with so many columns or one less, of which there are 1, 2 or 4."""
        code, count = self.code, self.few.count
        widths = sorted({_width(count) for count in possible_counts(self.product)})

        def narrower(width: int, *wider: int) -> None:
            if not wider:
                emit(width)
                return
            with code.when(code.compare("sle", count, width)) as branch:
                emit(width)
            with code.otherwise(branch):
                narrower(*wider)

        narrower(*widths)

    def _kind(self, width: int) -> ColumnSums:
        product = self.product
        registers = product.kernel.target.vector_registers
        kind = ColumnSums.of(product.what.element, self.lanes, width, registers)
        return replace(kind, has_masks=masks_are_registers(product.kernel))

    def _to_output(self, rows: Matrix, units: Bounds, width: int) -> None:
        """The rows of some units."""
        code, product, what = self.code, self.product, self.product.what
        kind, m, zero = self._kind(width), code.dim(product.m, "m"), code.index(0)
        lower, upper = (code.mul(unit, self.lanes // kind.rows) for unit in units)
        upper = code.minimum(upper, code.divide(code.add(m, kind.rows - 1), kind.rows))
        out = product.offset(what.output, {**self.coords, what.row: zero})
        each = code.dim(what.output.strides[what.row[-1]])
        self._call(kind, rows, (lower, upper, m), (product.sums, out, each))

    def _to_memory(self, rows: Matrix, top: SSAValue, totals: SSAValue, width: int) -> None:
        """The rows of a unit, side by side."""
        code, kind = self.code, self._kind(width)
        count = code.minimum(code.sub(code.dim(self.product.m, "m"), top), self.lanes)
        tiles = code.divide(code.add(count, kind.rows - 1), kind.rows)
        here = replace(rows, first=code.add(rows.first, code.mul(top, rows.each)))
        self._call(kind, here, (code.index(0), tiles, count), (totals, code.index(0), code.index(width)))

    def _call(
        self,
        kind: ColumnSums,
        rows: Matrix,
        tiles: tuple[SSAValue, SSAValue, SSAValue],
        out: tuple[SSAValue, SSAValue, SSAValue],
    ) -> None:
        """Some tiles of so many rows, into a buffer from one index on, with so many elements for each row."""
        code, product, few = self.code, self.product, self.few
        each, near_each = (
            each if isinstance(each, SSAValue) else code.index(each) for each in (rows.each, few.near.each)
        )
        buffers = [few.near.buffer, rows.buffer, out[0]]
        near = [few.count, few.near.first, near_each]
        sizes = [*tiles, code.dim(product.k, "k"), *near, rows.first, each, *out[1:], self._asked]
        product.kernel.routines.call(code, kind, sizes, buffers)

    @property
    def _asked(self) -> SSAValue:
        """1 if rows come from memory, else 0."""
        code, product = self.code, self.product
        room = product.kernel.target.l3_bytes // L3_PART // byte_size(product.what.element)
        is_far = code.compare("sgt", code.dim(product.m * product.k), room)
        return code.select(is_far, code.index(1), code.index(0))

    def _computed(self, top: SSAValue, totals: SSAValue, width: int) -> None:
        """The rows of a unit that are computed on the way, side by side."""
        code, product, what, few = self.code, self.product, self.product.what, self.few
        kind, last = self._kind(width), code.sub(code.dim(product.m, "m"), 1)
        columns = [code.minimum(code.sub(few.count, 1), j) for j in range(width)]
        near = [self._column(column) for column in columns]

        def line(row: SSAValue, r: SSAValue, on: SSAValue | None) -> SSAValue:
            return product.vector(what.rows, {**self.coords, what.row: row, what.reduced: r}, what.reduced, on)

        def far(row: SSAValue) -> Line:
            return partial(line, code.minimum(row, last))

        with code.loop(code.index(self.lanes // kind.rows), "tile", vectorize=False) as tile:
            first = code.add(top, code.mul(tile, kind.rows))
            soon = asking(product, what.rows, {**self.coords, what.row: code.add(first, kind.rows)}, what.row)
            ask = None if soon is None else partial(self._ask, soon)
            rows = [far(code.add(first, i)) for i in range(kind.rows)]
            sums = kind.emit(code, code.dim(product.k, "k"), near, rows, ask)
            position = code.mul(tile, kind.rows * width)
            for i, each in enumerate(sums):
                code.store(each, totals, [code.add(position, i * kind.together)])

    def _column(self, number: SSAValue) -> Line:
        """A column by its number."""
        code, near, begin = self.code, self.few.near, self._begin(number)

        def vector(r: SSAValue, on: SSAValue | None) -> SSAValue:
            mask = None if on is None else code.leading(on, self.lanes)
            return code.load(near.buffer, [code.add(begin, r)], self.lanes, mask)

        return vector

    def _begin(self, number: SSAValue) -> SSAValue:
        """Where a column begins."""
        code, each = self.code, self.few.near.each
        return code.add(self.few.near.first, code.mul(number, code.index(each) if isinstance(each, int) else each))

    def _ask(self, soon: Ask, number: int, r: SSAValue) -> None:
        soon(self.code.index(number), r)

    def store(self, top: SSAValue, totals: SSAValue) -> None:
        """Results of a unit, from its sums side by side.

        Vectors that are no wider than a row wait for no other row's sums to be in the cache.
        """
        code, product, what, count = self.code, self.product, self.product.what, self.few.count
        lanes = min(MOST_COLUMNS, self.lanes)
        finish = Finish(replace(product, tiles=replace(product.tiles, lanes=lanes, vectors=1)), None, None)
        width = code.select(code.compare("eq", count, 3), code.index(4), count)
        rows = code.minimum(code.sub(code.dim(product.m, "m"), top), self.lanes)
        with code.loop(rows, "i", vectorize=False) as i:
            here = {**self.coords, what.row: code.add(top, i)}
            position = code.mul(i, width)
            finish.store(code.load(totals, [position], lanes), here, count)
            for j in range(lanes, MOST_COLUMNS, lanes):  # where vectors have two lanes
                with code.when(code.compare("sgt", count, j)):
                    there = {**here, what.column: code.add(self.few.first, j)}
                    finish.store(code.load(totals, [code.add(position, j)], lanes), there, code.sub(count, j))


def _width(count: int) -> int:
    """The next power of two."""
    return 1 << (count - 1).bit_length()
