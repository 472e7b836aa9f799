"""Gathering and scattering."""

from __future__ import annotations

from collections.abc import Sequence

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.range_checks import at_least_0, indices_within, numbers_at_most
from tir_dialect import te
from tir_dialect.dims import Dim

_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@converts("Gather")
def gather(node: Node) -> Result:
    """Slices at places along an axis."""
    axis = node.axis()
    return op.take(node[0], _within(node, [node.shape()[axis]]), axis)


def _within(node: Node, extents: Sequence[Dim]) -> Expr:
    """The indices, operand 1, each within its extent, of which there are several for the last dimension."""
    places, lengths = node.ints(1), [extent.constant_value for extent in extents]
    if places is None or None in lengths:
        return indices_within(node.bb, node[1], extents, f"'{node.op_type}' indices")
    for at, place in enumerate(places):
        length = lengths[at % len(lengths)]
        if length is not None and not -length <= place < length:
            raise Refusal(f"the index {place} is not within a dimension of {length}")
    return node[1]


@converts("GatherElements")
def gather_elements(node: Node) -> Result:
    """One element for each index."""
    axis = node.axis()
    return op.gather_elements(node[0], _within(node, [node.shape()[axis]]), axis)


@converts("GatherND")
def gather_nd(node: Node) -> Result:
    """Slices at places with several coordinates."""
    batch = node.integer("batch_dims")
    return op.gather_nd(node[0], _coordinates(node, batch), batch)


def _coordinates(node: Node, batch: int) -> Expr:
    """Indices whose last dimension has the coordinates of a place behind the first `batch` dimensions."""
    count = node.shape(1)[-1].constant_value or 0
    extents = node.shape()[batch : batch + count]
    return _within(node, extents) if extents else node[1]


@converts("Scatter", "ScatterElements")
def scatter_elements(node: Node) -> Result:
    """Elements replaced or combined."""
    reduction, axis = _REDUCTIONS[node.text("reduction", "none")], node.axis()
    return op.scatter_elements(node[0], _within(node, [node.shape()[axis]]), node[2], axis, reduction)


@converts("ScatterND")
def scatter_nd(node: Node) -> Result:
    """Slices replaced or combined."""
    return op.scatter_nd(node[0], _coordinates(node, 0), node[2], _REDUCTIONS[node.text("reduction", "none")])


@converts("Compress")
def compress(node: Node) -> Result:
    """The slices, or elements, for which a condition holds; the longer one of axis and condition counts as far as
    the other.
    """
    axis = node.attributes.get("axis")
    x = node[0] if axis is not None else op.flatten(node[0])
    at = 0 if axis is None else node.axis()
    length = x.shape[at] if x.shape is not None else None
    if length is None:
        raise Refusal("the shape of the data is not known while importing")
    places = node.graph.settled(op.nonzero(op.strided_slice(node[1], [0], [0], [length])), None)
    return op.take(x, op.flatten(places), at)


@converts("ReverseSequence")
def reverse_sequence(node: Node) -> Result:
    """Each sequence of a batch reversed up to its length."""
    batch, time = node.integer("batch_axis", 1), node.integer("time_axis")

    def kernel(x: te.Tensor, lengths: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            length = te.cast(lengths[i[batch]], "index")
            place = te.select(i[time] < length, length - 1 - i[time], i[time])
            return x[(*i[:time], place, *i[time + 1 :])]

        return te.compute(x.shape, element, name="reverse_sequence")

    what = "'ReverseSequence' lengths: expected each"
    lengths = at_least_0(node.bb, node[1], f"{what} at least 0, got one below it by")
    lengths = numbers_at_most(node.bb, lengths, node.shape()[time], f"{what} at most that of the axis, got")
    return node.te(kernel, node[0], lengths)


@converts("TensorScatter")
def tensor_scatter(node: Node) -> Result:
    """A cache with new elements written from a place on, along an axis; `circular` wraps around."""
    axis, circular = node.axis(default=-2), node.text("mode", "linear") == "circular"
    indices = node.optional(2)
    arguments: Sequence[Expr] = [node[0], node[1], *([] if indices is None else [indices])]

    def kernel(cache: te.Tensor, update: te.Tensor, *start: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            first = te.cast(start[0][i[0]], "index") if start else te.cast(te.const(0, "i64"), "index")
            offset = i[axis] - first
            place = te.floormod(offset, cache.shape[axis]) if circular else offset
            inside = te.logical_and(place >= 0, place < update.shape[axis])
            safe = te.select(inside, place, te.cast(te.const(0, "i64"), "index"))
            return te.if_then_else(inside, update[(*i[:axis], safe, *i[axis + 1 :])], cache[i])

        return te.compute(cache.shape, element, name="tensor_scatter")

    return node.te(kernel, *arguments)
