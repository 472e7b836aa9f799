"""Sums along long lines of a matrix that a cache holds: one line is read after the other, as if they were one.

Prefetchers keep up best with one stream. Lines are whole vectors apart, and their loads begin where a vector of the
machine may, so that none takes two cache lines; what all are multiplied with is copied to where it lies likewise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.schedule.cpu.products.alignment import head_of
from lowering.schedule.cpu.products.product import Product, Spot
from lowering.schedule.cpu.structure.contraction import Factor
from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.dtypes import byte_size

SIDE = 4
"""Vectors of a line that are multiplied at once, with a vector of sums each."""
LEAST = 512
"""Elements of a line for which it pays to treat its ends apart."""


def are_long(product: Product, lines: Dim) -> SSAValue | None:
    """Whether so many lines along the sums are long, whole vectors, and no more than the last cache holds.

    `None` if they are not: where there are batches, which share that cache, it would be much code for little.
    """
    if product.what.batch:
        return None
    code, room = product.code, product.kernel.target.l3_bytes // 2 // byte_size(product.what.element)
    k = code.dim(product.k, "k")
    fit = code.compare("sle", code.dim(lines * product.k), room)
    whole = code.compare("eq", code.remainder(k, product.tiles.lanes), 0)
    return code.both(code.compare("sge", k, LEAST), code.both(fit, whole))


@dataclass(frozen=True)
class Copies:
    """Lines that others are multiplied with, copied; element `r` of one is at `r + shift`."""

    buffer: SSAValue
    shift: SSAValue
    lanes: int

    @staticmethod
    def make(product: Product, count: int, shift: SSAValue) -> Copies:
        """Memory for some lines, of which a part of a vector may be left free."""
        lanes = product.tiles.lanes
        width = lanes * (ceildiv(product.k, constant(lanes)) + 1)
        buffer = product.code.alloc([count, width], product.what.element, "copies")
        return Copies(buffer, shift, lanes)

    def load(self, product: Product, number: SSAValue, r: SSAValue, on: SSAValue | None) -> SSAValue:
        """A vector of a line, all its lanes or the first ones."""
        mask = None if on is None else product.code.leading(on, self.lanes)
        return product.code.load(self.buffer, [number, product.code.add(r, self.shift)], self.lanes, mask)


@dataclass(frozen=True)
class LongLines:
    """The lines of a factor, which start alike; `line` says where one is."""

    product: Product
    factor: Factor
    line: Callable[[SSAValue], Spot]
    head: SSAValue
    """How many elements lie before the first place where a vector may begin."""

    @staticmethod
    def make(product: Product, factor: Factor, line: Callable[[SSAValue], Spot]) -> LongLines:
        """Of lines that have numbers."""
        code, what = product.code, product.what
        first = {**line(code.index(0)), what.reduced: code.index(0)}
        return LongLines(product, factor, line, head_of(product, factor, first))

    @property
    def shift(self) -> SSAValue:
        """Where copies should begin."""
        return self.product.code.sub(self.product.code.index(self.product.tiles.lanes), self.head)

    def sums(self, near: tuple[Copies, SSAValue], number: Callable[[SSAValue], SSAValue], memory: SSAValue) -> None:
        """Fills memory with vectors of partial sums, of a line that is copied with as many of these as fit."""
        code, lanes = self.product.code, self.product.tiles.lanes
        with code.loop(code.index(lanes), "part", vectorize=False) as part:
            code.store(self._sum(near, self.line(number(part))), memory, [part, code.index(0)])

    def _sum(self, near: tuple[Copies, SSAValue], spot: Spot) -> SSAValue:
        """A vector of partial sums of one line."""
        product, code, lanes = self.product, self.product.code, self.product.tiles.lanes
        reduced, (copies, number) = product.what.reduced, near
        buffer = code.alloc([SIDE, lanes], product.what.element, "sums", scope="local")
        places = [[code.index(v), code.index(0)] for v in range(SIDE)]
        for place in places:
            code.store(code.zeros(product.what.element, lanes), buffer, place)

        def add(v: int, r: SSAValue, on: SSAValue | None) -> None:
            far = product.vector(self.factor, {**spot, reduced: r}, reduced, on)
            sums = code.fma(copies.load(product, number, r, on), far, code.load(buffer, places[v], lanes))
            code.store(sums, buffer, places[v])

        k, step = code.dim(product.k, "k"), SIDE * lanes
        with code.when(code.compare("sgt", self.head, 0)):
            add(0, code.index(0), self.head)
        groups = code.divide(code.sub(k, self.head), step)
        with code.loop(groups, "group", vectorize=False) as group:
            for v in range(SIDE):
                add(v, code.add(code.add(self.head, code.mul(group, step)), v * lanes), None)
        done = code.add(self.head, code.mul(groups, step))
        with code.loop(code.divide(code.add(code.sub(k, done), lanes - 1), lanes), "rest", vectorize=False) as rest:
            r = code.add(done, code.mul(rest, lanes))
            add(0, r, code.sub(k, r))
        vectors = [code.load(buffer, place, lanes) for place in places]
        return code.add_floats(*(code.add_floats(vectors[v], vectors[v + 1]) for v in (0, 2)))
