"""The micro-kernel of blocked products: a register tile of some pixels and channel blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.ir import SSAValue

from lowering.kernels.cpu.conv.reduction_parts import ReductionPart
from lowering.kernels.cpu.conv.sums import Blocks, load_of
from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.gemm.problem import Gemm as Product
from tir_dialect.dims import Dim, constant
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES


@dataclass(frozen=True)
class Access:
    """A one-dimensional buffer, and its strides along the axes of the product."""

    memory: SSAValue
    strides: tuple[Dim, ...]
    base: Dim


@dataclass(frozen=True)
class PrefetchedLines:
    """Memory to prefetch: some lines of each block in each run of the innermost loop."""

    memory: SSAValue
    start: SSAValue
    jump: Dim
    """From a block to the next."""
    number: SSAValue
    """Of the run."""
    lines: int
    level: int
    """Of the cache."""


def inside(code: Code, ahead: Sequence[PrefetchedLines], r: SSAValue, count: SSAValue) -> Sequence[PrefetchedLines]:
    """The same memory, inside of one more loop."""
    return [replace(each, number=code.add(code.mul(each.number, count), r)) for each in ahead]


@dataclass(frozen=True)
class TileMemory:
    """The memory of the accumulators of a tile: rows of a buffer."""

    buffer: SSAValue
    row: SSAValue
    """The first."""


Accumulators = Sequence[Sequence[Sequence[SSAValue]]]
"""The indices of the vectors of sums, by pixel and vector."""


class Tile:
    """Emits the accumulators of a tile: `height` pixels of `blocks` blocks."""

    def __init__(self, product: Product, blocks: Blocks, count: int):
        self.product, self.blocks = product, blocks
        self.code = product.code
        self.lanes = product.tiles.lanes
        self.count = count
        self.data, self.weights = (
            Access(product.kernel.flat[buffer], access.strides, access.base)
            for buffer, access in map(load_of, (product.what.rows, product.what.columns))
        )

    @property
    def width(self) -> int:
        """The vectors of a row."""
        return self.count * self.blocks.vectors

    @cached_property
    def extents(self) -> tuple[Dim, ...]:
        """How many steps each loop of the sums has."""
        extents = self.product.what.stage.extents
        return tuple(product_of(extents[axis] for axis in axes) for axes in self.blocks.reduced)

    def emit(
        self,
        height: int,
        data: SSAValue,
        weights: SSAValue,
        memory: TileMemory,
        reduction_part: ReductionPart | None,
        ahead: Sequence[PrefetchedLines],
        bounds: Mapping[int, tuple[SSAValue, SSAValue]],
    ) -> None:
        """Sums into `memory`; `data` and `weights` are where those of the first pixel and block begin.

        `bounds` are the first step of a loop, by its number, and the one after the last, where steps add nothing.

        They are made in a buffer that LLVM keeps in registers: every access to it has constant indices. One step of the
        sums keeps the multipliers busy for longer than its loop takes, so that nothing is written out more than once.
        """
        code = self.code
        sums = code.alloc([height, self.width * self.lanes], self.product.what.element, "sums", scope="local")
        accumulators = [[[code.index(p), code.index(v * self.lanes)] for v in range(self.width)] for p in range(height)]
        zeros = code.zeros(self.product.what.element, self.lanes)
        for _, _, accumulator in self._all(accumulators):
            code.store(zeros, sums, accumulator)
        with ExitStack() as loops:
            for number, axes in enumerate(self.blocks.reduced):
                if number == len(self.blocks.reduced) - 1:
                    self._prefetch_data(height, data, None if reduction_part is None else reduction_part.most)
                    self._prefetch(ahead)
                steps = (self.data.strides[axes[-1]], self.weights.strides[axes[-1]])
                if reduction_part is not None and number == 0:
                    data, weights = self._further(data, weights, reduction_part.start, steps)
                count = code.dim(self.extents[number]) if reduction_part is None or number else reduction_part.steps
                lower, upper = bounds.get(number, (None, count))
                r = loops.enter_context(code.loop(upper, "r", lower=lower, vectorize=False, plain=True))
                data, weights = self._further(data, weights, r, steps)
                ahead = inside(code, ahead, r, count)
            self._step(sums, accumulators, data, weights)
        self._end(sums, accumulators, memory, reduction_part)

    def _end(
        self, sums: SSAValue, accumulators: Accumulators, memory: TileMemory, reduction_part: ReductionPart | None
    ) -> None:
        """Puts sums into memory, or adds them to what earlier parts of the reduction left, each a sum by itself."""
        code = self.code

        def put(adds: bool) -> None:
            for p, v, accumulator in self._all(accumulators):
                value, kept = code.load(sums, accumulator, self.lanes), self._kept(memory, p, v)
                if adds:
                    value = code.add_floats(code.load(memory.buffer, kept, self.lanes), value)
                code.store(value, memory.buffer, kept)

        if reduction_part is None:
            put(adds=False)
            return
        with code.when(reduction_part.is_first) as branch:
            put(adds=False)
        with code.otherwise(branch):
            put(adds=True)

    def _kept(self, memory: TileMemory, p: int, v: int) -> list[SSAValue]:
        return [self.code.add(memory.row, p), self.code.index(v * self.lanes)]

    def _all(self, accumulators: Accumulators) -> Iterator[tuple[int, int, Sequence[SSAValue]]]:
        return ((p, v, accumulator) for p, line in enumerate(accumulators) for v, accumulator in enumerate(line))

    def _further(
        self, data: SSAValue, weights: SSAValue, count: SSAValue, steps: tuple[Dim, Dim]
    ) -> tuple[SSAValue, SSAValue]:
        code = self.code
        moves = [code.mul(count, code.dim(step)) for step in steps]
        return code.add(data, moves[0]), code.add(weights, moves[1])

    def runs(self, most: int | None) -> int | None:
        """How often the last loop of the sums runs for a tile, in a part of so many steps if the reduction is split."""
        outer = self.extents[:1] if most is None else (constant(most),)
        return product_of((*outer, *self.extents[1:-1])).constant_value if len(self.extents) > 1 else 1

    def _prefetch_data(self, height: int, data: SSAValue, most: int | None) -> None:
        """Asks for what the next tile reads where this one reads, if the first-level cache holds that too.

        Where windows skip pixels, lines of the picture are short, and half of each line of the cache is not needed.
        """
        code, target = self.code, self.product.kernel.target
        step, runs = self.data.strides[self.blocks.pixels[-1]].constant_value, self.runs(most)
        if step is None or runs is None or step > self._run_of_data:
            return
        line = LINE_BYTES // byte_size(self.product.what.element)
        lines = -(-height * step // line)
        if lines * runs * LINE_BYTES <= target.l1_bytes // 3:
            for number in range(lines):
                code.prefetch(self.data.memory, [code.add(data, height * step + number * line)], 1)

    @property
    def _run_of_data(self) -> int:
        """How many elements of the data that are summed lie side by side."""
        extents, strides = self.product.what.stage.extents, self.data.strides
        along = [
            extents[axis].constant_value for axis in self.product.what.reduced if strides[axis].constant_value == 1
        ]
        return max((extent or 1 for extent in along), default=1)

    def _prefetch(self, ahead: Sequence[PrefetchedLines]) -> None:
        """Asks for the next lines of what is needed later."""
        code, line = self.code, LINE_BYTES // byte_size(self.product.what.element)
        for each in ahead:
            start = code.add(each.start, code.mul(each.number, each.lines * line))
            for block in range(self.count):
                first = code.add(start, code.dim(each.jump * block))
                for number in range(each.lines):
                    code.prefetch(each.memory, [code.add(first, number * line)], each.level)

    @property
    def jump(self) -> Dim:
        """From the weights of a block to those of the next."""
        (outer,) = self.product.what.outer or (None,)
        return constant(0) if outer is None else self.weights.strides[outer]

    def _step(self, sums: SSAValue, accumulators: Accumulators, data: SSAValue, weights: SSAValue) -> None:
        """One product for each sum."""
        code, blocks = self.code, self.blocks
        columns = [
            code.load(self.weights.memory, [code.add(weights, code.dim(self.jump * q + v * self.lanes))], self.lanes)
            for q in range(self.count)
            for v in range(blocks.vectors)
        ]
        along = self.data.strides[blocks.pixels[-1]]
        for p, line in enumerate(accumulators):
            element = code.load(self.data.memory, [code.add(data, code.dim(along * p))])
            factor = code.splat(element, self.lanes)
            for accumulator, column in zip(line, columns, strict=True):
                code.store(code.fma(factor, column, code.load(sums, accumulator, self.lanes)), sums, accumulator)
