"""Depthwise and grouped convolutions on channel-blocked data: line by line, without packing.

A vector holds channels, and several pixels of a line are computed at once, sharing weights and data. Windows at the
edge skip the elements that are outside, so no padding is needed.
"""

from __future__ import annotations

from contextlib import ExitStack

from xdsl.ir import SSAValue

from lowering.kernels.cpu.conv.lines import Lines
from lowering.kernels.cpu.conv.shape import LATENCY
from lowering.kernels.cpu.conv.sums import load_of
from lowering.kernels.cpu.emit.tasks import shared_units
from lowering.kernels.cpu.emit.transpose import shuffle
from lowering.kernels.cpu.gemm.cost_model import TASK_MACS as PRODUCTS_PER_TASK
from lowering.kernels.cpu.gemm.epilogue import EpilogueEmitter as Finish
from lowering.kernels.cpu.gemm.problem import Coords
from lowering.kernels.cpu.gemm.problem import Gemm as Product
from tir_dialect.dims import Dim, constant, minimum

MOST_PIXELS = 14
USUAL_PIXELS = 8
MOST_UNROLLED = 16
"""Longer rows of a window are not written out."""


class BlockedLines:
    """Emits the code of one contraction, including its batch axes."""

    def __init__(self, product: Product, lines: Lines):
        self.product, self.lines, self.code = product, lines, product.code
        self.lanes = product.tiles.lanes
        self.finish = Finish(product, None, None)
        self.memory = product.kernel.flat[lines.data.memory]
        self.weights = product.what.columns.accesses[0]
        self.weights_memory = product.kernel.flat[load_of(product.what.columns)[0]]
        extents = product.what.stage.extents
        self.length = extents[lines.pixel]
        last, border = lines.reduced[-1:], lines.border(lines.pixel)
        self.inside = (constant(0), self.length)
        if border is not None:
            self.inside = border.inside(extents[border.window], self.length)
        self.window = extents[last[0]].constant_value if last else 1
        self.height = self._height()

    def _height(self) -> int:
        """The pixels of a tile: as many as leave few over, if their number is known."""
        few = self.product.kernel.target.vector_registers < 32
        length, window = self.inside[1].constant_value, self.window
        if window is None or window > MOST_UNROLLED:
            return 1
        if length is None:
            return USUAL_PIXELS // 2 if few else USUAL_PIXELS

        def cost(height: int) -> float:
            tile = max(height * window / 2, LATENCY * window) + 3 * height + 4
            return length // height * tile + length % height * (LATENCY + 4) * window

        return min(range(1, (MOST_PIXELS // 2 if few else MOST_PIXELS) + 1), key=cost)

    def emit(self) -> None:
        """All results: tasks have units, units lines, lines tiles of pixels."""
        code, product, lines = self.code, self.product, self.lines
        units = product.size(lines.units)
        work = product.size((*product.what.batch, *product.what.row, *product.what.column, *product.what.reduced))
        tasks = minimum(units, product.threads(PRODUCTS_PER_TASK, work))
        with shared_units(code, units, tasks) as (lower, upper), code.loop(upper, "unit", lower=lower) as unit:
            coords = {(axis,): at for axis, at in product.at((), lines.units, {lines.units: unit}).items()}
            with code.loop(code.index(lines.lanes.size // self.lanes), "v") as v:
                self._line({**coords, **self._channels(v)})

    def _channels(self, v: SSAValue) -> Coords:
        """Where a vector of a block begins."""
        first, *members = self.lines.lanes.axes
        begin = self.code.mul(v, self.lanes // self.lines.lanes.members)
        return {(first,): begin, **{(axis,): self.code.index(0) for axis in members}}

    def _line(self, coords: Coords) -> None:
        """A vector of channels of all pixels of a line."""
        code, height = self.code, self.height
        first, count = (code.dim(each) for each in self.inside)
        tiles = code.divide(count, height)
        if height > 1:
            with code.loop(tiles, "tile", vectorize=False) as tile:
                self._pixels(coords, code.add(first, code.mul(tile, height)), height)
        done = code.mul(tiles, height) if height > 1 else code.index(0)
        with code.loop(code.sub(code.dim(self.length), done), "pixel", vectorize=False) as number:
            before = code.compare("slt", number, first)
            self._pixels(coords, code.select(before, number, code.add(number, done)), 1)

    def _pixels(self, coords: Coords, pixel: SSAValue, height: int) -> None:
        """Some pixels whose windows are within the data, or a single one."""
        code, lines, dtype = self.code, self.lines, self.product.what.element
        here = {**coords, (lines.pixel,): pixel}
        sums = code.alloc([height, self.lanes], dtype, "sums", scope="local")
        accumulators = [[code.index(p), code.index(0)] for p in range(height)]
        for accumulator in accumulators:
            code.store(code.zeros(dtype, self.lanes), sums, accumulator)
        data = code.linear(lines.data.base, [(at, lines.data.strides[axis]) for (axis,), at in here.items()])
        weights = self.product.offset(self.weights, here)
        for member in range(lines.lanes.members):
            self._member(sums, here, data, self._of_member(weights, member), member, height)
        for p, accumulator in enumerate(accumulators):
            value = code.load(sums, accumulator, self.lanes)
            self.finish.store_lanes(value, {**here, (lines.pixel,): code.add(pixel, p)}, None)

    def _of_member(self, weights: SSAValue, member: int) -> SSAValue:
        """Where the weights for a member of each group are."""
        axis, code = self.lines.lanes.member, self.code
        return weights if axis is None else code.add(weights, code.dim(self.weights.strides[axis] * member))

    def _member(
        self, sums: SSAValue, here: Coords, data: SSAValue, weights: SSAValue, member: int, height: int
    ) -> None:
        """What a member of each group adds to some pixels."""
        windows = self.lines.reduced
        along = windows[-1] if windows and height > 1 else None
        with ExitStack() as loops:
            for axis in windows if along is None else windows[:-1]:
                data, weights = self._loop(loops, axis, here, data, weights)
            self._row(sums, data, weights, along, member, height)

    def _loop(
        self, loops: ExitStack, axis: int, here: Coords, data: SSAValue, weights: SSAValue
    ) -> tuple[SSAValue, SSAValue]:
        """The taps of a window along an axis that are within the data; gives where data and weights are."""
        code, border = self.code, self.lines.border(axis)
        lower, upper = None, code.dim(self.product.what.stage.extents[axis])
        if border is not None:
            lower, upper = border.taps(code, here[border.axis,], upper)
        r = loops.enter_context(code.loop(upper, "r", lower=lower, vectorize=False, plain=True))
        return (
            code.add(data, code.mul(r, code.dim(self.lines.data.strides[axis]))),
            code.add(weights, code.mul(r, code.dim(self.weights.strides[axis]))),
        )

    def _row(
        self, sums: SSAValue, data: SSAValue, weights: SSAValue, along: int | None, member: int, height: int
    ) -> None:
        """The products of a row of the window, or of one tap of it: each vector of data is read once."""
        code, lines = self.code, self.lines
        zero = constant(0)
        step, weight_step = (zero, zero) if along is None else (lines.data.strides[along], self.weights.strides[along])
        count = 1 if along is None else self.window or 1
        columns = [
            code.load(self.weights_memory, [code.add(weights, code.dim(weight_step * number))], self.lanes)
            for number in range(count)
        ]
        readers: dict[Dim, list[tuple[int, int]]] = {}
        for p in range(height):
            for number in range(count):
                readers.setdefault(lines.data.strides[lines.pixel] * p + step * number, []).append((p, number))
        for jump, found in readers.items():
            value = self._members(code.load(self.memory, [code.add(data, code.dim(jump))], self.lanes), member)
            for p, number in found:
                accumulator = [code.index(p), code.index(0)]
                code.store(
                    code.fma(value, columns[number], code.load(sums, accumulator, self.lanes)), sums, accumulator
                )

    def _members(self, value: SSAValue, member: int) -> SSAValue:
        """A vector of data in which all lanes of a group have one of its members."""
        size = self.lines.lanes.members
        if size == 1:
            return value
        return shuffle(self.code, (value, value), [lane // size * size + member for lane in range(self.lanes)])
