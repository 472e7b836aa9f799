"""Indices into a tensor that is broadcast."""

from __future__ import annotations

from collections.abc import Sequence

from tir_dialect import te
from tir_dialect.dims import Dim, maximum, minimum


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
