"""Take, slices, gather and scatter.

Positions are data. A negative one counts from the back. One out of range is read as the nearest position and not
written at all, so that no kernel leaves its tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lowering.relax_to_tir.elementwise import narrow, widen
from lowering.relax_to_tir.kernel import (
    Kernel,
    as_position,
    axes,
    axes_of,
    axis_of,
    broadcast_load,
    clamped,
    from_front,
    legalizes,
    sizes,
    without,
)
from relax_dialect.ops.gather import (
    GatherElementsOp,
    GatherNDOp,
    IndexPutOp,
    IndexTensorOp,
    OneHotOp,
    ScatterElementsOp,
    ScatterNDOp,
    SliceScatterOp,
)
from relax_dialect.ops.indexing import DynamicStridedSliceOp, StridedSliceOp, TakeOp, slice_index
from tir_dialect import te
from tir_dialect.dims import Dim, broadcast, constant
from tir_dialect.dtypes import byte_size, is_bool


@legalizes(TakeOp)
def take(kernel: Kernel, op: TakeOp) -> te.Tensor:
    """Slices at indices, none of which is outside of the tensor."""
    x, indices = kernel.tensor(op.x), kernel.tensor(op.indices)
    axis = 0 if op.axis is None else axis_of(op.axis, x.ndim)
    extent, mode = x.shape[axis], op.mode.data

    def element(*i: te.Expr) -> te.Expr:
        index = indices[i[axis : axis + indices.ndim]]
        if byte_size(index.dtype) == 1 and extent.constant_value == 1 << 8 and mode != "clip":
            # Every byte is an index, one with a sign counted from the end if it is negative: its bits without one.
            position = te.cast(te.cast(te.cast(index, "ui8"), "i32"), "index")
        elif mode == "wrap":
            # An index modulo an extent, also where it is more than any extent is.
            if str(index.dtype) == "ui64":
                position = te.cast(te.floormod(index, te.cast(extent, "ui64")), "index")
            else:
                position = te.cast(index, "index") % extent
        else:
            position = clamped(as_position(index) if mode == "clip" else from_front(index, extent), extent)
        return x[(*i[:axis], position, *i[axis + indices.ndim :])]

    return te.compute(kernel.shape(op.result), element, name="take")


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


_COMBINE: dict[str, Callable[[te.Expr, te.Expr], te.Expr]] = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": te.maximum,
    "min": te.minimum,
}

_COMBINE_TRUTH: dict[str, Callable[[te.Expr, te.Expr], te.Expr]] = {
    "update": lambda old, new: new,
    "add": te.logical_or,
    "mul": te.logical_and,
    "max": te.logical_or,
    "min": te.logical_and,
}
"""As NumPy does with truth values."""


@legalizes(GatherElementsOp)
def gather_elements(kernel: Kernel, op: GatherElementsOp) -> te.Tensor:
    """The element at the position of each index, but along the axis at the index."""
    x, indices = kernel.tensor(op.x), kernel.tensor(op.indices)
    axis = axis_of(op.axis, x.ndim)

    def element(*i: te.Expr) -> te.Expr:
        position = clamped(from_front(indices[i], x.shape[axis]), x.shape[axis])
        return x[(*i[:axis], position, *i[axis + 1 :])]

    return te.compute(indices.shape, element, name="gather_elements")


@legalizes(GatherNDOp)
def gather_nd(kernel: Kernel, op: GatherNDOp) -> te.Tensor:
    """Slices at coordinates, for each of the batches."""
    x, indices, batch = kernel.tensor(op.x), kernel.tensor(op.indices), op.batch_dims.value.data
    outer, count = indices.ndim - 1, indices.shape[-1].constant_term

    def element(*i: te.Expr) -> te.Expr:
        extents = x.shape[batch : batch + count]
        index = (clamped(from_front(indices[(*i[:outer], at)], extent), extent) for at, extent in enumerate(extents))
        return x[(*i[:batch], *index, *i[outer:])]

    return te.compute(kernel.shape(op.result), element, name="gather_nd")


@legalizes(ScatterElementsOp)
def scatter_elements(kernel: Kernel, op: ScatterElementsOp) -> te.Tensor:
    """The elements at the positions of indices changed; along the axis in order of the updates."""
    x, indices, updates = (kernel.tensor(operand) for operand in op.operands)
    axis = axis_of(op.axis, x.ndim)

    def target(i: Sequence[te.Expr]) -> tuple[te.Expr, ...]:
        return (*i[:axis], from_front(indices[tuple(i)], x.shape[axis]), *i[axis + 1 :])

    return scattered(
        x,
        [indices, updates],
        updates.shape,
        target,
        lambda i: updates[i],
        op.reduction.data,
        [axis],
        "scatter_elements",
    )


@legalizes(ScatterNDOp)
def scatter_nd(kernel: Kernel, op: ScatterNDOp) -> te.Tensor:
    """The slices at coordinates changed, in order of the updates."""
    x, indices, updates = (kernel.tensor(operand) for operand in op.operands)
    outer, count = indices.ndim - 1, indices.shape[-1].constant_term

    def target(i: Sequence[te.Expr]) -> tuple[te.Expr, ...]:
        extents = x.shape[:count]
        coordinates = (from_front(indices[(*i[:outer], at)], extent) for at, extent in enumerate(extents))
        return (*coordinates, *i[outer:])

    return scattered(
        x,
        [indices, updates],
        updates.shape,
        target,
        lambda i: updates[i],
        op.reduction.data,
        range(outer),
        "scatter_nd",
    )


def scattered(
    x: te.Tensor,
    operands: Sequence[te.Tensor],
    shape: Sequence[Dim],
    target_of: Callable[[Sequence[te.Expr]], tuple[te.Expr, ...]],
    update: Callable[[tuple[te.Expr, ...]], te.Expr],
    reduction: str,
    ordered: Sequence[int],
    name: str,
) -> te.Tensor:
    """`x` with an update for each index of `shape`, made of `operands`.

    Those that differ in the `ordered` axes may meet in one position and are made one by one.
    """
    combine = (_COMBINE_TRUTH if is_bool(x.dtype) else _COMBINE)[reduction]

    def scatter(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        (y,) = outs
        with b.block("copy", *axes(x.shape)) as i:
            b.store(y, i, widen(x[i]))
        with b.block(name, *axes(shape, ordered)) as i:
            target = tuple(b.let(each, "place") for each in target_of(i))
            inside = (te.logical_and(each >= 0, each < extent) for each, extent in zip(target, x.shape, strict=True))
            with b.if_(te.logical_and(*inside)):
                b.store(y, target, combine(y[target], widen(update(i))))

    wide = str(widen(te.const(0, x.dtype)).dtype)
    (y,) = te.extern([(x.shape, wide)], list(dict.fromkeys((x, *operands))), scatter, name=name)
    return y if wide == str(x.dtype) else te.compute(x.shape, lambda *i: narrow(y[i], x), name=f"{name}_narrow")


@legalizes(OneHotOp)
def one_hot(kernel: Kernel, op: OneHotOp) -> te.Tensor:
    """`on` at the index, `off` elsewhere."""
    indices, shape = kernel.tensor(op.indices), kernel.shape(op.result)
    axis = axis_of(op.axis, len(shape))
    on, off = kernel.scalar(op.on), kernel.scalar(op.off)

    def element(*i: te.Expr) -> te.Expr:
        return te.select(te.cast(indices[without(i, axis)], "index") == i[axis], on, off)

    return te.compute(shape, element, name="one_hot")


@legalizes(IndexTensorOp)
def index_tensor(kernel: Kernel, op: IndexTensorOp) -> te.Tensor:
    """The slice at the position that the index tensors name."""
    x, indices = kernel.tensor(op.x), [kernel.tensor(each) for each in op.indices]
    shape = kernel.shape(op.result)
    rank = len(shape) - x.ndim + len(indices)

    def element(*i: te.Expr) -> te.Expr:
        pairs = zip(indices, x.shape, strict=False)
        loads = ((broadcast_load(tensor, shape[:rank], i[:rank]), extent) for tensor, extent in pairs)
        return x[(*(clamped(from_front(load, extent), extent) for load, extent in loads), *i[rank:])]

    return te.compute(shape, element, name="index_tensor")


@legalizes(IndexPutOp)
def index_put(kernel: Kernel, op: IndexPutOp) -> te.Tensor:
    """The slices at the positions that the index tensors name, written or added to in order."""
    x, values = kernel.tensor(op.x), kernel.tensor(op.values)
    indices = [kernel.tensor(each) for each in op.indices]
    # The shape to which index tensors broadcast.
    rank = max(tensor.ndim for tensor in indices)
    shape = [constant(1)] * rank
    for tensor in indices:
        for axis, extent in enumerate(tensor.shape, rank - tensor.ndim):
            shape[axis] = extent if shape[axis] is extent else broadcast(shape[axis], extent)
    outer = tuple(shape)
    shape = (*outer, *x.shape[len(indices) :])

    def position(i: Sequence[te.Expr]) -> tuple[te.Expr, ...]:
        pairs = zip(indices, x.shape, strict=False)
        loads = (from_front(broadcast_load(tensor, outer, i[: len(outer)]), extent) for tensor, extent in pairs)
        return (*loads, *i[len(outer) :])

    return scattered(
        x,
        [*indices, values],
        shape,
        position,
        lambda i: broadcast_load(values, shape, i),
        "update" if op.accumulate is None else "add",
        range(len(outer)),
        "index_put",
    )


@legalizes(SliceScatterOp)
def slice_scatter(kernel: Kernel, op: SliceScatterOp) -> te.Tensor:
    """A copy, then the source instead of it."""
    x, source = kernel.tensor(op.x), kernel.tensor(op.source)
    axis, step = axis_of(op.axis, x.ndim), op.step.value.data
    first = slice_index(x.shape[axis], op.start.data, step)

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("copy", *axes(x.shape)) as i:
            b.store(outs[0], i, x[i])
        with b.block("slice_scatter", *axes(source.shape)) as i:
            b.store(outs[0], (*i[:axis], i[axis] * step + first, *i[axis + 1 :]), source[i])

    return te.extern([(x.shape, x.dtype)], list(dict.fromkeys((x, source))), body, name="slice_scatter")[0]
