"""Products with few rows whose rows and columns both lie along the sums: `y = W x` for a matrix in row-major order.

Vectors are multiplied element by element, as many sums of vectors at once as a vector has lanes; at the end halves of
pairs of these are added, then quarters, and so on, which gives a vector of sums.
"""

from __future__ import annotations

from itertools import chain, pairwise

from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.tasks import shared_units
from lowering.schedule.cpu.emit.transpose import is_power_of_two, row_sums, shuffle
from lowering.schedule.cpu.products.finish import Finish
from lowering.schedule.cpu.products.product import Product, Spot
from lowering.schedule.cpu.products.streamed import MAX_ROWS, PRODUCTS_PER_TASK
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, minimum


def can_dot(product: Product) -> bool:
    """Whether both factors lie along the sums and there may be few rows."""
    rows, what = product.m.constant_value, product.what
    along = all(product.is_contiguous(factor, what.reduced) for factor in (what.rows, what.columns))
    return (
        along and what.longest is None and is_power_of_two(product.tiles.lanes) and (rows is None or rows <= MAX_ROWS)
    )


MOST_STREAMS = 6
"""Columns that are read side by side: with the row, a set of the first-level cache has room for them, and all may fall
into one."""


class DotProduct:
    """Emits the code of one contraction at a place of its batch axes."""

    def __init__(self, product: Product):
        self.product = product
        self.code = product.code
        self.lanes = product.tiles.lanes
        self.finish = Finish(product, None, None)

    @property
    def is_best(self) -> SSAValue | None:
        """Whether there are few rows; `None` if that is known."""
        m = self.product.m
        return None if m.constant_value is not None else self.code.compare("sle", self.code.dim(m, "m"), MAX_ROWS)

    def emit(self, spot: Spot) -> None:
        """The product at one place of the batch axes."""
        code, product = self.code, self.product
        units = ceildiv(product.n, constant(self.lanes)) * product.rounds
        tasks = minimum(units, product.threads(PRODUCTS_PER_TASK))
        with shared_units(code, units, tasks) as (lower, upper), code.loop(upper, "unit", lower=lower) as unit:
            here, left = product.panel_place(spot, unit, self.lanes)
            done = constant(0)
            for height in (4, 1) if self.lanes >= 16 else (1,):
                end, first = floordiv(product.m, constant(height)), floordiv(done, constant(height))
                if (end - first).constant_value != 0:
                    self._group(here, left, height, first, end)
                done = end * height

    def _group(self, spot: Spot, left: SSAValue, height: int, lower: Dim, end: Dim) -> None:
        """Some rows times as many columns as a vector has lanes."""
        code, width = self.code, self.lanes // height
        with (
            code.loop(code.dim(end), "group", lower=code.dim(lower)) as group,
            code.loop(code.index(height), "part") as part,
        ):
            start = code.add(left, code.mul(part, width))
            top = code.mul(group, height)
            sums = self._sums(spot, [code.add(top, i) for i in range(height)], start, width)
            self._store(spot, row_sums(code, sums), top, height, start, width)

    def _store(self, spot: Spot, total: SSAValue, top: SSAValue, height: int, start: SSAValue, width: int) -> None:
        """A vector of sums, `width` of each row; those of a row are turned to the front."""
        code, what, lanes = self.code, self.product.what, self.lanes
        count = code.minimum(code.sub(code.dim(self.product.n), start), width)
        for i in range(height):
            order = [(i * width + lane) % lanes for lane in range(lanes)]
            value = shuffle(code, (total, total), order) if i else total
            self.finish.store(value, {**spot, what.row: code.add(top, i), what.column: start}, count)

    def _sums(self, spot: Spot, rows: list[SSAValue], start: SSAValue, width: int) -> list[SSAValue]:
        """A vector of partial sums for each row and column, row by row; some columns at a time."""
        last = self.code.sub(self.code.dim(self.product.n), 1)
        columns = [self.code.minimum(self.code.add(start, j), last) for j in range(width)]
        parts = -(-width // MOST_STREAMS)
        bounds = [part * width // parts for part in range(parts + 1)]
        found = [self._streams(spot, rows, columns[lower:upper]) for lower, upper in pairwise(bounds)]
        return [sums for i in range(len(rows)) for part in found for sums in part[i]]

    def _streams(self, spot: Spot, rows: list[SSAValue], columns: list[SSAValue]) -> list[list[SSAValue]]:
        """For each row the partial sums of some columns, which are read side by side."""
        code, what, lanes = self.code, self.product.what, self.lanes
        k, count = code.dim(self.product.k, "k"), len(columns)
        buffer = code.alloc([len(rows) * count, lanes], what.element, "sums", scope="local")
        places = [[[code.index(i * count + j), code.index(0)] for j in range(count)] for i in range(len(rows))]
        for place in chain(*places):
            code.store(code.zeros(what.element, lanes), buffer, place)

        def add(r: SSAValue, on: SSAValue | None) -> None:
            here, along = {**spot, what.reduced: r}, what.reduced
            factors = [self.product.vector(what.rows, {**here, what.row: row}, along, on) for row in rows]
            for j, column in enumerate(columns):
                vector = self.product.vector(what.columns, {**here, what.column: column}, along, on)
                for factor, line in zip(factors, places, strict=True):
                    code.store(code.fma(factor, vector, code.load(buffer, line[j], lanes)), buffer, line[j])

        whole = code.divide(k, lanes)
        with code.loop(whole, "v") as v:
            add(code.mul(v, lanes), None)
        done = code.mul(whole, lanes)
        with code.when(code.compare("slt", done, k)):
            add(done, code.sub(k, done))
        return [[code.load(buffer, place, lanes) for place in line] for line in places]
