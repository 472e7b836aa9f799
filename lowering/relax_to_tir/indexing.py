"""Take and slices."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.relax_to_tir.indices import as_position, axes_of, axis_of, clamped, from_front
from lowering.relax_to_tir.kernel import Kernel, legalizes, sizes
from relax_dialect.ops.indexing import DynamicStridedSliceOp, StridedSliceOp, TakeOp, slice_index
from tir_dialect import te
from tir_dialect.dims import Dim


@legalizes(TakeOp)
def take(kernel: Kernel, op: TakeOp) -> te.Tensor:
    """Slices at indices, none of which is outside of the tensor."""
    x, indices = kernel.tensor(op.x), kernel.tensor(op.indices)
    axis = 0 if op.axis is None else axis_of(op.axis, x.ndim)
    extent, mode = x.shape[axis], op.mode.data

    def element(*i: te.Expr) -> te.Expr:
        index = indices[i[axis : axis + indices.ndim]]
        if mode == "wrap":
            position = _wrapped(index, extent)
        else:
            position = clamped(as_position(index) if mode == "clip" else from_front(index, extent), extent)
        return x[(*i[:axis], position, *i[axis + indices.ndim :])]

    return te.compute(kernel.shape(op.result), element, name="take")


def _wrapped(index: te.Expr, extent: Dim) -> te.Expr:
    """An index modulo an extent, also where it is more than any extent is."""
    if str(index.dtype) == "ui64":
        return te.cast(te.floormod(index, te.cast(extent, "ui64")), "index")
    return te.cast(index, "index") % extent


@legalizes(StridedSliceOp)
def strided_slice(kernel: Kernel, op: StridedSliceOp) -> te.Tensor:
    """The elements at `begin`, `begin + stride`, ... along each of the axes."""
    x = kernel.tensor(op.x)
    axes = axes_of(op.axes, x.ndim)
    strides = (1,) * len(axes) if op.strides is None else tuple(op.strides.get_values())
    steps = {
        axis: (begin.data if op.assume_inbound is not None else slice_index(x.shape[axis], begin.data, stride), stride)
        for axis, begin, stride in zip(axes, op.begin, strides, strict=True)
    }

    def position(axis: int, index: te.Expr) -> te.Expr:
        if axis not in steps:
            return index
        first, stride = steps[axis]
        return index * stride + first

    return te.compute(
        kernel.shape(op.result), lambda *i: x[tuple(position(*each) for each in enumerate(i))], name="strided_slice"
    )


@sizes(DynamicStridedSliceOp)
def dynamic_slice_sizes(kernel: Kernel, op: DynamicStridedSliceOp) -> Sequence[te.Tensor]:
    """The number of elements along each axis; kept: the first positions. A stride of 0 gives a size that no
    shape has.
    """
    x, begin, end, strides = (kernel.tensor(operand) for operand in op.operands)

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        for axis, extent in enumerate(x.shape):
            size = b.let(te.cast(te.cast(extent, "index"), "i64"), "size")
            stride = b.let(strides[axis], "stride")
            first, last = (b.let(_clipped(position[axis], size, stride), "place") for position in (begin, end))
            span = te.select(stride > 0, last - first, first - last)
            step = te.select(stride == 0, 1, te.abs(te.maximum(stride, -(1 << 62))))
            count = te.select(span > 0, (span - 1) // step + 1, 0)
            b.store(outs[0], axis, te.select(stride == 0, -1, count))
            b.store(outs[1], axis, first)

    vector = ((x.ndim,), "i64")
    return te.extern([vector, vector], [x, begin, end, strides], body, name="slice_sizes")


def _clipped(position: te.Expr, size: te.Expr, stride: te.Expr) -> te.Expr:
    """A position counted from the front and within reach, as Python's slices have it."""
    low = te.select(stride < 0, te.const(-1, "i64"), 0)
    return te.maximum(te.minimum(te.select(position < 0, position + size, position), size + low), low)


@legalizes(DynamicStridedSliceOp)
def dynamic_strided_slice(kernel: Kernel, op: DynamicStridedSliceOp) -> te.Tensor:
    """The elements at the first position, one stride further, ..."""
    x, strides, first = kernel.tensor(op.x), kernel.tensor(op.strides), kernel.kept(0)

    def element(*i: te.Expr) -> te.Expr:
        return x[tuple(first[axis] + te.cast(index, "i64") * strides[axis] for axis, index in enumerate(i))]

    return te.compute(kernel.shape(op.result), element, name="dynamic_strided_slice")
