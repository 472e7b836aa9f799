"""Depthwise and grouped convolutions on channel-blocked data (`NCHW16c`), without packing.

A vector holds channels of one block. A row of pixels is computed in tiles of MR pixels, which share weights and loads
of data. Pooling at the edge of the image skip the taps that are out of bounds, so that no padded copy is needed.

In a grouped convolution a vector holds the filters of several groups. The members of a group are reduced one after the
other: a shuffle broadcasts a member to all lanes of its group.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeVar

from xdsl.ir import SSAValue

from lowering.kernels.conv.channel_blocks import load_of
from lowering.kernels.conv.depthwise_bytes import data_of, find_byte_depthwise
from lowering.kernels.conv.micro_kernel import PaddedAxis, PaddedData, find_padded_data
from lowering.kernels.cost_model import (
    DEPTHWISE_DEFAULT_MR,
    DEPTHWISE_MAX_MR,
    DEPTHWISE_MAX_UNROLLED_TAPS,
    FMA_LATENCY_CYCLES,
    TASK_MACS,
)
from lowering.kernels.emit.kernel import Kernel, shared_units
from lowering.kernels.emit.vectorization import shuffle
from lowering.kernels.gemm.epilogue import EpilogueEmitter
from lowering.kernels.gemm.problem import Coords, Gemm
from lowering.kernels.structure.contraction import Factor, is_chain
from lowering.kernels.structure.padding import Padding, find_padding
from lowering.kernels.structure.stages import Stage
from tir_dialect.dims import Dim, constant, minimum
from tir_dialect.ops.memory import LoadOp

Item = TypeVar("Item")


@dataclass(frozen=True)
class ChannelBlock:
    """The axes of a block of channels, which lie along vector lanes."""

    axes: tuple[int, ...]
    """The axes that collapse into one: the channels, or the groups and the filters of each."""
    size: int
    """Channels in a block."""
    members: int = 1
    """Input channels in a group."""
    member: int | None = None
    """The reduced axis over the members of a group."""


@dataclass(frozen=True)
class Depthwise:
    """The axes of a depthwise or grouped convolution."""

    lanes: ChannelBlock
    pixel: int
    row_axes: tuple[int, ...]
    """The other axes of the output; each of their values is one row of pixels."""
    windows: tuple[int, ...]
    """The axes of the window that a loop runs over, within the bounds of the data."""
    unrolled: int | None
    """The axis of the window that is unrolled: all its taps are in bounds at interior pixels."""
    data: PaddedData

    def padded_axis(self, axis: int) -> PaddedAxis | None:
        """The padded axis of the data that an axis of the output or of the window moves along."""
        return next((each for each in self.data.padded_axes if axis in (each.axis, each.window)), None)


def find_depthwise(gemm: Gemm, padding: Padding | None) -> Depthwise | None:
    """The depthwise convolution that a contraction over padded data is; `None` if it is none."""
    contraction, load = gemm.contraction, gemm.contraction.rows.value.owner
    if contraction.outer or contraction.is_integer or gemm.tiles.lanes == 1 or not isinstance(load, LoadOp):
        return None
    lanes = _find_groups(gemm) if contraction.column else _find_channels(gemm)
    data = find_padded_data(gemm, load, padding)
    if lanes is None or data is None:
        return None
    pixel = next(
        (axis for axis in contraction.row if contraction.output.strides[axis].constant_value == lanes.size), None
    )
    if pixel is None:
        return None
    windows = [axis for axis in contraction.reduced if axis != lanes.member]
    windows.sort(key=lambda axis: -(data.strides[axis].constant_value or 1 << 62))
    windows.sort(key=lambda axis: any((each.axis, each.window) == (pixel, axis) for each in data.padded_axes))
    row_axes = tuple(
        axis for axis in sorted((*contraction.batch, *contraction.row)) if axis not in (*lanes.axes, pixel)
    )
    # A padded row axis bounds the taps of its window, however far the pixel is from the edge.
    bounded = [each.window for each in data.padded_axes if each.axis != pixel]
    unrolled = windows.pop() if windows and windows[-1] not in bounded else None
    return Depthwise(lanes, pixel, row_axes, tuple(windows), unrolled, data)


def _find_channels(gemm: Gemm) -> ChannelBlock | None:
    """A block of channels, each with one filter."""
    contraction = gemm.contraction
    lane = contraction.along[-1] if contraction.along else None
    if lane is None or not all(
        _is_plain(each) and each.stride(lane) == 1 for each in (contraction.rows, contraction.columns)
    ):
        return None
    size = contraction.stage.extents[lane].constant_value
    return ChannelBlock((lane,), size) if size and size % gemm.tiles.lanes == 0 else None


def _find_groups(gemm: Gemm) -> ChannelBlock | None:
    """A block of groups with as many filters as members, of which a vector holds several."""
    contraction, extents = gemm.contraction, gemm.contraction.stage.extents
    if len(contraction.column) != 1 or not (_is_plain(contraction.rows) and _is_plain(contraction.columns)):
        return None
    (filter,) = contraction.column
    count = extents[filter].constant_value or 0
    group = next((axis for axis in contraction.batch if contraction.output.strides[axis].constant_value == count), None)
    member = next((axis for axis in contraction.reduced if contraction.rows.stride(axis) == 1), None)
    if group is None or member is None or extents[member] is not extents[filter]:
        return None
    size, axes, lanes = count * (extents[group].constant_value or 0), (group, filter), gemm.tiles.lanes
    accesses = [step.access(op, len(extents)) for step, op in gemm.epilogue.accesses]
    together = is_chain([contraction.output, *contraction.columns.accesses, *accesses], extents, axes)
    whole = size > 0 and size % lanes == 0 and lanes % count == 0
    read_so = contraction.rows.stride(group) == count and contraction.columns.stride(filter) == 1
    return ChannelBlock(axes, size, count, member) if together and whole and read_so else None


def _is_plain(factor: Factor) -> bool:
    """Whether a factor is a plain load at an affine index."""
    plain = isinstance(factor.value.owner, LoadOp) and factor.value.type == factor.element
    return plain and factor.is_linear and factor.panels is None


def depthwise_of(gemm: Gemm) -> Depthwise | None:
    """The depthwise convolution that a contraction is, with the padding that was elided before."""
    load = gemm.contraction.rows.value.owner
    return find_depthwise(gemm, gemm.kernel.elided_padding.get(load.buffer) if isinstance(load, LoadOp) else None)


def elide_padding(kernel: Kernel, plan: Sequence[Item]) -> list[Item]:
    """The plan without the padding stages whose only reader is a depthwise convolution, which needs none.

    Padding of bytes may be any number, such as a zero point.
    """
    stages = {store.buffer: each for each in plan if isinstance(each, Stage) for store in each.stores}
    left_out: list[Stage] = []
    for gemm in plan:
        load = _load_of_data(gemm) if isinstance(gemm, Gemm) else None
        if not isinstance(gemm, Gemm) or load is None or load.buffer not in stages:
            continue
        padding = find_padding(stages[load.buffer])
        alone = sum(isinstance(use.operation, LoadOp) for use in load.buffer.uses) == 1
        if padding is not None and alone and _needs_no_padding(gemm, padding):
            kernel.elided_padding[load.buffer] = padding
            left_out.append(stages[load.buffer])
    return [item for item in plan if not any(item is stage for stage in left_out)]


def _load_of_data(gemm: Gemm) -> LoadOp | None:
    """The load of the first factor, which bytes are extended after."""
    load = gemm.contraction.rows.value.owner
    return load if isinstance(load, LoadOp) else data_of(gemm)


def _needs_no_padding(gemm: Gemm, padding: Padding) -> bool:
    if find_byte_depthwise(gemm, padding) is not None:
        return True
    return padding.is_zero and find_depthwise(gemm, padding) is not None


class DepthwiseConvolution:
    """Generates a depthwise or grouped convolution, including its batch axes."""

    def __init__(self, gemm: Gemm, depthwise: Depthwise):
        self.gemm, self.depthwise, self.code = gemm, depthwise, gemm.code
        self.lanes = gemm.tiles.lanes
        self.epilogue = EpilogueEmitter(gemm, None, None)
        self.memory = gemm.kernel.flat[depthwise.data.memory]
        self.weights = gemm.contraction.columns.accesses[0]
        self.weights_memory = gemm.kernel.flat[load_of(gemm.contraction.columns)[0]]
        extents = gemm.contraction.stage.extents
        self.length = extents[depthwise.pixel]
        padded_axis = depthwise.padded_axis(depthwise.pixel)
        self.interior = (constant(0), self.length)
        if padded_axis is not None:
            self.interior = padded_axis.interior(extents[padded_axis.window], self.length)
        self.window = 1 if depthwise.unrolled is None else extents[depthwise.unrolled].constant_value
        self.mr = self._choose_mr()

    def _choose_mr(self) -> int:
        """MR, the pixels of a tile: the cheapest one for the length of a row, if that is known."""
        has_few_registers = self.gemm.kernel.target.vector_registers < 32
        length, window = self.interior[1].constant_value, self.window
        if window is None or window > DEPTHWISE_MAX_UNROLLED_TAPS:
            return 1
        if length is None:
            return DEPTHWISE_DEFAULT_MR // 2 if has_few_registers else DEPTHWISE_DEFAULT_MR

        def cost(mr: int) -> float:
            tile = max(mr * window / 2, FMA_LATENCY_CYCLES * window) + 3 * mr + 4
            return length // mr * tile + length % mr * (FMA_LATENCY_CYCLES + 4) * window

        return min(range(1, (DEPTHWISE_MAX_MR // 2 if has_few_registers else DEPTHWISE_MAX_MR) + 1), key=cost)

    def emit(self) -> None:
        """All rows, partitioned among threads; each row goes in tiles of MR pixels."""
        code, gemm, depthwise = self.code, self.gemm, self.depthwise
        rows = gemm.size(depthwise.row_axes)
        work = gemm.size(
            (*gemm.contraction.batch, *gemm.contraction.row, *gemm.contraction.column, *gemm.contraction.reduced)
        )
        tasks = minimum(rows, gemm.threads(TASK_MACS, work))
        with shared_units(code, rows, tasks) as (lower, upper), code.loop(upper, "unit", lower=lower) as unit:
            coords = {(axis,): at for axis, at in gemm.at((), depthwise.row_axes, {depthwise.row_axes: unit}).items()}
            with code.loop(code.index(depthwise.lanes.size // self.lanes), "v") as v:
                # The channels at which vector `v` of a block begins.
                first, *members = self.depthwise.lanes.axes
                begin = self.code.mul(v, self.lanes // self.depthwise.lanes.members)
                self._row_of_pixels({**coords, (first,): begin, **{(axis,): self.code.index(0) for axis in members}})

    def _row_of_pixels(self, coords: Coords) -> None:
        """A vector of channels for all pixels of a row: interior pixels in tiles of MR, edge pixels one at a time."""
        code, mr = self.code, self.mr
        first, count = (code.dim(each) for each in self.interior)
        tiles = code.divide(count, mr)
        if mr > 1:
            with code.loop(tiles, "tile", vectorize=False) as tile:
                self._pixels(coords, code.add(first, code.mul(tile, mr)), mr)
        done = code.mul(tiles, mr) if mr > 1 else code.index(0)
        with code.loop(code.sub(code.dim(self.length), done), "pixel", vectorize=False) as number:
            before = code.compare("slt", number, first)
            self._pixels(coords, code.select(before, number, code.add(number, done)), 1)

    def _pixels(self, coords: Coords, pixel: SSAValue, mr: int) -> None:
        """MR pixels whose windows are in bounds, or a single pixel."""
        code, depthwise, dtype = self.code, self.depthwise, self.gemm.contraction.element
        here = {**coords, (depthwise.pixel,): pixel}
        partial = code.alloc([mr, self.lanes], dtype, "sums", scope="local")
        accumulators = [[code.index(p), code.index(0)] for p in range(mr)]
        for accumulator in accumulators:
            code.store(code.zeros(dtype, self.lanes), partial, accumulator)
        data = code.linear(depthwise.data.base, [(at, depthwise.data.strides[axis]) for (axis,), at in here.items()])
        weights = self.gemm.offset(self.weights, here)
        for member in range(depthwise.lanes.members):
            self._member(partial, here, data, self._weights_of_member(weights, member), member, mr)
        for p, accumulator in enumerate(accumulators):
            value = code.load(partial, accumulator, self.lanes)
            self.epilogue.store_lanes(value, {**here, (depthwise.pixel,): code.add(pixel, p)}, None)

    def _weights_of_member(self, weights: SSAValue, member: int) -> SSAValue:
        """Where the weights for a member of each group begin."""
        axis, code = self.depthwise.lanes.member, self.code
        return weights if axis is None else code.add(weights, code.dim(self.weights.strides[axis] * member))

    def _member(
        self, accumulators: SSAValue, here: Coords, data: SSAValue, weights: SSAValue, member: int, mr: int
    ) -> None:
        """Accumulates the contribution of one member of each group."""
        windows, unrolled = self.depthwise.windows, self.depthwise.unrolled
        if mr == 1 and unrolled is not None:
            windows, unrolled = (*windows, unrolled), None
        with ExitStack() as loops:
            for axis in windows:
                # A loop over the taps along an axis that are in bounds; gives the addresses of data and weights.
                code, padded_axis = self.code, self.depthwise.padded_axis(axis)
                lower, upper = None, code.dim(self.gemm.contraction.stage.extents[axis])
                if padded_axis is not None:
                    lower, upper = padded_axis.taps(code, here[padded_axis.axis,], upper)
                r = loops.enter_context(code.loop(upper, "r", lower=lower, vectorize=False, plain=True))
                data = code.add(data, code.mul(r, code.dim(self.depthwise.data.strides[axis])))
                weights = code.add(weights, code.mul(r, code.dim(self.weights.strides[axis])))
            self._window_row(accumulators, data, weights, unrolled, member, mr)

    def _window_row(
        self, accumulators: SSAValue, data: SSAValue, weights: SSAValue, along: int | None, member: int, mr: int
    ) -> None:
        """The products of a row of the window, or of one tap: each vector of data is loaded once."""
        code, depthwise = self.code, self.depthwise
        zero = constant(0)
        step, weight_step = (
            (zero, zero) if along is None else (depthwise.data.strides[along], self.weights.strides[along])
        )
        count = 1 if along is None else self.window or 1
        columns = [
            code.load(self.weights_memory, [code.add(weights, code.dim(weight_step * number))], self.lanes)
            for number in range(count)
        ]
        users: dict[Dim, list[tuple[int, int]]] = {}
        for p in range(mr):
            for number in range(count):
                users.setdefault(depthwise.data.strides[depthwise.pixel] * p + step * number, []).append((p, number))
        for jump, found in users.items():
            value = self._broadcast_member(code.load(self.memory, [code.add(data, code.dim(jump))], self.lanes), member)
            for p, number in found:
                accumulator = [code.index(p), code.index(0)]
                code.store(
                    code.fma(value, columns[number], code.load(accumulators, accumulator, self.lanes)),
                    accumulators,
                    accumulator,
                )

    def _broadcast_member(self, value: SSAValue, member: int) -> SSAValue:
        """Broadcasts a member of each group to all lanes of the group."""
        size = self.depthwise.lanes.members
        if size == 1:
            return value
        return shuffle(self.code, (value, value), [lane // size * size + member for lane in range(self.lanes)])
