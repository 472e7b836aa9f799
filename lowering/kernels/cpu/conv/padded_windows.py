"""Convolution windows over zero-padded data: the addresses without the padding, and the taps that are in bounds.

The stage that pads the data of a convolution with zeros is elided. The reduction runs over the taps that exist.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.gemm.problem import Gemm
from lowering.kernels.cpu.structure.accesses import Index
from lowering.kernels.cpu.structure.padding import Padding
from tir_dialect.dims import Dim, ceildiv, constant, maximum, minimum
from tir_dialect.ops.memory import LoadOp
from tir_dialect.types import row_major_strides


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
