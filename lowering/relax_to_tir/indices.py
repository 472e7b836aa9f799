"""Axes and indices: counted from the front, taken apart and put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, IntegerType

from tir_dialect import te
from tir_dialect.dims import Dim, constant, maximum, minimum
from tir_dialect.dtypes import is_unsigned
from tir_dialect.te.nodes import IterKind


def broadcast_load(tensor: te.Tensor, shape: Sequence[Dim], index: Sequence[te.Expr]) -> te.Expr:
    """The element of `tensor` that is at `index` of the broadcast `shape`."""
    return tensor[broadcast_index(tensor.shape, shape, index)]


def broadcast_index(own: Sequence[Dim], shape: Sequence[Dim], index: Sequence[te.Expr]) -> tuple[te.Expr | int, ...]:
    """The index into a tensor of shape `own` for an index into the `shape` that it is broadcast to."""
    offset = len(shape) - len(own)
    return tuple(_along(*axis) for axis in zip(own, shape[offset:], index[offset:], strict=True))


def _along(own: Dim, full: Dim, index: te.Expr) -> te.Expr | int:
    if own is full:
        return index
    if own.constant_value == 1:
        return 0
    # Only known at run time: either both extents are the same, or this one is 1 and the only index is 0.
    return index * whether_equal(own, full)


def whether_equal(own: Dim, full: Dim) -> Dim:
    """1 if an extent is the one that it is broadcast to, 0 if it is less."""
    return minimum(maximum(own - full + 1, 0), 1)


T = TypeVar("T")


def axis_of(value: IntegerAttr, rank: int) -> int:
    """An axis counted from the front."""
    return value.value.data % rank


def axes_of(values: DenseArrayBase[IntegerType] | None, rank: int) -> tuple[int, ...]:
    """Axes counted from the front; all of them if there is no list."""
    return tuple(range(rank)) if values is None else tuple(value % rank for value in values.get_values())


def without(items: Sequence[T], *axes: int) -> tuple[T, ...]:
    """What is left of a shape or an index without some axes."""
    return tuple(item for axis, item in enumerate(items) if axis not in axes)


def put(items: Sequence[T], axes: Sequence[int], inner: Sequence[T]) -> tuple[T, ...]:
    """`items` with those of `inner` at the positions `axes`: the inverse of `without`."""
    rest, inserted = iter(items), dict(zip(axes, inner, strict=True))
    return tuple(inserted[axis] if axis in inserted else next(rest) for axis in range(len(items) + len(inner)))


def axes(shape: Sequence[Dim], ordered: Sequence[int] = ()) -> list[tuple[IterKind, Dim, str]]:
    """The axes of a block over all of `shape`, independent of each other but for those that are `ordered`."""
    return [("scan" if axis in ordered else "spatial", extent, f"i{axis}") for axis, extent in enumerate(shape)]


def unravel(flat: te.Expr, shape: Sequence[Dim]) -> tuple[te.Expr, ...]:
    """The index of the element at a position in row-major order."""
    index: list[te.Expr] = []
    for extent in reversed(shape[1:]):
        index.append(te.floormod(flat, extent))
        flat = te.floordiv(flat, extent)
    return tuple(reversed([*index, flat])) if shape else ()


def ravel(index: Sequence[te.Expr], shape: Sequence[Dim]) -> te.Expr:
    """The index of an element in row-major order."""
    flat = te.cast(constant(0), "index")
    for extent, each in zip(shape, index, strict=True):
        flat = flat * extent + each
    return flat


def as_position(index: te.Expr) -> te.Expr:
    """An index that is data as one of a tensor; what is too large for one is the most that there is."""
    return te.cast(te.minimum(index, 2**63 - 1) if str(index.dtype) == "ui64" else index, "index")


def from_front(index: te.Expr, extent: Dim) -> te.Expr:
    """An index that is data, as a position: a negative one counts from the back."""
    position = as_position(index)
    if isinstance(index.dtype, IndexType) or is_unsigned(index.dtype):
        return position
    return te.select(position < 0, position + extent, position)


def clamped(position: te.Expr, extent: Dim) -> te.Expr:
    """The nearest position within an extent that is not 0."""
    return te.maximum(te.minimum(position, extent - 1), 0)
