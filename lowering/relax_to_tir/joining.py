"""Operators that join, cut and repeat tensors."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from lowering.relax_to_tir.indices import axes, axis_of
from lowering.relax_to_tir.kernel import Kernel, legalizes, rewrites
from relax_dialect.ops.joining import ConcatOp, RepeatOp, SplitOp, StackOp, TileOp
from relax_dialect.ops.manipulation import ReshapeOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import Dim, constant, minimum, product


@legalizes(ConcatOp)
def concat(kernel: Kernel, op: ConcatOp) -> te.Tensor:
    """One block per operand, each copying it to its position: with the other sizes of the result, so as to copy whole
    rows of the axis at a time.
    """
    shape = kernel.shape(op.result)
    axis = axis_of(op.axis, len(shape))
    lengths = [kernel.shape(operand)[axis] for operand in op.inputs]
    sizes = [(*shape[:axis], length, *shape[axis + 1 :]) for length in lengths]
    tensors = [kernel.tensor(*each) for each in zip(op.inputs, sizes, strict=True)]

    def copy(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        start = constant(0)
        for x in tensors:
            with b.block("copy", *axes(x.shape)) as i:
                b.store(outs[0], (*i[:axis], i[axis] + start, *i[axis + 1 :]), x[i])
            start = start + x.shape[axis]

    return te.extern([(shape, str(kernel.dtype(op.result)))], list(dict.fromkeys(tensors)), copy, name="concat")[0]


@legalizes(StackOp)
def stack(kernel: Kernel, op: StackOp) -> te.Tensor:
    """One block per operand, each copying it to its position, with the sizes of the result."""
    shape = kernel.shape(op.result)
    axis = axis_of(op.axis, len(shape))
    tensors = [kernel.tensor(operand, (*shape[:axis], *shape[axis + 1 :])) for operand in op.inputs]

    def copy(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        for index, x in enumerate(tensors):
            with b.block("copy", *axes(x.shape)) as i:
                b.store(outs[0], (*i[:axis], constant(index), *i[axis:]), x[i])

    return te.extern([(shape, str(kernel.dtype(op.result)))], list(dict.fromkeys(tensors)), copy, name="stack")[0]


@legalizes(SplitOp)
def split(kernel: Kernel, op: SplitOp) -> Sequence[te.Tensor]:
    """One computation per part."""
    x = kernel.tensor(op.x)
    axis = axis_of(op.axis, x.ndim)
    starts = _starts(op, x.shape[axis])

    def part(shape: Sequence[Dim], start: Dim) -> te.Tensor:
        return te.compute(shape, lambda *i: x[(*i[:axis], i[axis] + start, *i[axis + 1 :])], name="split")

    return [part(kernel.shape(result), start) for result, start in zip(op.res, starts, strict=True)]


def _starts(op: SplitOp, length: Dim) -> Sequence[Dim]:
    if op.indices is not None:
        return [constant(0), *(index.data for index in op.indices)]
    sections = len(op.res)
    part = -(-length // sections)
    return [minimum(index * part, length) for index in range(sections)]


@rewrites(RepeatOp)
def flat_repeat(op: RepeatOp, rewriter: PatternRewriter) -> Sequence[SSAValue] | None:
    """Without an axis, the repetition along that of a view with one dimension."""
    dims = SSAValue.get(op.x, type=TensorType).type.known_dims
    if op.axis is not None or dims is None:
        return None
    shape = ShapeOp([product(dims)])
    flat = ReshapeOp(op.x, shape)
    repeated = RepeatOp(flat.result, op.repeats.value.data, axis=0)
    rewriter.insert([shape, flat, repeated])
    return (repeated.result,)


@legalizes(RepeatOp)
def repeat(kernel: Kernel, op: RepeatOp) -> te.Tensor:
    """Each element several times."""
    x, shape, times = kernel.tensor(op.x), kernel.shape(op.result), op.repeats.value.data
    axis = 0 if op.axis is None else axis_of(op.axis, x.ndim)
    return te.compute(shape, lambda *i: x[(*i[:axis], i[axis] // times, *i[axis + 1 :])], name="repeat")


@legalizes(TileOp)
def tile(kernel: Kernel, op: TileOp) -> te.Tensor:
    """The tensor several times. Repetitions of whole rows are indices; those within a row are copied one after another,
    so that neighbours in memory stay neighbours.
    """
    x, shape = kernel.tensor(op.x), kernel.shape(op.result)
    new = len(shape) - x.ndim
    counts = [1] * (len(shape) - len(op.repeats)) + list(op.repeats.get_values())
    extents = [constant(1)] * new + list(x.shape)

    def element(*i: te.Expr) -> te.Expr:
        parts = zip(i, counts, extents, strict=True)
        return x[tuple(each if count == 1 else each % extent for each, count, extent in parts)[new:]]

    if not shape or counts[-1] == 1:
        return te.compute(shape, element, name="tile")

    def copy(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("tile", *axes([*shape[:-1], constant(counts[-1]), extents[-1]])) as i:
            parts = zip(i[:-2], counts[:-1], extents[:-1], strict=True)
            source = [each if count == 1 else each % extent for each, count, extent in parts]
            b.store(outs[0], (*i[:-2], i[-2] * extents[-1] + i[-1]), x[tuple([*source, i[-1]][new:])])

    return te.extern([(shape, str(kernel.dtype(op.result)))], [x], copy, name="tile")[0]
