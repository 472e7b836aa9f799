"""Formulas that the interpreter and the kernels share: positions and weights of interpolation, what stands around
padded data, and the lengths of ranges.

The words are those of `relax.image.resize1d`, which are those of ONNX `Resize`.

Widths are numbers, or dimensions where they are only known at run time. A negative one takes elements away, before
others are repeated: what is taken away is not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relax_dialect.inference import DEFAULT_PROVER
from tir_dialect import te
from tir_dialect.dims import Dim, maximum, to_dim
from tir_dialect.te.coerce import is_float

ROUND: dict[str, Callable[[te.Expr], te.Expr]] = {
    "round": te.round_away,
    "floor": te.floor,
    "ceil": te.ceil,
    "round_prefer_floor": lambda position: te.ceil(position - 0.5),
    "round_prefer_ceil": lambda position: te.floor(position + 0.5),
}
"""To which position one between two positions belongs."""


@dataclass(frozen=True)
class Axis:
    """An axis that is resized."""

    size: te.Expr
    """How many positions there are."""
    count: te.Expr
    """How many there will be."""
    scale: te.Expr
    total: te.Expr
    """The new number of positions before it was made a whole one."""
    start: te.Expr | float = 0.0
    """Where the part begins that `tf_crop_and_resize` takes, 1 being the last position."""
    end: te.Expr | float = 1.0

    def source(self, coordinates: str, index: te.Expr) -> te.Expr:
        """Where an index of the result comes from."""
        at, size, start, end = te.cast(index, "f64"), self.size, self.start, self.end
        steps = te.select(self.count > 1, self.total - 1, 1.0)
        match coordinates:
            case "align_corners":
                return te.select(self.count > 1, at * (size - 1) / steps, 0.0)
            case "asymmetric":
                return at / self.scale
            case "pytorch_half_pixel":
                return te.select(self.count > 1, (at + 0.5) / self.scale - 0.5, 0.0)
            case "half_pixel_symmetric":
                return size / 2 * (1 - self.count / self.total) + (at + 0.5) / self.scale - 0.5
            case "tf_half_pixel_for_nn":
                return (at + 0.5) / self.scale
            case "tf_crop_and_resize":
                spread = start * (size - 1) + at * (end - start) * (size - 1) / steps
                return te.select(self.count > 1, spread, 0.5 * (start + end) * (size - 1))
            case _:
                return (at + 0.5) / self.scale - 0.5

    def is_beyond(self, position: te.Expr) -> te.Expr:
        """Whether a position is outside of the data, where `tf_crop_and_resize` has a value of its own."""
        return te.logical_or(position < 0, position > self.size - 1)


def double(dim: Dim) -> te.Expr:
    """A dimension as a number."""
    return te.cast(te.cast(dim, "index"), "f64")


def single(position: te.Expr) -> te.Expr:
    """A position as ONNX Runtime and PyTorch have it, who compute in single precision: `3 / 0.6` is 5."""
    return te.cast(te.cast(position, "f32"), "f64")


def falls_off(method: str, cubic_alpha: float, t: te.Expr) -> te.Expr:
    """The weight of an element at a distance: a triangle if linear, else Keys' cubic kernel."""
    if method == "linear":
        return te.maximum(1 - t, 0.0)
    a = cubic_alpha
    near, far = ((a + 2) * t - (a + 3)) * t * t + 1, ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return te.select(t <= 1, near, te.select(t < 2, far, 0.0))


Width: TypeAlias = int | Dim
"""How many elements are before the data along an axis."""


def filled(x: te.Tensor, shape: Sequence[Dim], before: Sequence[Width], value: te.Expr) -> te.Tensor:
    """`x` with a value around it."""
    axes = _padded_axes(x, shape, before)

    def element(*i: te.Expr) -> te.Expr:
        positions = [each - width for each, width in zip(i, before, strict=True)]
        inside = [_is_inside(positions[axis], x.shape[axis]) for axis in axes]
        return te.if_then_else(te.logical_and(*inside), x[tuple(positions)], value) if inside else x[tuple(positions)]

    return te.compute(shape, element, name="pad")


