"""The micro-kernel of direct convolutions, and the windows that it reads over zero-padded data.

The stage that pads the data of a convolution with zeros is elided. The reduction runs over the taps that exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, reduce

from typing_extensions import override
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.kernels.conv.channel_blocks import ChannelBlocks, ReductionBlock, load_of
from lowering.kernels.cost_model import CONV_CALLED_LOOPS, CONV_CALLED_MACS, CONV_CALLED_MACS_OF_512_BITS
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import NO_ROUTINES, Routine, flat
from lowering.kernels.gemm.problem import Gemm
from lowering.kernels.structure.padding import Padding
from lowering.kernels.structure.stages import Index
from tir_dialect.dims import Dim, ceildiv, constant, maximum, minimum
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import LoadOp
from tir_dialect.target import LINE_BYTES
from tir_dialect.types import BufferType, row_major_strides


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
    """How many tiles, which have as many runs, came before."""
    count: int
    level: int
    """The level of the cache."""


@dataclass(frozen=True)
class TileMemory:
    """The memory of the accumulators of a tile, in a flat buffer."""

    buffer: SSAValue
    first: SSAValue
    """The first element."""
    row: int
    """From a pixel to the next, in elements."""


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

        `bounds` has the range of a loop, by its number, where taps have data. The code is a function, which other
        kernels call too, except where tiles are so short that calls would take a part of the time.
        """
        code, most = self.code, None if reduction_block is None else reduction_block.most
        counts, along = list(map(code.dim, self.extents)), self.data.strides[self.blocks.pixels[-1]]
        sizes = {"jump": code.dim(self.jump), "tile": memory.first, "along": code.dim(along)}
        for number, axes in enumerate(self.blocks.reduced):
            steps = [code.dim(access.strides[axes[-1]]) for access in (self.data, self.weights)]
            if reduction_block is not None and number == 0:
                counts[0], sizes["later"] = reduction_block.steps, reduction_block.number
                moves = (code.mul(reduction_block.start, step) for step in steps)
                data, weights = map(code.add, (data, weights), moves)
            if number in bounds:
                sizes |= zip((f"lower{number}", f"upper{number}"), bounds[number], strict=True)
            sizes |= zip(
                (f"{name}{number}" for name in ("count", "data", "weights")), (counts[number], *steps), strict=True
            )
        sizes |= {"data": data, "weights": weights}
        is_called = self._is_called(mr, most)
        if is_called:
            prefetches = [replace(each, count=self._usual(each)) for each in prefetches]
        for number, each in enumerate(prefetches):
            runs = reduce(code.mul, counts[:-1], each.number)
            start = code.add(each.start, code.mul(runs, each.count * self._line))
            sizes |= {f"start{number}": start, f"jump{number}": code.dim(each.jump)}
        innermost = ("along", *(f"{name}{len(counts) - 1}" for name in ("count", "data", "weights")))
        kind = ConvolutionTile(
            self.gemm.contraction.element,
            (mr, self.count, self.blocks.vectors, self.lanes),
            memory.row,
            tuple(number in bounds for number in range(len(counts))),
            reduction_block is not None,
            tuple((name, known) for name in innermost if (known := code.known(sizes[name])) is not None),
            self._prefetched_data(mr, most),
            tuple((each.memory is self.weights.memory, each.count, each.level) for each in prefetches),
        )
        others = [each.memory for each in prefetches if each.memory is not self.weights.memory]
        routines = self.gemm.kernel.routines if is_called else NO_ROUTINES
        buffers = [self.data.memory, self.weights.memory, memory.buffer, *others]
        routines.call(code, kind, [sizes[name] for name in kind.sizes()], buffers)

    @property
    def _line(self) -> int:
        """Elements of a cache line."""
        return LINE_BYTES // byte_size(self.gemm.contraction.element)

    def runs(self, most: int | None) -> int | None:
        """How often the innermost loop of the reduction runs for a tile, in a reduction block of `most` steps if there
        are some.
        """
        outer = self.extents[:1] if most is None else (constant(most),)
        return product_of((*outer, *self.extents[1:-1])).constant_value if len(self.extents) > 1 else 1

    def _is_called(self, mr: int, most: int | None) -> bool:
        """Whether a function takes no longer than code of its own."""
        runs, steps = self.runs(most), self.extents[-1].constant_value
        if len(self.extents) not in CONV_CALLED_LOOPS or runs is None or steps is None:
            return False
        is_wide = self.gemm.kernel.target.vector_bits >= 512
        return runs * steps * mr * self.width >= (
            min(CONV_CALLED_MACS, CONV_CALLED_MACS_OF_512_BITS) if is_wide else CONV_CALLED_MACS
        )

    def _usual(self, prefetch: PrefetchedCacheLines) -> int:
        """At least as many cache lines, of few different numbers, so that tiles share functions."""
        least = 2 if prefetch.memory is self.weights.memory else 1
        return max(least, 1 << (prefetch.count - 1).bit_length())

    def _prefetched_data(self, mr: int, most: int | None) -> int:
        """How many cache lines to prefetch of what the next tile loads: all if L1 holds that too.

        With strided windows rows of the image are short, and half of each cache line is not needed.
        """
        step, runs = self.data.strides[self.blocks.pixels[-1]].constant_value, self.runs(most)
        if step is None or runs is None or step > self._run_of_data:
            return 0
        cache_lines = -(-mr * step // self._line)
        return cache_lines if cache_lines * runs * LINE_BYTES <= self.gemm.kernel.target.l1_bytes // 3 else 0

    @property
    def _run_of_data(self) -> int:
        """How many elements of the data that are reduced are contiguous."""
        extents, strides = self.gemm.contraction.stage.extents, self.data.strides
        along = [
            extents[axis].constant_value for axis in self.gemm.contraction.reduced if strides[axis].constant_value == 1
        ]
        return max((extent or 1 for extent in along), default=1)

    @property
    def jump(self) -> Dim:
        """From the weights of a block to those of the next."""
        (outer,) = self.gemm.contraction.outer or (None,)
        return constant(0) if outer is None else self.weights.strides[outer]


@dataclass(frozen=True)
class ConvolutionTile(Routine):
    """The kind of a register tile, whose code all tiles of this kind share.

    The accumulators are in a buffer that LLVM keeps in registers, since every access to it has constant indices. One
    step of the reduction takes longer than the overhead of its loop, so that the loop is not unrolled.
    """

    dtype: AnyFloat
    shape: tuple[int, int, int, int]
    """Pixels, channel blocks, the vectors of each, and their lanes."""
    row: int
    """From the accumulators of a pixel to those of the next in memory."""
    bounded: tuple[bool, ...]
    """For each loop of the reduction, whether it has a range."""
    adds: bool
    """Whether the accumulators may be added to those of earlier blocks of the reduction."""
    known: tuple[tuple[str, int], ...]
    """Sizes that are the same for all tiles of the kind."""
    data_lines: int
    """Cache lines that are prefetched of what the next tile loads in a run of the innermost loop."""
    prefetches: tuple[tuple[bool, int, int], ...]
    """For each prefetch whether it is one of weights, how many cache lines, and the level."""

    @property
    @override
    def label(self) -> str:
        pixels, blocks, vectors, lanes = self.shape
        return f"convolution.{self.dtype}.{pixels}x{blocks * vectors * lanes}"

    @override
    def sizes(self) -> Sequence[str]:
        sizes = ["data", "weights", "tile", *["later"] * self.adds, "along", "jump"]
        for number, bounded in enumerate(self.bounded):
            sizes += [f"{name}{number}" for name in (*("lower", "upper") * bounded, "count", "data", "weights")]
        for number, (is_of_weights, _, _) in enumerate(self.prefetches):
            sizes += [f"start{number}", *[f"jump{number}"] * (not is_of_weights)]
        known = dict(self.known)
        return [name for name in sizes if name not in known]

    @override
    def buffers(self) -> Mapping[str, BufferType]:
        others = (f"into{number}" for number, each in enumerate(self.prefetches) if not each[0])
        return flat(self.dtype, "rows", "columns", "sums", *others)

    @override
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        pixels, blocks, vectors, lanes = self.shape
        size = {**size, **{name: code.index(value) for name, value in self.known}}
        partial = code.alloc([pixels, blocks * vectors * lanes], self.dtype, "sums", scope="local")
        zeros = code.zeros(self.dtype, lanes)
        for accumulator in self._accumulators(code):
            code.store(zeros, partial, accumulator)
        data, weights, run = size["data"], size["weights"], code.index(0)
        with ExitStack() as loops:
            for number, bounded in enumerate(self.bounded):
                if number == len(self.bounded) - 1:
                    self._prefetch(code, size, buffer, data, run)
                count = size[f"count{number}"]
                lower, upper = (size[f"lower{number}"], size[f"upper{number}"]) if bounded else (None, count)
                r = loops.enter_context(code.loop(upper, "r", lower=lower, vectorize=False, plain=True))
                data = code.add(data, code.mul(r, size[f"data{number}"]))
                weights = code.add(weights, code.mul(r, size[f"weights{number}"]))
                run = code.add(code.mul(run, count), r)
            self._step(code, size, (buffer["rows"], data), (buffer["columns"], weights), partial)
        self._end(code, size, partial, buffer["sums"])

    def _accumulators(self, code: Code) -> Iterator[list[SSAValue]]:
        """The indices of the accumulators, pixel by pixel."""
        pixels, blocks, vectors, lanes = self.shape
        return ([code.index(p), code.index(v * lanes)] for p in range(pixels) for v in range(blocks * vectors))

    def _prefetch(
        self,
        code: Code,
        size: Mapping[str, SSAValue],
        buffer: Mapping[str, SSAValue],
        data: SSAValue,
        run: SSAValue,
    ) -> None:
        """Prefetches the next cache lines; `run` is how often the innermost loop has run."""
        line = LINE_BYTES // byte_size(self.dtype)
        for number in range(self.data_lines):
            next_tile = code.mul(size["along"], self.shape[0])
            code.prefetch(buffer["rows"], [code.add(data, code.add(next_tile, number * line))], 1)
        for number, (is_of_weights, count, level) in enumerate(self.prefetches):
            start = code.add(size[f"start{number}"], code.mul(run, count * line))
            jump, memory = ("jump", "columns") if is_of_weights else (f"jump{number}", f"into{number}")
            for block in range(self.shape[1]):
                first = code.add(start, code.mul(size[jump], block))
                for at in range(count):
                    code.prefetch(buffer[memory], [code.add(first, at * line)], level)

    def _step(
        self,
        code: Code,
        size: Mapping[str, SSAValue],
        data: tuple[SSAValue, SSAValue],
        weights: tuple[SSAValue, SSAValue],
        partial: SSAValue,
    ) -> None:
        """One multiply-add for each accumulator, of the data and weights in a buffer from an element on."""
        pixels, blocks, vectors, lanes = self.shape
        columns = [
            code.load(weights[0], [code.add(weights[1], code.add(code.mul(size["jump"], q), v * lanes))], lanes)
            for q in range(blocks)
            for v in range(vectors)
        ]
        accumulators = self._accumulators(code)
        for p in range(pixels):
            element = code.load(data[0], [code.add(data[1], code.mul(size["along"], p))])
            factor = code.splat(element, lanes)
            for column in columns:
                accumulator = next(accumulators)
                code.store(code.fma(factor, column, code.load(partial, accumulator, lanes)), partial, accumulator)

    def _end(self, code: Code, size: Mapping[str, SSAValue], partial: SSAValue, sums: SSAValue) -> None:
        """Stores the accumulators, or adds them to those of earlier blocks of the reduction."""
        _, blocks, vectors, lanes = self.shape

        def put(adds: bool) -> None:
            for number, accumulator in enumerate(self._accumulators(code)):
                p, v = divmod(number, vectors * blocks)
                value, slot = code.load(partial, accumulator, lanes), [code.add(size["tile"], p * self.row + v * lanes)]
                if adds:
                    value = code.add_floats(code.load(sums, slot, lanes), value)
                code.store(value, sums, slot)

        if not self.adds:
            put(adds=False)
            return
        with code.when(code.compare("eq", size["later"], 0)) as branch:
            put(adds=False)
        with code.otherwise(branch):
            put(adds=True)


@dataclass(frozen=True)
class PaddedAxis:
    """A zero-padded dimension of the data, read at `stride * axis + dilation * tap - low`."""

    axis: int
    """The axis of the output."""
    stride: int
    window: int
    """The reduced axis of the taps."""
    dilation: int
    low: int
    """Zeros before the data."""
    length: Dim
    """Elements of the data without padding."""

    def taps(self, code: Code, at: SSAValue, count: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The range of taps, of `count`, that are in bounds for the window at output `at`."""
        done = code.mul(at, self.stride)
        bounds: list[SSAValue] = []
        for edge in (code.index(self.low), code.add(code.dim(self.length), self.low)):
            left = code.maximum(code.add(code.sub(edge, done), self.dilation - 1), 0)
            bounds.append(code.minimum(count, left if self.dilation == 1 else code.divide(left, self.dilation)))
        return bounds[0], bounds[1]

    def tiles(self, count: int, extent: Dim, number: Dim) -> Dim:
        """How many pairs of a tile and a tap have data, if `extent` outputs are divided into `number` tiles.

        A tap whose window is in the padding for all outputs of a tile is skipped by that tile.
        """
        found, length = constant(0), maximum(extent, constant(1))
        for tap in range(count):
            shift = self.low - self.dilation * tap
            first = max(-(-shift // self.stride), 0)
            last = minimum(extent, ceildiv(self.length + shift, constant(self.stride)))
            used = ceildiv(last * number, length) - ceildiv(number * (first + 1), length) + 1
            found = found + maximum(used, constant(0))
        return found

    def interior(self, count: Dim, extent: Dim) -> tuple[Dim, Dim]:
        """The first of `extent` outputs whose window of `count` taps is in bounds, and the number of such outputs."""
        first = minimum(extent, constant(-(-self.low // self.stride)))
        room = maximum(self.length + self.low - (count - 1) * self.dilation, constant(0))
        last = minimum(extent, ceildiv(room, constant(self.stride)))
        return first, maximum(last - first, constant(0))


@dataclass(frozen=True)
class PaddedData:
    """The data of a convolution without its padding."""

    memory: SSAValue
    base: Dim
    strides: tuple[Dim, ...]
    """By axis of the contraction."""
    padded_axes: tuple[PaddedAxis, ...]


def find_padded_data(gemm: Gemm, load: LoadOp, padding: Padding | None) -> PaddedData | None:
    """Where a convolution reads its data; `None` if an index is not `stride * output + dilation * tap`."""
    contraction = gemm.contraction
    if padding is None:
        access = contraction.rows.accesses[0]
        return PaddedData(load.buffer, access.base, access.strides, ())
    indices, padded_axes = contraction.stage.accesses[load], list[PaddedAxis]()
    for number, index in enumerate(indices):
        padded_axis = _padded_axis(gemm, padding, number, index) if padding.is_padded(number) else None
        if index.value is not None or (padded_axis is None and padding.is_padded(number)):
            return None
        padded_axes += [] if padded_axis is None else [padded_axis]
    steps = row_major_strides(padding.data)
    base, strides = constant(0), [constant(0)] * len(contraction.stage.axes)
    for index, low, step in zip(indices, padding.low, steps, strict=True):
        base = base + (index.base - low) * step
        strides = [old + new * step for old, new in zip(strides, index.strides, strict=True)]
    return PaddedData(padding.load.buffer, base, tuple(strides), tuple(padded_axes))


def find_padded_axes(gemm: Gemm, load: LoadOp, padding: Padding) -> list[PaddedAxis]:
    """The padded axes of the data; axes whose index is not `stride * output + dilation * tap` are left out."""
    indices = enumerate(gemm.contraction.stage.accesses[load])
    found = (_padded_axis(gemm, padding, number, index) for number, index in indices if padding.is_padded(number))
    return [padded_axis for padded_axis in found if padded_axis is not None]


def _padded_axis(gemm: Gemm, padding: Padding, number: int, index: Index) -> PaddedAxis | None:
    moved = [axis for axis, stride in enumerate(index.strides) if stride.terms]
    results = [axis for axis in moved if axis in gemm.contraction.row]
    windows = [axis for axis in moved if axis in gemm.contraction.reduced]
    steps = [index.strides[axis].constant_value or 0 for axis in (*results, *windows)]
    if len(results) != 1 or len(windows) != 1 or len(moved) != 2 or min(steps) < 1 or index.base.terms:
        return None
    return PaddedAxis(results[0], steps[0], windows[0], steps[1], padding.low[number], padding.data[number])
