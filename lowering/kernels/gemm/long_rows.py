"""Reductions along long rows of a matrix whose rows are a whole number of vectors apart, with aligned loads.

So no load crosses a cache line; the vector that all rows are multiplied with is copied to the same alignment. Where a
load is a whole cache line, prefetchers follow a single stream best: a matrix in the caches is read row after row, as if
it were one. Shorter loads are faster from several rows side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from typing_extensions import override
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import LONG_DOT_MIN_K, LONG_DOT_SHORT_VECTORS, LONG_DOT_WHOLE_LINES, SUM_BLOCK_STEPS
from lowering.kernels.emit.accumulators import VectorTotals, in_blocks
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Routine, flat
from lowering.kernels.gemm.micro_kernel import Matrix, elements_before_alignment, operand
from lowering.kernels.gemm.problem import Coords, Gemm
from lowering.kernels.structure.contraction import Factor
from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES
from tir_dialect.types import BufferType

RowVector = Callable[[SSAValue, SSAValue | None], SSAValue]
"""A vector of a row at a step of K; all its lanes, or so many or more."""
Bounds = tuple[SSAValue, SSAValue]
"""How many elements of a row lie before the first aligned one, and K."""


@dataclass(frozen=True)
class LongDotRoutine(Routine):
    """The shape of the loop: how many rows are read side by side, and how many vectors of each."""

    dtype: AnyFloat
    lanes: int
    count: int
    side: int

    @staticmethod
    def of(dtype: AnyFloat, lanes: int) -> LongDotRoutine:
        """The shape for vectors of a machine."""
        whole = lanes * byte_size(dtype) >= LINE_BYTES or lanes < LONG_DOT_SHORT_VECTORS[0]
        return LongDotRoutine(dtype, lanes, *(LONG_DOT_WHOLE_LINES if whole else LONG_DOT_SHORT_VECTORS))

    def emit(
        self,
        code: Code,
        bounds: Bounds,
        near: RowVector,
        far: Callable[[SSAValue], RowVector],
        memory: SSAValue,
        alone: bool = False,
    ) -> None:
        """Fills memory with as many vector accumulators as they have lanes, those of the rows with these numbers.

        Addresses are as they are written where this is `alone` in a function, or has many: in other loops of a kernel
        they are better counted up.
        """
        with code.loop(code.index(self.lanes // self.count), "part", vectorize=False) as chunk:
            numbers = [code.add(code.mul(chunk, self.count), i) for i in range(self.count)]
            found = self._accumulate(code, bounds, near, [far(number) for number in numbers], alone or self.count > 1)
            for number, total in zip(numbers, found, strict=True):
                code.store(total, memory, [number, code.index(0)])

    def _accumulate(
        self, code: Code, bounds: Bounds, near: RowVector, far: Sequence[RowVector], plain: bool
    ) -> list[SSAValue]:
        """A vector accumulator of each row."""
        (head, k), side, lanes = bounds, self.side, self.lanes
        buffer = code.alloc([len(far) * side, lanes], self.dtype, "sums", scope="local")
        accumulators = [[[code.index(i * side + v), code.index(0)] for v in range(side)] for i in range(len(far))]
        for accumulator in (accumulator for row in accumulators for accumulator in row):
            code.store(code.zeros(self.dtype, lanes), buffer, accumulator)

        def add(v: int, r: SSAValue, on: SSAValue | None) -> None:
            own = near(r, on)
            for accumulator, row in zip(accumulators, far, strict=True):
                code.store(code.fma(own, row(r, on), code.load(buffer, accumulator[v], lanes)), buffer, accumulator[v])

        with code.when(code.compare("sgt", head, 0)):
            add(0, code.index(0), head)
        groups, step = code.divide(code.sub(k, head), side * lanes), side * lanes

        def run(lower: SSAValue | None, upper: SSAValue) -> None:
            with code.loop(upper, "group", lower=lower, vectorize=False, plain=plain) as group:
                for v in range(side):
                    add(v, code.add(code.add(head, code.mul(group, step)), v * lanes), None)

        indices = [each for row in accumulators for each in row]
        in_blocks(
            code,
            (None, groups),
            run,
            lambda: VectorTotals(code, self.dtype, buffer, indices, lanes),
            constant(SUM_BLOCK_STEPS),
        )
        done = code.add(head, code.mul(groups, step))
        with code.loop(code.divide(code.add(code.sub(k, done), lanes - 1), lanes), "rest", vectorize=False) as rest:
            r = code.add(done, code.mul(rest, lanes))
            add(0, r, code.sub(k, r))
        return [_total(code, [code.load(buffer, accumulator, lanes) for accumulator in row]) for row in accumulators]

    # As a routine.

    @property
    @override
    def label(self) -> str:
        """How rows are read."""
        return f"lines.{self.dtype}.{self.count}x{self.side * self.lanes}"

    @override
    def sizes(self) -> Sequence[str]:
        return ("head", "k", "near", "first", "last", "each")

    @override
    def buffers(self) -> Mapping[str, BufferType]:
        return {
            **flat(self.dtype, "copies", "matrix"),
            "sums": BufferType([self.lanes, self.lanes], self.dtype, align=64),
        }

    @override
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        """The code of the function: `near` and `first` are where rows begin, up to `last`, `each` elements apart."""

        def row(name: str, begin: SSAValue) -> RowVector:
            def vector(r: SSAValue, on: SSAValue | None) -> SSAValue:
                mask = None if on is None else code.leading(on, self.lanes)
                return code.load(buffer[name], [code.add(begin, r)], self.lanes, mask)

            return vector

        def far(number: SSAValue) -> RowVector:
            begin = code.add(size["first"], code.mul(number, size["each"]))
            return row("matrix", code.minimum(begin, size["last"]))

        self.emit(code, (size["head"], size["k"]), row("copies", size["near"]), far, buffer["sums"], alone=True)


def _total(code: Code, vectors: Sequence[SSAValue]) -> SSAValue:
    """The sum of some vectors, a power of two: neighbours first."""
    while len(vectors) > 1:
        vectors = [code.add_floats(a, b) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
    return vectors[0]


def are_long(gemm: Gemm, rows: Dim) -> SSAValue | None:
    """Whether so many rows along K are long, whole vectors and, if read one by one, in the last-level cache.

    `None` if they are not: where there are batches, which share that cache, it would be much code for little.
    """
    if gemm.contraction.batch:
        return None
    code, room = gemm.code, gemm.kernel.target.l3_bytes // 2 // byte_size(gemm.contraction.element)
    k = code.dim(gemm.k, "k")
    whole = code.compare("eq", code.remainder(k, gemm.tiles.lanes), 0)
    long = code.both(code.compare("sge", k, LONG_DOT_MIN_K), whole)
    if _kind(gemm).count > 1:
        return long
    return code.both(long, code.compare("sle", code.dim(rows * gemm.k), room))


def _kind(gemm: Gemm) -> LongDotRoutine:
    return LongDotRoutine.of(gemm.contraction.element, gemm.tiles.lanes)


@dataclass(frozen=True)
class Copies:
    """Copies of the rows that the matrix is multiplied with; element `r` of one is `r + shift` after its start."""

    buffer: SSAValue
    width: Dim
    shift: SSAValue
    lanes: int

    @staticmethod
    def make(gemm: Gemm, count: int, shift: SSAValue) -> Copies:
        """Memory for some rows, which may begin at any lane of a vector."""
        lanes = gemm.tiles.lanes
        width = lanes * (ceildiv(gemm.k, constant(lanes)) + 1)
        return Copies(gemm.code.alloc([count * width], gemm.contraction.element, "copies"), width, shift, lanes)

    def offset(self, code: Code, number: SSAValue, r: SSAValue | int) -> SSAValue:
        """Where an element of a row is."""
        return code.add(code.add(code.mul(number, code.dim(self.width)), self.shift), r)

    def operand(self, code: Code) -> Matrix:
        """The rows for a tile."""
        return Matrix(self.buffer, self.offset(code, code.index(0), 0), code.dim(self.width), 1, self.lanes)

    def load(self, gemm: Gemm, number: SSAValue, r: SSAValue, on: SSAValue | None) -> SSAValue:
        """A vector of a row, all its lanes or the first ones."""
        mask = None if on is None else gemm.code.leading(on, self.lanes)
        return gemm.code.load(self.buffer, [self.offset(gemm.code, number, r)], self.lanes, mask)


@dataclass(frozen=True)
class LongRows:
    """The rows of an operand along some axes, all of the same alignment, from `coords` on."""

    gemm: Gemm
    factor: Factor
    coords: Coords
    along: tuple[int, ...]
    head: SSAValue
    """How many elements lie before the first element where a vector may begin."""

    @staticmethod
    def make(gemm: Gemm, factor: Factor, coords: Coords, along: tuple[int, ...]) -> LongRows:
        """All rows at given values of the other axes."""
        zero = gemm.code.index(0)
        head = elements_before_alignment(gemm, factor, {**coords, along: zero, gemm.contraction.reduced: zero})
        return LongRows(gemm, factor, coords, along, head)

    @property
    def shift(self) -> SSAValue:
        """The lane at which copies should begin."""
        return self.gemm.code.sub(self.gemm.code.index(self.gemm.tiles.lanes), self.head)

    def accumulate(self, near: tuple[Copies, SSAValue], start: SSAValue, memory: SSAValue) -> None:
        """Fills memory with vector accumulators: of a copied row with as many rows as fit, from `start` on.

        After the last row they are those of that one.
        """
        gemm, code, (copies, number) = self.gemm, self.gemm.code, near
        bounds, kind, reduced = (self.head, code.dim(gemm.k, "k")), _kind(gemm), gemm.contraction.reduced
        last = code.sub(code.dim(gemm.size(self.along)), 1)
        zero = code.index(0)
        matrix = operand(gemm, self.factor, {**self.coords, self.along: zero, reduced: zero}, self.along)
        if isinstance(matrix, Matrix):
            each = matrix.each if isinstance(matrix.each, SSAValue) else code.index(matrix.each)
            first, end = (code.add(matrix.first, code.mul(row, each)) for row in (start, last))
            buffers = [copies.buffer, matrix.buffer]
            layout = [copies.offset(code, number, 0), first, end, each]
            gemm.kernel.routines.call(code, kind, [*bounds, *layout], [*buffers, memory])
            return

        def row(offset: SSAValue, r: SSAValue, on: SSAValue | None) -> SSAValue:
            return gemm.vector(self.factor, {**self.coords, self.along: offset, reduced: r}, reduced, on)

        def far(i: SSAValue) -> RowVector:
            return partial(row, code.minimum(code.add(start, i), last))

        kind.emit(code, bounds, partial(copies.load, gemm, number), far, memory)
