"""Where the positions of a resized axis come from, and how much the elements near them count: expressions in `f64`.

The words are those of `relax.image.resize1d`, which are those of ONNX `Resize`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tir_dialect import te
from tir_dialect.dims import Dim

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
