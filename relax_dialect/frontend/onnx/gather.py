"""Gathering and scattering."""

from __future__ import annotations

from collections.abc import Sequence

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.edge_cases import (
    at_least_0,
    dim_at_most,
    distinct_axes,
    indices_within,
    none_zero,
    numbers_at_most,
)
from relax_dialect.frontend.onnx.node import Node, Result, converts, fixed, from_front
from relax_dialect.frontend.onnx.values import Refusal
from relax_dialect.inference import DEFAULT_PROVER
from tir_dialect import te
from tir_dialect.dims import Dim, constant, maximum

FAR = 1 << 61
"""No axis is so long; positions and strides beyond mean the same, and their differences have 64 bits."""

INT_MAX = (1 << 31) - 1
"""The standard recommends it for the end of a dimension of unknown size, and the least integer for the begin."""


@converts("Slice")
def slice_attributes(node: Node) -> Result:
    """Before version 10 positions are attributes."""
    if node.version >= 10:
        return slice_operands(node)
    starts, ends = node.integers("starts") or (), node.integers("ends") or ()
    axes = node.integers("axes") or tuple(range(len(starts)))
    return _sliced(node, axes, [constant(each) for each in starts], [constant(each) for each in ends], [1] * len(axes))


def slice_operands(node: Node) -> Result:
    """A slice along some axes, with strides."""
    starts, ends = node.dims(1), node.dims(2)
    axes = node.ints(3) if node.has(3) else None if starts is None else tuple(range(len(starts)))
    steps = node.dims(4) if node.has(4) else None
    if starts is None or ends is None or axes is None or (node.has(4) and steps is None):
        return _at_run_time(node)
    strides = [1] * len(axes) if steps is None else fixed([_within_far(step) for step in steps], "the stride")
    return _sliced(node, axes, starts, ends, strides)


def _sliced(
    node: Node, axes: Sequence[int], starts: Sequence[Dim], ends: Sequence[Dim], strides: Sequence[int]
) -> Expr:
    positions, shape = [from_front(axis, node.rank()) for axis in axes], node.shape()
    if len(set(positions)) < len(positions):
        raise Refusal(f"the axes {', '.join(map(str, axes))} name one of them twice")
    starts, ends = [
        [_within_far(index, shape[axis]) for index, axis in zip(each, positions, strict=True)]
        for each in (starts, ends)
    ]
    starts = [_start(*each, node.shape()) for each in zip(starts, positions, strides, strict=True)]
    return op.strided_slice(node[0], positions, starts, ends, strides)


def _within_far(position: Dim, axis: Dim | None = None) -> Dim:
    number = position.constant_value
    if number is not None and axis is not None and not axis.is_constant and not -INT_MAX - 1 < number < INT_MAX:
        return constant(FAR if number > 0 else -FAR)
    return position if number is None else constant(max(min(number, FAR), -FAR))


def _start(start: Dim, axis: int, stride: int, shape: Sequence[Dim]) -> Dim:
    """Where a slice starts: with a negative stride it is clamped to the first element, where Python's has none."""
    if stride > 0 or not DEFAULT_PROVER.less(start, 0):
        return start
    return constant(0) if (start.constant_value or 0) <= -FAR else maximum(start + shape[axis], 0)


def _at_run_time(node: Node) -> Expr:
    """A slice whose positions are data: for all axes, those that are not named in full."""
    rank, shape = node.rank(), node.shape()
    given = [node[index] for index in (1, 2)]
    axes = distinct_axes(node.bb, node[3], rank, "'Slice'") if node.has(3) else node.te(_counting, node[1])
    steps = (
        none_zero(node.bb, node[4], "'Slice'") if node.has(4) else op.full(list(node.shape(1)), node.bb.const(1, "i64"))
    )

    def positions(starts: te.Tensor, ends: te.Tensor, axes: te.Tensor, steps: te.Tensor) -> Sequence[te.Tensor]:
        return te.extern([((rank,), "i64")] * 3, [starts, ends, axes, steps], _fill(shape), name="slice_places")

    begin, end, strides = node.te_all(positions, *given, axes, steps)
    return op.dynamic_strided_slice(node[0], begin, end, strides)


def _counting(starts: te.Tensor) -> te.Tensor:
    """The first axes, one for each position where a slice starts."""

    def axis(i: te.Expr) -> te.Expr:
        return te.cast(i, "i64")

    return te.compute(starts.shape, axis, name="counting")


