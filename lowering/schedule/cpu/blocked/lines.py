"""Filters for each channel on channels in blocks, such as depthwise convolutions: line by line, without packing.

A vector holds channels, and several pixels of a line are summed at once, which share weights and data. Windows at the
edge of the data leave out what is not there, so that no border is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeVar

from xdsl.ir import SSAValue

from lowering.schedule.cpu.blocked.bordered_windows import Border, Windowed, find_windowed
from lowering.schedule.cpu.blocked.shape import LATENCY
from lowering.schedule.cpu.blocked.sums import load_of
from lowering.schedule.cpu.emit.kernel import Kernel
from lowering.schedule.cpu.emit.tasks import shared_units
from lowering.schedule.cpu.products.finish import Finish
from lowering.schedule.cpu.products.line import PRODUCTS_PER_TASK
from lowering.schedule.cpu.products.product import Product, Spot
from lowering.schedule.cpu.structure.contraction import Factor
from lowering.schedule.cpu.structure.padding import Padding, find_padding
from lowering.schedule.cpu.structure.stages import Stage
from tir_dialect.dims import constant, minimum
from tir_dialect.ops.memory import LoadOp

MOST_PIXELS = 14
USUAL_PIXELS = 8
MOST_UNROLLED = 16
"""Longer rows of a window are not written out."""


Item = TypeVar("Item")


@dataclass(frozen=True)
class Lines:
    """The axes of a product of channels by themselves."""

    lane: int
    pixel: int
    units: tuple[int, ...]
    """The other axes of the results."""
    reduced: tuple[int, ...]
    """That along which windows move with the pixels last."""
    data: Windowed

    def border(self, axis: int) -> Border | None:
        """The border of the data along an axis of the results or of the windows."""
        return next((each for each in self.data.borders if axis in (each.axis, each.window)), None)


def find_lines(product: Product, padding: Padding | None) -> Lines | None:
    """The lines of a product whose data is padded so; `None` if it is no such product."""
    what, load = product.what, product.what.rows.value.owner
    if what.column or what.outer or not what.along or what.is_integer or not isinstance(load, LoadOp):
        return None
    lane, lanes = what.along[-1], product.tiles.lanes
    size = what.stage.extents[lane].constant_value
    if lanes == 1 or not size or size % lanes or not all(_is_vector(each, lane) for each in (what.rows, what.columns)):
        return None
    pixel = next((axis for axis in what.row if what.output.strides[axis].constant_value == size), None)
    data = find_windowed(product, load, padding)
    if pixel is None or data is None:
        return None
    reduced = sorted(what.reduced, key=lambda axis: -(data.strides[axis].constant_value or 1 << 62))
    reduced.sort(key=lambda axis: any((each.axis, each.window) == (pixel, axis) for each in data.borders))
    units = tuple(axis for axis in sorted((*what.batch, *what.row)) if axis not in (lane, pixel))
    return Lines(lane, pixel, units, tuple(reduced), data)


def _is_vector(factor: Factor, lane: int) -> bool:
    plain = isinstance(factor.value.owner, LoadOp) and factor.value.type == factor.element
    return plain and factor.is_linear and factor.stride(lane) == 1


def lines_of(product: Product) -> Lines | None:
    """The lines of a product whose code is being written."""
    load = product.what.rows.value.owner
    return find_lines(product, product.kernel.borders.get(load.buffer) if isinstance(load, LoadOp) else None)


def leave_out_borders(kernel: Kernel, plan: Sequence[Item]) -> list[Item]:
    """The plan without the stages that put zeros around data for one product that can do without."""
    stages = {store.buffer: each for each in plan if isinstance(each, Stage) for store in each.stores}
    left_out: list[Stage] = []
    for product in plan:
        load = product.what.rows.value.owner if isinstance(product, Product) else None
        if not isinstance(product, Product) or not isinstance(load, LoadOp) or load.buffer not in stages:
            continue
        padding = find_padding(stages[load.buffer])
        alone = sum(isinstance(use.operation, LoadOp) for use in load.buffer.uses) == 1
        if padding is not None and padding.is_zero and alone and find_lines(product, padding) is not None:
            kernel.borders[load.buffer] = padding
            left_out.append(stages[load.buffer])
    return [item for item in plan if not any(item is stage for stage in left_out)]


class BlockedLines:
    """Emits the code of one contraction, its batch axes included."""

    def __init__(self, product: Product, lines: Lines):
        self.product, self.lines, self.code = product, lines, product.code
        self.lanes = product.tiles.lanes
        self.finish = Finish(product, None, None)
        self.memory = product.kernel.flat[lines.data.memory]
        self.weights = product.what.columns.places[0]
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
        units, vectors = product.size(lines.units), product.size((lines.lane,)).constant_value or 0
        work = product.size((*lines.units, lines.pixel, lines.lane, *lines.reduced))
        tasks = minimum(units, product.threads(PRODUCTS_PER_TASK, work))
        with shared_units(code, units, tasks) as (lower, upper), code.loop(upper, "unit", lower=lower) as unit:
            spot = {(axis,): at for axis, at in product.at((), lines.units, {lines.units: unit}).items()}
            with code.loop(code.index(vectors // self.lanes), "v") as v:
                self._line({**spot, (lines.lane,): code.mul(v, self.lanes)})

    def _line(self, spot: Spot) -> None:
        """A vector of channels of all pixels of a line."""
        code, height = self.code, self.height
        first, count = (code.dim(each) for each in self.inside)
        tiles = code.divide(count, height)
        if height > 1:
            with code.loop(tiles, "tile", vectorize=False) as tile:
                self._pixels(spot, code.add(first, code.mul(tile, height)), height)
        done = code.mul(tiles, height) if height > 1 else code.index(0)
        with code.loop(code.sub(code.dim(self.length), done), "pixel", vectorize=False) as number:
            before = code.compare("slt", number, first)
            self._pixels(spot, code.select(before, number, code.add(number, done)), 1)

    def _pixels(self, spot: Spot, pixel: SSAValue, height: int) -> None:
        """Some pixels whose windows are within the data, or a single one."""
        code, lines, dtype = self.code, self.lines, self.product.what.element
        here = {**spot, (lines.pixel,): pixel}
        sums = code.alloc([height, self.lanes], dtype, "sums", scope="local")
        places = [[code.index(p), code.index(0)] for p in range(height)]
        for place in places:
            code.store(code.zeros(dtype, self.lanes), sums, place)
        data = code.linear(lines.data.base, [(at, lines.data.strides[axis]) for (axis,), at in here.items()])
        weights = self.product.offset(self.weights, here)
        with ExitStack() as loops:
            written = lines.reduced[-1:] if height > 1 else ()
            for axis in lines.reduced[: len(lines.reduced) - len(written)]:
                data, weights = self._loop(loops, axis, here, data, weights)
            for step in range(self.window or 1 if written else 1):
                self._step(sums, places, data, weights, written, step)
        for p, place in enumerate(places):
            value = code.load(sums, place, self.lanes)
            self.finish.store_lanes(value, {**here, (lines.pixel,): code.add(pixel, p)}, None)

    def _loop(
        self, loops: ExitStack, axis: int, here: Spot, data: SSAValue, weights: SSAValue
    ) -> tuple[SSAValue, SSAValue]:
        """The places of a window along an axis that are within the data; gives where data and weights are."""
        code, border = self.code, self.lines.border(axis)
        lower, upper = None, code.dim(self.product.what.stage.extents[axis])
        if border is not None:
            lower, upper = border.places(code, here[border.axis,], upper)
        r = loops.enter_context(code.loop(upper, "r", lower=lower, vectorize=False, plain=True))
        return (
            code.add(data, code.mul(r, code.dim(self.lines.data.strides[axis]))),
            code.add(weights, code.mul(r, code.dim(self.weights.strides[axis]))),
        )

    def _step(
        self,
        sums: SSAValue,
        places: Sequence[Sequence[SSAValue]],
        data: SSAValue,
        weights: SSAValue,
        along: Sequence[int],
        step: int,
    ) -> None:
        """One product for each sum, at some step along an axis that is written out."""
        code, lines = self.code, self.lines
        jump, turn = constant(0), constant(0)
        for axis in along:
            jump, turn = lines.data.strides[axis] * step, self.weights.strides[axis] * step
        column = code.load(self.weights_memory, [code.add(weights, code.dim(turn))], self.lanes)
        for p, place in enumerate(places):
            at = code.add(data, code.dim(jump + lines.data.strides[lines.pixel] * p))
            value = code.load(self.memory, [at], self.lanes)
            code.store(code.fma(value, column, code.load(sums, place, self.lanes)), sums, place)
