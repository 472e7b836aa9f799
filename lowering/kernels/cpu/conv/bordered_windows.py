"""Windows over zero-padded data: where the data is read, and which elements of a window are within it.

A map that pads the data of one contraction with zeros is left out: the reduction runs over the elements that exist.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.gemm.problem import Gemm as Product
from lowering.kernels.cpu.structure.accesses import Index
from lowering.kernels.cpu.structure.padding import Padding
from tir_dialect.dims import Dim, ceildiv, constant, maximum, minimum
from tir_dialect.ops.memory import LoadOp
from tir_dialect.types import row_major_strides


@dataclass(frozen=True)
class Border:
    """A zero-padded dimension of the data, read at `stride * axis + step * window - low`."""

    axis: int
    """The axis of the results."""
    stride: int
    window: int
    """The reduced axis."""
    step: int
    low: int
    length: Dim
    """Of the data."""

    def taps(self, code: Code, at: SSAValue, count: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The first tap of a window that is within the data, and the one after the last, of `count`."""
        done = code.mul(at, self.stride)
        bounds: list[SSAValue] = []
        for edge in (code.index(self.low), code.add(code.dim(self.length), self.low)):
            left = code.maximum(code.add(code.sub(edge, done), self.step - 1), 0)
            bounds.append(code.minimum(count, left if self.step == 1 else code.divide(left, self.step)))
        return bounds[0], bounds[1]

    def tiles(self, count: int, extent: Dim, number: Dim) -> Dim:
        """For how many tiles taps of the window are within the data, if `extent` results are divided into a `number`
        of tiles: the sum over all `count` taps.
        """
        found, length = constant(0), maximum(extent, constant(1))
        for tap in range(count):
            shift = self.low - self.step * tap
            first = max(-(-shift // self.stride), 0)
            last = minimum(extent, ceildiv(self.length + shift, constant(self.stride)))
            used = ceildiv(last * number, length) - ceildiv(number * (first + 1), length) + 1
            found = found + maximum(used, constant(0))
        return found

    def inside(self, count: Dim, extent: Dim) -> tuple[Dim, Dim]:
        """The first of `extent` results whose window of `count` taps is within the data, and how many these are."""
        first = minimum(extent, constant(-(-self.low // self.stride)))
        room = maximum(self.length + self.low - (count - 1) * self.step, constant(0))
        last = minimum(extent, ceildiv(room, constant(self.stride)))
        return first, maximum(last - first, constant(0))


@dataclass(frozen=True)
class Windowed:
    """The data of a contraction, without its padding."""

    memory: SSAValue
    base: Dim
    strides: tuple[Dim, ...]
    """By axis of the contraction."""
    borders: tuple[Border, ...]


def find_windowed(product: Product, load: LoadOp, padding: Padding | None) -> Windowed | None:
    """Where a contraction reads its data, by a plain load; `None` if a window moves in an unusual way."""
    what = product.what
    if padding is None:
        access = what.rows.accesses[0]
        return Windowed(load.buffer, access.base, access.strides, ())
    indices, borders = what.stage.accesses[load], list[Border]()
    for number, index in enumerate(indices):
        border = _border(product, padding, number, index) if padding.is_padded(number) else None
        if index.value is not None or (border is None and padding.is_padded(number)):
            return None
        borders += [] if border is None else [border]
    steps = row_major_strides(padding.data)
    base, strides = constant(0), [constant(0)] * len(what.stage.axes)
    for index, low, step in zip(indices, padding.low, steps, strict=True):
        base = base + (index.base - low) * step
        strides = [old + new * step for old, new in zip(strides, index.strides, strict=True)]
    return Windowed(padding.load.buffer, base, tuple(strides), tuple(borders))


def find_borders(product: Product, load: LoadOp, padding: Padding) -> list[Border]:
    """The borders of data that is read with zeros around it, but for windows that move in an unusual way."""
    indices = enumerate(product.what.stage.accesses[load])
    found = (_border(product, padding, number, index) for number, index in indices if padding.is_padded(number))
    return [border for border in found if border is not None]


def _border(product: Product, padding: Padding, number: int, index: Index) -> Border | None:
    moved = [axis for axis, stride in enumerate(index.strides) if stride.terms]
    results = [axis for axis in moved if axis in product.what.row]
    windows = [axis for axis in moved if axis in product.what.reduced]
    steps = [index.strides[axis].constant_value or 0 for axis in (*results, *windows)]
    if len(results) != 1 or len(windows) != 1 or len(moved) != 2 or min(steps) < 1 or index.base.terms:
        return None
    return Border(results[0], steps[0], windows[0], steps[1], padding.low[number], padding.data[number])
