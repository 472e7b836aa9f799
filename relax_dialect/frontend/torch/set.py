"""Tensors as sets."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import i64

from relax_dialect.builder import op
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.promotion import promoted
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.frontend.torch.search import where_true
from tir_dialect import te
from tir_dialect.dims import Dim, product


@converts("aten._unique2.default", "aten.unique_dim.default")
def unique(node: Node) -> Result:
    """The different elements, or slices along an axis, in ascending order."""
    axis = node.axis() if node.has("dim") else None
    values, inverse, counts = op.unique(node.tensor("self"), axis, return_inverse=True, return_counts=True)
    shaped = op.reshape(inverse, list(node.shape())) if axis is None else inverse
    return [values, shaped if node.wants(1) else None, counts if node.wants(2) else None]


@converts("aten.unique_consecutive.default")
def unique_consecutive(node: Node) -> Result:
    """The elements, or slices along an axis, that differ from the one before."""
    is_flat = not node.has("dim")
    x, axis = (op.flatten(node.tensor("self")), 0) if is_flat else (node.tensor("self"), node.axis())
    length = product(node.shape()) if is_flat else node.shape()[axis]
    begins = node.te(_differs_from_before(axis), x, name="begins")
    at = where_true(node, begins)
    inverse = counts = None
    if node.wants(1):
        inverse = op.subtract(op.cumsum(op.astype(begins, i64), 0), node.const(1, i64))
        inverse = op.reshape(inverse, list(node.shape())) if is_flat else inverse
    if node.wants(2):
        counts = node.te(_lengths(length), at, name="lengths")
    return [op.take(x, at, axis), inverse, counts]


def _differs_from_before(axis: int) -> Callable[[te.Tensor], te.Tensor]:
    def kernel(x: te.Tensor) -> te.Tensor:
        others = [te.reduce_axis(extent, "r") for at, extent in enumerate(x.shape) if at != axis]

        def element(i: te.Expr) -> te.Expr:
            here, before = ([*others[:axis], at, *others[axis:]] for at in (i, te.maximum(i - 1, 0)))
            differs = te.if_then_else(x[tuple(here)] == x[tuple(before)], te.const(0, "i32"), te.const(1, "i32"))
            return te.sum(differs, others) if others else differs

        def begins(i: te.Expr) -> te.Expr:
            return te.logical_or(i == 0, counts[i] > 0)

        counts = te.compute((x.shape[axis],), element, name="differences")
        return te.compute(counts.shape, begins, name="begins")

    return kernel


def _lengths(length: Dim) -> Callable[[te.Tensor], te.Tensor]:
    """From each start to the next one, the last to the end."""

    def kernel(starts: te.Tensor) -> te.Tensor:
        count = starts.shape[0]

        def element(i: te.Expr) -> te.Expr:
            after = starts[te.minimum(i + 1, count - 1)]
            return te.if_then_else(i + 1 < count, after, te.cast(length, "i64")) - starts[i]

        return te.compute((count,), element, name="lengths")

    return kernel


@converts("aten.isin.Tensor_Tensor")
def isin(node: Node) -> Result:
    """Whether elements are among others."""
    dtype = promoted([node.value("elements"), node.value("test_elements")])
    rank = node.rank("elements")
    x = op.expand_dims(node.tensor("elements", dtype), [rank])
    same = op.equal(x, op.flatten(node.tensor("test_elements", dtype)))
    found = op.astype(op.max(op.astype(same, "ui8"), [rank]), "i1")
    return op.logical_not(found) if node.flag("invert") else found
