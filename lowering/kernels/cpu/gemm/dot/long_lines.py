"""Reductions along long rows of a matrix whose rows are a whole number of vectors apart, with aligned loads.

So no load crosses a cache line; the vector that all rows are multiplied with is copied to the same alignment. Where a
load is a whole cache line, prefetchers follow a single stream best: a matrix in the caches is read row after row, as if
it were one. Shorter loads are faster from several rows side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.gemm.alignment import head_of
from lowering.kernels.cpu.gemm.dot.long_sums import Line, LongSums
from lowering.kernels.cpu.gemm.operands import Matrix, operand
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.structure.contraction import Factor
from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.dtypes import byte_size

LEAST = 512
"""Elements of a line for which it pays to treat its ends apart."""


def are_long(product: Product, lines: Dim) -> SSAValue | None:
    """Whether so many lines along the reduction are long, whole vectors, and if read one by one in the last cache.

    `None` if they are not: where there are batches, which share that cache, it would be much code for little.
    """
    if product.what.batch:
        return None
    code, room = product.code, product.kernel.target.l3_bytes // 2 // byte_size(product.what.element)
    k = code.dim(product.k, "k")
    whole = code.compare("eq", code.remainder(k, product.tiles.lanes), 0)
    long = code.both(code.compare("sge", k, LEAST), whole)
    if _kind(product).count > 1:
        return long
    return code.both(long, code.compare("sle", code.dim(lines * product.k), room))


def _kind(product: Product) -> LongSums:
    return LongSums.of(product.what.element, product.tiles.lanes)


@dataclass(frozen=True)
class Copies:
    """Copies of the rows that the matrix is multiplied with; element `r` of one is `r + shift` after its start."""

    buffer: SSAValue
    width: Dim
    shift: SSAValue
    lanes: int

    @staticmethod
    def make(product: Product, count: int, shift: SSAValue) -> Copies:
        """Memory for some lines, of which a part of a vector may be left free."""
        lanes = product.tiles.lanes
        width = lanes * (ceildiv(product.k, constant(lanes)) + 1)
        return Copies(product.code.alloc([count * width], product.what.element, "copies"), width, shift, lanes)

    def offset(self, code: Code, number: SSAValue, r: SSAValue | int) -> SSAValue:
        """Where an element of a line is."""
        return code.add(code.add(code.mul(number, code.dim(self.width)), self.shift), r)

    def operand(self, code: Code) -> Matrix:
        """The lines for a tile."""
        return Matrix(self.buffer, self.offset(code, code.index(0), 0), code.dim(self.width), 1, self.lanes)

    def load(self, product: Product, number: SSAValue, r: SSAValue, on: SSAValue | None) -> SSAValue:
        """A vector of a line, all its lanes or the first ones."""
        mask = None if on is None else product.code.leading(on, self.lanes)
        return product.code.load(self.buffer, [self.offset(product.code, number, r)], self.lanes, mask)


@dataclass(frozen=True)
class LongLines:
    """The rows of an operand along some axes, all of the same alignment, from `coords` on."""

    product: Product
    factor: Factor
    coords: Coords
    along: tuple[int, ...]
    head: SSAValue
    """How many elements lie before the first element where a vector may begin."""

    @staticmethod
    def make(product: Product, factor: Factor, coords: Coords, along: tuple[int, ...]) -> LongLines:
        """All lines for values of the other axes."""
        zero = product.code.index(0)
        head = head_of(product, factor, {**coords, along: zero, product.what.reduced: zero})
        return LongLines(product, factor, coords, along, head)

    @property
    def shift(self) -> SSAValue:
        """Where copies should begin."""
        return self.product.code.sub(self.product.code.index(self.product.tiles.lanes), self.head)

    def sums(self, near: tuple[Copies, SSAValue], start: SSAValue, memory: SSAValue) -> None:
        """Fills memory with vectors of partial sums: of a line that is copied with as many as fit, from `start` on.

        Behind the last line they are those of that.
        """
        product, code, (copies, number) = self.product, self.product.code, near
        bounds, kind, reduced = (self.head, code.dim(product.k, "k")), _kind(product), product.what.reduced
        last = code.sub(code.dim(product.size(self.along)), 1)
        zero = code.index(0)
        matrix = operand(product, self.factor, {**self.coords, self.along: zero, reduced: zero}, self.along)
        if isinstance(matrix, Matrix):
            each = matrix.each if isinstance(matrix.each, SSAValue) else code.index(matrix.each)
            first, end = (code.add(matrix.first, code.mul(line, each)) for line in (start, last))
            buffers = [copies.buffer, matrix.buffer]
            layout = [copies.offset(code, number, 0), first, end, each]
            product.kernel.routines.call(code, kind, [*bounds, *layout], [*buffers, memory])
            return

        def line(offset: SSAValue, r: SSAValue, on: SSAValue | None) -> SSAValue:
            return product.vector(self.factor, {**self.coords, self.along: offset, reduced: r}, reduced, on)

        def far(i: SSAValue) -> Line:
            return partial(line, code.minimum(code.add(start, i), last))

        kind.emit(code, bounds, partial(copies.load, product, number), far, memory)