def _fill(shape: Sequence[Dim]):
    """What writes positions for all axes, clipped as NumPy clips them."""

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        starts, ends, axes, steps = ins
        for axis, dim in enumerate(shape):
            b.store(outs[0], axis, 0)
            b.store(outs[1], axis, te.cast(te.cast(dim, "index"), "i64"))
            b.store(outs[2], axis, 1)
        with b.for_range(0, axes.shape[0], "i") as i:
            for axis in range(len(shape)):
                here = te.floormod(te.cast(axes[i], "i64"), len(shape)) == axis
                with b.if_(here):
                    start, step = te.cast(starts[i], "i64"), te.cast(steps[i], "i64")
                    first = -te.cast(te.cast(shape[axis], "index"), "i64")
                    b.store(outs[0], axis, te.select(step < 0, te.maximum(start, first), start))
                    b.store(outs[1], axis, te.cast(ends[i], "i64"))
                    b.store(outs[2], axis, te.cast(steps[i], "i64"))

    return body


_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@converts("Gather")
def gather(node: Node) -> Result:
    """Slices at indices along an axis."""
    axis = node.axis()
    return op.take(node[0], _within(node, [node.shape()[axis]]), axis)


def _within(node: Node, extents: Sequence[Dim]) -> Expr:
    """The indices, operand 1, each within its extent, of which there are several for the last dimension."""
    positions, lengths = node.ints(1), [extent.constant_value for extent in extents]
    if positions is None or None in lengths:
        return indices_within(node.bb, node[1], extents, f"'{node.op_type}' indices")
    for at, position in enumerate(positions):
        length = lengths[at % len(lengths)]
        if length is not None and not -length <= position < length:
            raise Refusal(f"the index {position} is not within a dimension of {length}")
    return node[1]


@converts("GatherElements")
def gather_elements(node: Node) -> Result:
    """One element for each index."""
    axis = node.axis()
    return op.gather_elements(node[0], _within(node, [node.shape()[axis]]), axis)


@converts("GatherND")
def gather_nd(node: Node) -> Result:
    """Slices at positions with several coordinates."""
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
    positions = node.graph.settled(op.nonzero(op.strided_slice(node[1], [0], [0], [length])), None)
    return op.take(x, op.flatten(positions), at)


@converts("ReverseSequence")
def reverse_sequence(node: Node) -> Result:
    """Each sequence of a batch reversed up to its length."""
    batch, time = node.integer("batch_axis", 1), node.integer("time_axis")
    if {batch, time} != {0, 1}:
        raise Refusal(f"expected batch_axis and time_axis to be 0 and 1, got {batch} and {time}")

    def kernel(x: te.Tensor, lengths: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            length = te.cast(lengths[i[batch]], "index")
            position = te.select(i[time] < length, length - 1 - i[time], i[time])
            return x[(*i[:time], position, *i[time + 1 :])]

        return te.compute(x.shape, element, name="reverse_sequence")

    what = "'ReverseSequence' lengths: expected each"
    lengths = at_least_0(node.bb, node[1], f"{what} at least 0, got one below it by")
    lengths = numbers_at_most(node.bb, lengths, node.shape()[time], f"{what} at most that of the axis, got")
    return node.te(kernel, node[0], lengths)


@converts("TensorScatter")
def tensor_scatter(node: Node) -> Result:
    """A cache with new elements written from a place on, along an axis; `circular` wraps around, else they have to fit
    in.
    """
    axis, circular = node.axis(default=-2), node.text("mode", "linear") == "circular"
    indices, most, added = node.optional(2), node.shape()[axis], node.shape(1)[axis]
    what = "'TensorScatter' update: expected at most the length of the cache, got"
    arguments = [node[0], dim_at_most(node.bb, node[1], added, most, what)]
    if indices is not None and not circular:
        what = "'TensorScatter' write indices: expected each"
        indices = at_least_0(node.bb, indices, f"{what} at least 0, got one below it by")
        indices = numbers_at_most(node.bb, indices, most - added, f"{what} to leave room for the update, got")
    if indices is not None:
        arguments.append(indices)

    def kernel(cache: te.Tensor, update: te.Tensor, *start: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            first = te.cast(start[0][i[0]], "index") if start else te.cast(te.const(0, "i64"), "index")
            offset = i[axis] - first
            position = te.floormod(offset, cache.shape[axis]) if circular else offset
            inside = te.logical_and(position >= 0, position < update.shape[axis])
            safe = te.select(inside, position, te.cast(te.const(0, "i64"), "index"))
            return te.if_then_else(inside, update[(*i[:axis], safe, *i[axis + 1 :])], cache[i])

        return te.compute(cache.shape, element, name="tensor_scatter")

    return node.te(kernel, *arguments)
