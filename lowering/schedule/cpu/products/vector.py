"""Products with one row: a vector times a matrix whose columns lie side by side.

Every element of the matrix is used once, so that its memory is the bound. It is read as it lies there, some whole lines
side by side, and the sums go through the first-level cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.tasks import shared_units
from lowering.schedule.cpu.products.finish import Finish
from lowering.schedule.cpu.products.product import Product, Spot
from lowering.schedule.cpu.products.streamed import PRODUCTS_PER_TASK, can_stream
from tir_dialect.dims import ceildiv, constant, maximum, minimum

LINES = 7
"""Lines of the matrix that are read side by side. With the sums they are as many as a set of the first-level cache has
ways, and all may fall into one."""
SIDE = 4
"""Vectors of each line that are taken at once: loads right behind a store wait if their addresses end as it does."""
VECTORS = 256
"""Vectors of sums that are made before the next ones: a third of a first-level cache."""


def can_be_vector(product: Product) -> bool:
    """Whether there may be one row, and columns lie side by side in memory."""
    what, rows = product.what, product.m.constant_value
    fits = what.longest is None or what.longest >= LINES
    return rows in (None, 1) and fits and not what.outer and can_stream(product)


class VectorProduct:
    """Emits the code of one contraction at a place of its batch axes."""

    def __init__(self, product: Product):
        self.product = product
        self.code = product.code
        self.lanes = product.tiles.lanes
        self.turns = maximum(ceildiv(product.k, constant(LINES)), constant(1))

    @property
    def is_best(self) -> SSAValue | None:
        """Whether there is one row; `None` if that is known."""
        m = self.product.m
        return None if m.constant_value is not None else self.code.compare("eq", self.code.dim(m, "m"), 1)

    @property
    def needs_partial_sums(self) -> bool:
        """Whether sums may be made in several turns."""
        return self.turns.constant_value != 1

    def emit(self, spot: Spot) -> None:
        """The product at one place of the batch axes."""
        code, product = self.code, self.product
        vectors = ceildiv(product.n, constant(self.lanes))
        tasks = minimum(vectors, product.threads(PRODUCTS_PER_TASK))
        here = {**spot, product.what.row: code.index(0)}
        with shared_units(code, vectors, tasks, whole=True) as (lower, upper):
            blocks = code.divide(code.add(code.sub(upper, lower), VECTORS - 1), VECTORS)
            with code.loop(blocks, "block") as block, code.loop(code.dim(self.turns), "turn") as turn:
                first = code.add(lower, code.mul(block, VECTORS))
                self._turn(here, turn, (first, code.minimum(code.add(first, VECTORS), upper)))

    def _turn(self, spot: Spot, turn: SSAValue, vectors: tuple[SSAValue, SSAValue]) -> None:
        """Some lines times the row: whole turns leave sums, and the last one, with the lines that are left, results."""
        code = self.code
        start = code.mul(turn, LINES)
        if not self.needs_partial_sums:
            self._last_lines(spot, start, Finish(self.product, None, None), vectors)
            return
        first = code.compare("eq", turn, 0)
        with code.when(code.compare("slt", turn, code.sub(code.dim(self.turns), 1))) as branch:
            self._lines(spot, start, Finish(self.product, first, None), vectors)
        with code.otherwise(branch):
            self._last_lines(spot, start, Finish(self.product, first, None), vectors)

    def _lines(self, spot: Spot, start: SSAValue, finish: Finish, vectors: tuple[SSAValue, SSAValue]) -> None:
        """Whole vectors are taken side by side, and what is left one by one."""
        code, what = self.code, self.product.what
        spots = [{**spot, what.reduced: code.add(start, line)} for line in range(LINES)]
        factors = [code.splat(self.product.element(what.rows, each), self.lanes) for each in spots]
        lower, upper = vectors
        whole = code.minimum(upper, code.divide(code.dim(self.product.n), self.lanes))
        blocks = code.divide(code.sub(whole, lower), SIDE)
        with code.loop(blocks, "block") as block:
            first = code.add(lower, code.mul(block, SIDE))
            places = [code.mul(code.add(first, v), self.lanes) for v in range(SIDE)]
            self._add(finish, spots, factors, places, None)
        with code.loop(upper, "v", lower=code.add(lower, code.mul(blocks, SIDE))) as v:
            place = code.mul(v, self.lanes)
            count = code.sub(code.dim(self.product.n), place)
            emit = partial(self._add, finish, spots, factors, [place])
            self.product.masked(count, self.lanes, lambda masked: emit(count if masked else None))

    def _add(
        self,
        finish: Finish,
        spots: Sequence[Spot],
        factors: Sequence[SSAValue],
        places: Sequence[SSAValue],
        on: SSAValue | None,
    ) -> None:
        """Adds the products of some lines to the vectors of sums at some places."""
        code, what = self.code, self.product.what
        sums = [code.zeros(what.element, self.lanes)] * len(places)
        for factor, each in zip(factors, spots, strict=True):
            columns = [
                self.product.vector(what.columns, {**each, what.column: place}, what.column, on) for place in places
            ]
            sums = [code.fma(factor, column, total) for column, total in zip(columns, sums, strict=True)]
        finish.keep(sums, [{**spots[0], what.column: place} for place in places], on)

    def _last_lines(self, spot: Spot, start: SSAValue, finish: Finish, vectors: tuple[SSAValue, SSAValue]) -> None:
        code, what, zero = self.code, self.product.what, self.code.index(0)
        sums = code.alloc([self.lanes], what.element, "sums", scope="local")
        with code.loop(vectors[1], "v", lower=vectors[0]) as v:
            place = code.mul(v, self.lanes)
            count = code.sub(code.dim(self.product.n), place)
            code.store(code.zeros(what.element, self.lanes), sums, [zero])
            with code.loop(code.dim(self.product.k, "k"), "r", lower=start) as r:
                here = {**spot, what.reduced: r}
                factor = code.splat(self.product.element(what.rows, here), self.lanes)
                column = self.product.vector(what.columns, {**here, what.column: place}, what.column, count)
                total = code.fma(factor, column, code.load(sums, [zero], self.lanes))
                code.store(total, sums, [zero])
            finish.store(code.load(sums, [zero], self.lanes), {**spot, what.column: place}, count)