def surrounded(
    x: te.Tensor, shape: Sequence[Dim], before: Sequence[Width], mode: str, *, provable: bool = False
) -> te.Tensor:
    """`x` with its own elements around it, as a mode of `relax.nn.pad` says.

    What a position stands for is in a table for each dimension. Along the last one that is longer, positions inside of
    the data need no table, so that code can do without there. With `provable` even `check-accesses` sees that the
    tables lead nowhere else than into the data.
    """

    def looked_up(axis: int, index: te.Expr) -> te.Expr:
        found = te.cast(tables[axis][index], "index")
        return clamped(found, x.shape[axis]) if provable else found

    longer = _padded_axes(x, shape, before)
    tables = {axis: _table(mode, shape[axis], x.shape[axis], before[axis]) for axis in longer}

    def element(*i: te.Expr) -> te.Expr:
        positions = [looked_up(axis, each) if axis in tables else each for axis, each in enumerate(i)]
        found = x[tuple(positions)]
        if not longer:
            return found
        last = longer[-1]
        index = i[last] - before[last]
        straight = x[(*positions[:last], index, *positions[last + 1 :])]
        return te.if_then_else(_is_inside(index, x.shape[last]), straight, found)

    return te.compute(shape, element, name="pad")


def clamped(position: te.Expr, extent: Dim) -> te.Expr:
    """The nearest position within an extent that is not 0."""
    return te.maximum(te.minimum(position, extent - 1), 0)


def _padded_axes(x: te.Tensor, shape: Sequence[Dim], before: Sequence[Width]) -> list[int]:
    """The axes along which there may be other elements than those of the data."""
    changed = (
        extent is not own or bool(to_dim(width).terms)
        for extent, own, width in zip(shape, x.shape, before, strict=True)
    )
    return [axis for axis, is_changed in enumerate(changed) if is_changed]


def _table(mode: str, extent: Dim, own: Dim, before: Width) -> te.Tensor:
    """The positions in the data that those of an axis stand for."""
    if isinstance(before, int) and before >= 0 and DEFAULT_PROVER.less_equal(own + before, extent) is True:
        return te.compute((extent,), lambda *i: te.cast(_mapped(mode, i[0] - before, own), "i64"), name="places")
    after = extent - own - before
    first, kept = maximum(-to_dim(before), 0), own - maximum(-to_dim(before), 0) - maximum(-after, 0)
    length = maximum(kept, 1)  # if nothing is kept there is nothing to repeat, but a remainder has to be defined

    def position(*i: te.Expr) -> te.Expr:
        return te.cast(first + _mapped(mode, i[0] - maximum(to_dim(before), 0), length), "i64")

    return te.compute((extent,), position, name="places")


def _is_inside(position: te.Expr, extent: Dim) -> te.Expr:
    """Whether a position is one of an axis."""
    return te.logical_and(position >= 0, position < extent)


def _mapped(mode: str, position: te.Expr, length: Dim) -> te.Expr:
    """The position that one outside of the axis stands for."""
    if mode == "circular":
        return position % length
    if mode == "reflect":
        last = length - 1
        return last - te.abs(position % maximum(2 * last, 1) - last)
    return clamped(position, length)


_MOST = 2**63 - 1


def range_length(start: te.Expr, stop: te.Expr, step: te.Expr) -> te.Expr:
    """The length of `start`, `start + step`, ... before `stop` as an `i64`; -1, which is no length, for a step of 0.

    It is exact for all integers of `i64`, and computed in `f64` for floats: a rounded difference may end just before
    one more number. A length that `i64` has not is its greatest number.
    """
    if is_float(start.dtype):
        first, last, by = (te.cast(each, "f64") for each in (start, stop, step))
        length = te.maximum(te.cast(te.ceil((last - first) / te.select(by == 0, 1.0, by)), "i64"), 0)
    else:
        first, last, by = (te.cast(each, "i64") for each in (start, stop, step))
        up = te.select(first < last, _steps(last - first, by), te.const(0, "i64"))
        down = te.select(first > last, _steps(first - last, -by), te.const(0, "i64"))
        length = te.select(by > 0, up, down)
    return te.select(by == 0, te.const(-1, "i64"), length)


def _steps(span: te.Expr, step: te.Expr) -> te.Expr:
    """A distance of 1 or more by a step, rounded up; what `i64` would have as negative is read as unsigned."""
    steps = te.floordiv(te.cast(span, "ui64") - 1, te.maximum(te.cast(step, "ui64"), 1))
    return te.cast(te.minimum(steps, _MOST - 1), "i64") + 1
