"""Products with one row: a vector times a matrix whose columns lie side by side.

Every element of the matrix is used once, so that its memory is the bound. It is read as it lies there, some whole lines
side by side, and the sums go through the first-level cache. A vector that begins in one cache line and ends in the next
takes as long as two: where lines are whole vectors apart, all begin where the machine's vectors may, and the sums lie
likewise. Each thread has some of the lines, not a part of each, of which prefetchers would ask for more than it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.tasks import at_most_threads, numbered_tasks
from lowering.schedule.cpu.products.alignment import head_of
from lowering.schedule.cpu.products.finish import Finish
from lowering.schedule.cpu.products.long_sums import LINE_BYTES
from lowering.schedule.cpu.products.product import Product, Spot
from lowering.schedule.cpu.products.streamed import PRODUCTS_PER_TASK, can_stream
from tir_dialect.dims import ceildiv, constant, maximum, minimum
from tir_dialect.dtypes import byte_size

LINES = 7
"""Lines of the matrix that are read side by side. With the sums they are as many as a set of the first-level cache has
ways, and all may fall into one."""
SIDE = 4
"""Vectors of each line that are taken at once: loads right behind a store wait if their addresses end as it does."""
BLOCK_BYTES = 4096
"""Of sums that are made before the next ones, and of each line: a page, from whose end prefetchers look no further."""
LARGE_BLOCKS = 4
"""So many times longer are blocks of a matrix that comes from memory, where it takes longer until prefetchers start,
and blocks of any matrix where a vector is no whole cache line."""


def can_be_vector(product: Product) -> bool:
    """Whether there may be one row, and columns lie side by side in memory."""
    what, rows = product.what, product.m.constant_value
    fits = what.longest is None or what.longest >= LINES
    return rows in (None, 1) and fits and not what.outer and can_stream(product)


_Place = tuple[SSAValue, SSAValue]
"""The first column of a vector, and where its sums are."""
_Add = Callable[[Sequence[_Place], Sequence[SSAValue] | None], None]
"""Adds to vectors at some places; all lanes, or so many or more."""


class VectorProduct:
    """Emits the code of one contraction at a place of its batch axes.

    Sums lie in whole vectors, which are numbered: number 0 has the `head` columns before the first place where a vector
    of all lines may begin, and those behind it follow.
    """

    def __init__(self, product: Product):
        self.product = product
        self.code = product.code
        self.lanes = product.tiles.lanes
        self.finish = Finish(product, None, None)

    @property
    def is_best(self) -> SSAValue | None:
        """Whether there is one row; `None` if that is known."""
        m = self.product.m
        return None if m.constant_value is not None else self.code.compare("eq", self.code.dim(m, "m"), 1)

    def emit(self, spot: Spot) -> None:
        """The product at one place of the batch axes."""
        code, product, what = self.code, self.product, self.product.what
        here = {**spot, what.row: code.index(0)}
        units = maximum(ceildiv(product.k, constant(LINES)), constant(1))
        tasks = minimum(units, product.threads(PRODUCTS_PER_TASK))
        width = self.lanes * (ceildiv(product.n, constant(self.lanes)) + SIDE)
        parts = code.alloc([tasks, width], i32 if what.is_integer else what.element, "sums")
        first = {**here, what.column: code.index(0), what.reduced: code.index(0)}
        head = code.minimum(head_of(product, what.columns, first), code.dim(product.n))
        count = at_most_threads(code, tasks)
        with numbered_tasks(code, units, tasks, count) as (task, lower, upper):
            end = code.minimum(code.mul(upper, LINES), code.dim(product.k))
            self._task(here, code.part(parts, task, [width]), head, (code.mul(lower, LINES), end))
        total = code.part(parts, code.index(0), [width])
        if tasks.constant_value != 1:
            with code.loop(count, "part", lower=code.index(1)) as part:
                self._add_part(total, code.part(parts, part, [width]), head)
        self._finish(here, total, head)

    def _task(self, spot: Spot, sums: SSAValue, head: SSAValue, lines: tuple[SSAValue, SSAValue]) -> None:
        """The sums over some lines, block by block: those of a turn, then what is left, one by one."""
        code, (lower, upper) = self.code, lines
        vectors = self._vectors(head)
        with code.loop(code.add(vectors, SIDE - 1), "v", vectorize=False) as v:
            code.store(self._zeros, sums, [code.mul(v, self.lanes)])
        turns = code.divide(code.sub(upper, lower), LINES)
        rest = code.add(lower, code.mul(turns, LINES))
        block = self._block(vectors)
        blocks = code.maximum(code.divide(code.add(vectors, code.sub(block, 2)), block), 1)
        with code.loop(blocks, "block") as number:
            begin = code.add(code.mul(number, block), 1)  # the first one has number 0 too
            bounds = begin, code.minimum(code.add(begin, block), vectors)
            with code.loop(turns, "turn") as turn:
                self._lines(spot, sums, head, (code.add(lower, code.mul(turn, LINES)), LINES), bounds)
            with code.loop(upper, "line", lower=rest) as line:
                self._lines(spot, sums, head, (line, 1), bounds)

    def _vectors(self, head: SSAValue) -> SSAValue:
        """How many vectors there are."""
        code = self.code
        return code.add(code.divide(code.add(code.sub(code.dim(self.product.n), head), self.lanes - 1), self.lanes), 1)

    def _block(self, vectors: SSAValue) -> SSAValue:
        """Vectors of a block, whole groups: blocks are about as large as they should be, and equally large."""
        code, product = self.code, self.product
        size = byte_size(product.what.element)
        page = BLOCK_BYTES // size // self.lanes
        best = code.index(LARGE_BLOCKS * page)
        if self.lanes * size >= LINE_BYTES:
            room = product.kernel.target.l3_bytes // 2 // size
            is_near = code.compare("sle", code.dim(product.k * product.n), room)
            best = code.select(is_near, code.index(page), best)
        blocks = code.maximum(code.divide(code.add(vectors, code.divide(best, 2)), best), 1)
        all_groups = code.mul(blocks, SIDE)
        return code.mul(code.divide(code.add(vectors, code.sub(all_groups, 1)), all_groups), SIDE)

    def _lines(
        self,
        spot: Spot,
        sums: SSAValue,
        head: SSAValue,
        lines: tuple[SSAValue, int],
        bounds: tuple[SSAValue, SSAValue],
    ) -> None:
        """Adds some lines times their elements of the row, from one on; all vectors within bounds.

        Several vectors at a time, without masks but at the ends.
        """
        code, what, (start, height) = self.code, self.product.what, lines
        spots = [{**spot, what.reduced: code.add(start, line)} for line in range(height)]
        factors = [code.splat(self.product.element(what.rows, each), self.lanes) for each in spots]
        add = partial(self._add, sums, spots, factors)
        begin, end = bounds
        with code.when(code.compare("sle", begin, code.minimum(head, 1))):
            add([(code.index(0), code.index(0))], [head])
        if height == 1:
            self._single(add, head, begin, end)
            return
        whole = code.minimum(end, code.add(code.divide(code.sub(code.dim(self.product.n), head), self.lanes), 1))
        groups = code.divide(code.maximum(code.sub(whole, begin), 0), SIDE)
        with code.loop(groups, "group", vectorize=False) as group:
            first = code.add(begin, code.mul(group, SIDE))
            add([self._place(head, code.add(first, v)) for v in range(SIDE)], None)
        self._rest(add, head, code.add(begin, code.mul(groups, SIDE)), end)

    def _rest(self, add: _Add, head: SSAValue, begin: SSAValue, end: SSAValue) -> None:
        """The vectors behind whole groups, fewer than one: where masks cost little, as one that reaches into padding.

        Only the last block has some, so that what is off adds to nothing: zero times infinity is no zero.
        """
        code = self.code
        if not self.product.has_cheap_masks:
            self._single(add, head, begin, end)
            return
        with code.when(code.compare("slt", begin, end)):
            places = [self._place(head, code.add(begin, v)) for v in range(SIDE)]
            add(places, [code.sub(code.dim(self.product.n), column) for column, _ in places])

    def _single(self, add: _Add, head: SSAValue, begin: SSAValue, end: SSAValue) -> None:
        """Vectors one by one."""
        with self.code.loop(end, "v", lower=begin, vectorize=False) as v:
            place = self._place(head, v)
            count = self.code.sub(self.code.dim(self.product.n), place[0])
            self.product.masked(count, self.lanes, lambda masked: add([place], [count] if masked else None))

    def _place(self, head: SSAValue, vector: SSAValue) -> _Place:
        """The first column of a vector, but for number 0, and where its sums are."""
        code = self.code
        return code.add(head, code.mul(code.sub(vector, 1), self.lanes)), code.mul(vector, self.lanes)

    def _add(
        self,
        sums: SSAValue,
        spots: Sequence[Spot],
        factors: Sequence[SSAValue],
        places: Sequence[_Place],
        on: Sequence[SSAValue] | None,
    ) -> None:
        """Adds the products of some lines to vectors of sums at some places.

        All sums are read before one is written, and all lanes of them: what is off in `on` adds zero.
        """
        code, what = self.code, self.product.what
        totals = [code.zeros(what.element, self.lanes)] * len(places)
        counts = [None] * len(places) if on is None else on
        for factor, each in zip(factors, spots, strict=True):
            columns = [
                self.product.vector(what.columns, {**each, what.column: place}, what.column, count)
                for (place, _), count in zip(places, counts, strict=True)
            ]
            totals = [code.fma(factor, column, total) for column, total in zip(columns, totals, strict=True)]
        old = [code.load(sums, [number], self.lanes) for _, number in places]
        for (_, number), earlier, total in zip(places, old, totals, strict=True):
            code.store(self.finish.added(earlier, self.finish.as_output(total)), sums, [number])

    def _add_part(self, total: SSAValue, part: SSAValue, head: SSAValue) -> None:
        """Adds the sums of a task to those of the first."""
        code = self.code
        with code.loop(self._vectors(head), "v", vectorize=False) as v:
            place = [code.mul(v, self.lanes)]
            vectors = [code.load(each, place, self.lanes) for each in (total, part)]
            code.store(self.finish.added(*vectors), total, place)

    def _finish(self, spot: Spot, total: SSAValue, head: SSAValue) -> None:
        """Results of complete sums."""
        code, product = self.code, self.product
        with code.loop(self._vectors(head), "v", vectorize=False) as v:
            is_head, (later, number) = code.compare("eq", v, 0), self._place(head, v)
            column = code.select(is_head, code.index(0), later)
            count = code.select(is_head, head, code.sub(code.dim(product.n), column))
            value = code.load(total, [number], self.lanes)
            emit = partial(self.finish.put, value, {**spot, product.what.column: column})
            product.masked(count, self.lanes, lambda masked: emit(count if masked else None))

    @property
    def _zeros(self) -> SSAValue:
        """A vector of sums without products."""
        return self.finish.as_output(self.code.zeros(self.product.what.element, self.lanes))
