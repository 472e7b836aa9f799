"""Take and slices."""

from __future__ import annotations

from lowering.legalize.context import Kernel, legalizes
from lowering.legalize.indices import axes_of, axis_of, clamped, from_front
from relax_dialect.ops.indexing import StridedSliceOp, TakeOp, slice_place
from tir_dialect import te


@legalizes(TakeOp)
def take(kernel: Kernel, op: TakeOp) -> te.Tensor:
    """Slices at indices. In `fast` mode too no kernel reads outside of the tensor."""
    x, indices = kernel.tensor(op.x), kernel.tensor(op.indices)
    axis = 0 if op.axis is None else axis_of(op.axis, x.ndim)
    extent, mode = x.shape[axis], op.mode.data

    def element(*i: te.Expr) -> te.Expr:
        index = indices[i[axis : axis + indices.ndim]]
        if mode == "wrap":
            place = te.cast(index, "index") % extent
        else:
            place = clamped(te.cast(index, "index") if mode == "clip" else from_front(index, extent), extent)
        return x[(*i[:axis], place, *i[axis + indices.ndim :])]

    return te.compute(kernel.shape(op.result), element, name="take")


@legalizes(StridedSliceOp)
def strided_slice(kernel: Kernel, op: StridedSliceOp) -> te.Tensor:
    """The elements at `begin`, `begin + stride`, ... along each of the axes."""
    x = kernel.tensor(op.x)
    axes = axes_of(op.axes, x.ndim)
    strides = (1,) * len(axes) if op.strides is None else tuple(op.strides.get_values())
    steps = {
        axis: (begin.data if op.assume_inbound is not None else slice_place(x.shape[axis], begin.data, stride), stride)
        for axis, begin, stride in zip(axes, op.begin, strides, strict=True)
    }

    def place(axis: int, index: te.Expr) -> te.Expr:
        if axis not in steps:
            return index
        first, stride = steps[axis]
        return index * stride + first

    return te.compute(
        kernel.shape(op.result), lambda *i: x[tuple(place(*each) for each in enumerate(i))], name="strided_slice"
    )
