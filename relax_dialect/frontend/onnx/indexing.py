"""Slices."""

from __future__ import annotations

from collections.abc import Sequence

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node, fixed, from_front
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.range_checks import distinct_axes
from relax_dialect.inference import DEFAULT_PROVER
from tir_dialect import te
from tir_dialect.dims import Dim, constant, maximum

FAR = (1 << 63) - 1


@converts("Slice")
def slice_attributes(node: Node) -> Result:
    """Before version 10 places are attributes."""
    if node.version >= 10:
        return slice_operands(node)
    starts, ends = node.integers("starts") or (), node.integers("ends") or ()
    axes = node.integers("axes") or tuple(range(len(starts)))
    return op.strided_slice(node[0], [from_front(axis, node.rank()) for axis in axes], starts, ends)


def slice_operands(node: Node) -> Result:
    """A slice along some axes, with strides."""
    starts, ends = node.dims(1), node.dims(2)
    axes = node.ints(3) if node.has(3) else None if starts is None else tuple(range(len(starts)))
    steps = node.dims(4) if node.has(4) else None
    if starts is None or ends is None or axes is None or (node.has(4) and steps is None):
        return _at_run_time(node)
    strides = [1] * len(axes) if steps is None else fixed(steps, "the stride")
    places = [from_front(axis, node.rank()) for axis in axes]
    if len(set(places)) < len(places):
        raise Refusal(f"the axes {', '.join(map(str, axes))} name one of them twice")
    starts = [_start(*each, node.shape()) for each in zip(starts, places, strides, strict=True)]
    return op.strided_slice(node[0], places, starts, ends, strides)


def _start(start: Dim, axis: int, stride: int, shape: Sequence[Dim]) -> Dim:
    """Where a slice starts: with a negative stride it is clamped to the first element, where Python's has none."""
    if stride > 0 or not DEFAULT_PROVER.less(start, 0):
        return start
    return constant(0) if (start.constant_value or 0) <= -FAR else maximum(start + shape[axis], 0)


def _at_run_time(node: Node) -> Expr:
    """A slice whose places are data: for all axes, those that are not named in full."""
    rank, shape = node.rank(), node.shape()
    given = [node[index] for index in (1, 2)]
    axes = distinct_axes(node.bb, node[3], rank, "'Slice'") if node.has(3) else node.te(_counting, node[1])
    steps = node[4] if node.has(4) else op.full(list(node.shape(1)), node.bb.const(1, "i64"))

    def places(starts: te.Tensor, ends: te.Tensor, axes: te.Tensor, steps: te.Tensor) -> Sequence[te.Tensor]:
        return te.extern([((rank,), "i64")] * 3, [starts, ends, axes, steps], _fill(shape), name="slice_places")

    begin, end, strides = node.te_all(places, *given, axes, steps)
    return op.dynamic_strided_slice(node[0], begin, end, strides)


def _counting(starts: te.Tensor) -> te.Tensor:
    """The first axes, one for each place where a slice starts."""

    def axis(i: te.Expr) -> te.Expr:
        return te.cast(i, "i64")

    return te.compute(starts.shape, axis, name="counting")


def _fill(shape: Sequence[Dim]):
    """What writes places for all axes, clipped as NumPy clips them."""

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
