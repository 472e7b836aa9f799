"""What convolutions and pooling share: the arithmetic of windows that slide over spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.ir import Attribute

from relax_dialect.inference import DEFAULT_PROVER, Inference
from relax_dialect.ops.fields import integers
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, ceildiv, floordiv, minimum

T = TypeVar("T")

SPATIAL = "DHW"


def spatial_letters(rank: int) -> str:
    """The letters of the last `rank` spatial dimensions: `W`, `HW` or `DHW`."""
    return SPATIAL[-rank:]


def spread(values: Sequence[T], rank: int) -> tuple[T, ...]:
    """One value for each of `rank` dimensions: a single value counts for all."""
    return tuple(values) * rank if len(values) == 1 else tuple(values)


def spread_padding(values: Sequence[int], rank: int) -> tuple[int, ...]:
    """The padding before each of `rank` dimensions, then after each: one value counts for all, `rank` for both
    sides.
    """
    if len(values) == 1:
        return tuple(values) * (2 * rank)
    return tuple(values) * 2 if len(values) == rank else tuple(values)


@dataclass(frozen=True)
class Windows:
    """How windows slide over the spatial dimensions; one number per dimension, the padding one before and one after
    each.
    """

    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def rank(self) -> int:
        """The number of spatial dimensions."""
        return len(self.strides)

    def padded(self, axis: int) -> int:
        """The padding on both sides of a dimension."""
        return self.padding[axis] + self.padding[axis + self.rank]

    def count(self, axis: int, length: Dim | None, extent: Dim | None, ceil_mode: bool = False) -> Dim | None:
        """How many windows of `extent` elements fit into a dimension.

        With `ceil_mode` the last one may reach over the end, but not start in the padding there.
        """
        if length is None or extent is None:
            return None
        room = length + self.padded(axis) - self.dilation[axis] * (extent - 1) - 1
        stride = self.strides[axis]
        if not ceil_mode:
            return DEFAULT_PROVER.simplify(floordiv(room, stride) + 1)
        inside = ceildiv(length + self.padding[axis], stride)
        return DEFAULT_PROVER.simplify(minimum(ceildiv(room, stride) + 1, inside))


def make_windows(
    rank: int,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
) -> Windows:
    """Windows over `rank` dimensions; absent strides and dilations are 1, absent padding is 0."""
    return Windows(
        spread((1,) if strides is None else strides, rank),
        spread_padding((0,) if padding is None else padding, rank),
        spread((1,) if dilation is None else dilation, rank),
    )


def window_properties(
    rank: int,
    strides: Sequence[int] | None,
    padding: Sequence[int] | None,
    dilation: Sequence[int] | None,
) -> dict[str, Attribute | None]:
    """The properties of windows: those that say no more than the defaults are left out, so that equal ops look
    equal.
    """
    given, plain = make_windows(rank, strides, padding, dilation), make_windows(rank)
    return {
        "strides": None if given.strides == plain.strides else integers(given.strides),
        "padding": None if given.padding == plain.padding else integers(given.padding),
        "dilation": None if given.dilation == plain.dilation else integers(given.dilation),
    }


def require_windows(inference: Inference, rank: int) -> Windows:
    """The properties `strides`, `padding` and `dilation`; fails if their lengths or values make no sense."""
    given = {name: inference.optional_integers(name) for name in ("strides", "padding", "dilation")}
    for name, values in given.items():
        expected = 2 * rank if name == "padding" else rank
        if values is not None and len(values) != expected:
            inference.fail(f"{name} expected {expected} numbers, got {len(values)}")
    found = make_windows(rank, **given)
    if min(*found.strides, *found.dilation) < 1:
        inference.fail("expected strides and dilations of at least 1")
    return found


def require_rank(inference: Inference, index: int, rank: int) -> tuple[Dim | None, ...]:
    """The shape of tensor operand `index`, which has `rank` dimensions, all of them unknown if nothing is known."""
    info: TensorType = inference.tensor(index)
    if info.dims is None:
        return (None,) * rank
    if len(info.dims) != rank:
        inference.fail(f"operand #{index} expected rank {rank}, got {info}")
    return info.dims
