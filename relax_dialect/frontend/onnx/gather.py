"""Gathering and scattering."""

from __future__ import annotations

from collections.abc import Sequence

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect import te

_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@converts("Gather")
def gather(node: Node) -> Result:
    """Slices at places along an axis; those that are data are clamped to it."""
    axis = node.axis()
    places, length = node.ints(1), node.shape()[axis].constant_value if node.rank() else None
    wrong = [place for place in places or () if length is not None and not -length <= place < length]
    if wrong:
        raise Refusal(f"the index {wrong[0]} is not within a dimension of {length}")
    return op.take(node[0], node[1], axis)


@converts("GatherElements")
def gather_elements(node: Node) -> Result:
    """One element for each index."""
    return op.gather_elements(node[0], node[1], node.axis())


@converts("GatherND")
def gather_nd(node: Node) -> Result:
    """Slices at places with several coordinates."""
    return op.gather_nd(node[0], node[1], node.integer("batch_dims"))


@converts("Scatter", "ScatterElements")
def scatter_elements(node: Node) -> Result:
    """Elements replaced or combined."""
    reduction = _REDUCTIONS[node.text("reduction", "none")]
    return op.scatter_elements(node[0], node[1], node[2], node.axis(), reduction)


@converts("ScatterND")
def scatter_nd(node: Node) -> Result:
    """Slices replaced or combined."""
    return op.scatter_nd(node[0], node[1], node[2], _REDUCTIONS[node.text("reduction", "none")])


@converts("Compress")
def compress(node: Node) -> Result:
    """The slices, or elements, for which a condition holds; what is beyond the condition does not count."""
    axis = node.attributes.get("axis")
    x = node[0] if axis is not None else op.flatten(node[0])
    places = node.graph.settled(op.nonzero(node[1]), None)
    return op.take(x, op.flatten(places), 0 if axis is None else node.axis())


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

    return node.te(kernel, node[0], node[1])


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
