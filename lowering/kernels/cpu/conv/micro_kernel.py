"""The micro-kernel of direct convolutions: a register tile of MR pixels and some channel blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.ir import SSAValue

from lowering.kernels.cpu.conv.channel_blocks import ChannelBlocks, ReductionBlock, load_of
from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.gemm.problem import Gemm
from tir_dialect.dims import Dim, constant
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES


@dataclass(frozen=True)
class Access:
    """A one-dimensional buffer, and its strides along the axes of the contraction."""

    memory: SSAValue
    strides: tuple[Dim, ...]
    base: Dim


@dataclass(frozen=True)
class PrefetchedCacheLines:
    """Memory to prefetch: some cache lines of each channel block in each run of the innermost loop."""

    memory: SSAValue
    start: SSAValue
    jump: Dim
    """From a block to the next, in elements."""
    number: SSAValue
    """The index of the run."""
    count: int
    level: int
    """The level of the cache."""


def in_inner_loop(
    code: Code, prefetches: Sequence[PrefetchedCacheLines], r: SSAValue, count: SSAValue
) -> Sequence[PrefetchedCacheLines]:
    """The same prefetches inside of one more loop."""
    return [replace(each, number=code.add(code.mul(each.number, count), r)) for each in prefetches]


@dataclass(frozen=True)
class TileMemory:
    """The memory of the accumulators of a tile: rows of a buffer."""

    buffer: SSAValue
    row: SSAValue
    """The first row."""


Accumulators = Sequence[Sequence[Sequence[SSAValue]]]
"""The indices of the vector accumulators, by pixel and vector."""


class MicroKernel:
    """Generates a register tile: MR pixels of `blocks` channel blocks."""

    def __init__(self, gemm: Gemm, blocks: ChannelBlocks, count: int):
        self.gemm, self.blocks = gemm, blocks
        self.code = gemm.code
        self.lanes = gemm.tiles.lanes
        self.count = count
        self.data, self.weights = (
            Access(gemm.kernel.flat[buffer], access.strides, access.base)
            for buffer, access in map(load_of, (gemm.contraction.rows, gemm.contraction.columns))
        )

    @property
    def width(self) -> int:
        """Vectors of a row of the tile."""
        return self.count * self.blocks.vectors

    @cached_property
    def extents(self) -> tuple[Dim, ...]:
        """The trip counts of the loops of the reduction."""
        extents = self.gemm.contraction.stage.extents
        return tuple(product_of(extents[axis] for axis in axes) for axes in self.blocks.reduced)

    def emit(
        self,
        mr: int,
        data: SSAValue,
        weights: SSAValue,
        memory: TileMemory,
        reduction_block: ReductionBlock | None,
        prefetches: Sequence[PrefetchedCacheLines],
        bounds: Mapping[int, tuple[SSAValue, SSAValue]],
    ) -> None:
        """Accumulates into `memory`; `data` and `weights` are the addresses of the first pixel and block.

        `bounds` has the range of a loop, by its number, where taps have data.

        The accumulators are in a buffer that LLVM keeps in registers, since every access to it has constant indices.
        One step of the reduction takes longer than the overhead of its loop, so that the loop is not unrolled.
        """
        code = self.code
        partial = code.alloc([mr, self.width * self.lanes], self.gemm.contraction.element, "sums", scope="local")
        accumulators = [[[code.index(p), code.index(v * self.lanes)] for v in range(self.width)] for p in range(mr)]
        zeros = code.zeros(self.gemm.contraction.element, self.lanes)
        for _, _, accumulator in self._all(accumulators):
            code.store(zeros, partial, accumulator)
        with ExitStack() as loops:
            for number, axes in enumerate(self.blocks.reduced):
                if number == len(self.blocks.reduced) - 1:
                    self._prefetch_data(mr, data, None if reduction_block is None else reduction_block.most)
                    self._prefetch(prefetches)
                steps = (self.data.strides[axes[-1]], self.weights.strides[axes[-1]])
                if reduction_block is not None and number == 0:
                    data, weights = self._advanced(data, weights, reduction_block.start, steps)
                count = code.dim(self.extents[number]) if reduction_block is None or number else reduction_block.steps
                lower, upper = bounds.get(number, (None, count))
                r = loops.enter_context(code.loop(upper, "r", lower=lower, vectorize=False, plain=True))
                data, weights = self._advanced(data, weights, r, steps)
                prefetches = in_inner_loop(code, prefetches, r, count)
            self._step(partial, accumulators, data, weights)
        self._end(partial, accumulators, memory, reduction_block)

    def _end(
        self, partial: SSAValue, accumulators: Accumulators, memory: TileMemory, reduction_block: ReductionBlock | None
    ) -> None:
        """Stores the accumulators, or adds them to those of earlier blocks of the reduction."""
        code = self.code

        def put(adds: bool) -> None:
            for p, v, accumulator in self._all(accumulators):
                value, slot = code.load(partial, accumulator, self.lanes), self._slot(memory, p, v)
                if adds:
                    value = code.add_floats(code.load(memory.buffer, slot, self.lanes), value)
                code.store(value, memory.buffer, slot)

        if reduction_block is None:
            put(adds=False)
            return
        with code.when(reduction_block.is_first) as branch:
            put(adds=False)
        with code.otherwise(branch):
            put(adds=True)

    def _slot(self, memory: TileMemory, p: int, v: int) -> list[SSAValue]:
        return [self.code.add(memory.row, p), self.code.index(v * self.lanes)]

    def _all(self, accumulators: Accumulators) -> Iterator[tuple[int, int, Sequence[SSAValue]]]:
        return ((p, v, accumulator) for p, row in enumerate(accumulators) for v, accumulator in enumerate(row))

    def _advanced(
        self, data: SSAValue, weights: SSAValue, count: SSAValue, steps: tuple[Dim, Dim]
    ) -> tuple[SSAValue, SSAValue]:
        code = self.code
        moves = [code.mul(count, code.dim(step)) for step in steps]
        return code.add(data, moves[0]), code.add(weights, moves[1])

    def runs(self, most: int | None) -> int | None:
        """How often the innermost loop of the reduction runs for a tile, in a reduction block of `most` steps if there
        are some.
        """
        outer = self.extents[:1] if most is None else (constant(most),)
        return product_of((*outer, *self.extents[1:-1])).constant_value if len(self.extents) > 1 else 1

    def _prefetch_data(self, mr: int, data: SSAValue, most: int | None) -> None:
        """Prefetches what the next tile loads, if L1 holds that too.

        With strided windows rows of the image are short, and half of each cache line is not needed.
        """
        code, target = self.code, self.gemm.kernel.target
        step, runs = self.data.strides[self.blocks.pixels[-1]].constant_value, self.runs(most)
        if step is None or runs is None or step > self._run_of_data:
            return
        elements = LINE_BYTES // byte_size(self.gemm.contraction.element)
        cache_lines = -(-mr * step // elements)
        if cache_lines * runs * LINE_BYTES <= target.l1_bytes // 3:
            for number in range(cache_lines):
                code.prefetch(self.data.memory, [code.add(data, mr * step + number * elements)], 1)

    @property
    def _run_of_data(self) -> int:
        """How many elements of the data that are reduced are contiguous."""
        extents, strides = self.gemm.contraction.stage.extents, self.data.strides
        along = [
            extents[axis].constant_value for axis in self.gemm.contraction.reduced if strides[axis].constant_value == 1
        ]
        return max((extent or 1 for extent in along), default=1)

    def _prefetch(self, prefetches: Sequence[PrefetchedCacheLines]) -> None:
        """Prefetches the next cache lines."""
        code, elements = self.code, LINE_BYTES // byte_size(self.gemm.contraction.element)
        for each in prefetches:
            start = code.add(each.start, code.mul(each.number, each.count * elements))
            for block in range(self.count):
                first = code.add(start, code.dim(each.jump * block))
                for number in range(each.count):
                    code.prefetch(each.memory, [code.add(first, number * elements)], each.level)

    @property
    def jump(self) -> Dim:
        """From the weights of a block to those of the next."""
        (outer,) = self.gemm.contraction.outer or (None,)
        return constant(0) if outer is None else self.weights.strides[outer]

    def _step(self, partial: SSAValue, accumulators: Accumulators, data: SSAValue, weights: SSAValue) -> None:
        """One multiply-add for each accumulator."""
        code, blocks = self.code, self.blocks
        columns = [
            code.load(self.weights.memory, [code.add(weights, code.dim(self.jump * q + v * self.lanes))], self.lanes)
            for q in range(self.count)
            for v in range(blocks.vectors)
        ]
        along = self.data.strides[blocks.pixels[-1]]
        for p, row in enumerate(accumulators):
            element = code.load(self.data.memory, [code.add(data, code.dim(along * p))])
            factor = code.splat(element, self.lanes)
            for accumulator, column in zip(row, columns, strict=True):
                code.store(code.fma(factor, column, code.load(partial, accumulator, self.lanes)), partial, accumulator)
