"""Operators that move elements: another order, padding; and joined, cut and repeated tensors.

Views (`reshape` and its kin) stay: they need no kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from lowering.relax_to_tir.elementwise import element, wide_dtype, widen
from lowering.relax_to_tir.kernel import Kernel, axes, axes_of, axis_of, broadcast_load, clamped, legalizes, rewrites
from relax_dialect.formulas import filled, surrounded
from relax_dialect.inference import DEFAULT_PROVER
from relax_dialect.ops.joining import ConcatOp, RepeatOp, SplitOp, StackOp, TileOp
from relax_dialect.ops.layouts import parse_layout, whole_dims
from relax_dialect.ops.manipulation import (
    BatchFlattenOp,
    BroadcastToOp,
    DropoutOp,
    FlipOp,
    PermuteDimsOp,
    PixelShuffleOp,
    ReshapeOp,
)
from relax_dialect.ops.rearranging import (
    LayoutTransformOp,
    MapIndicesOp,
    MeshgridOp,
    MultinomialFromUniformOp,
    PadOp,
    ReverseSequenceOp,
    mapped,
)
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import Dim, ceildiv, constant, minimum, product


@legalizes(PermuteDimsOp)
def permute_dims(kernel: Kernel, op: PermuteDimsOp) -> te.Tensor:
    """The dimensions in another order."""
    x = kernel.tensor(op.x)
    axes = tuple(reversed(range(x.ndim))) if op.axes is None else axes_of(op.axes, x.ndim)
    indices = [axes.index(axis) for axis in range(x.ndim)]
    shape = tuple(x.shape[axis] for axis in axes)
    return te.compute(shape, lambda *i: x[tuple(i[index] for index in indices)], name="transpose")


@legalizes(BroadcastToOp)
def broadcast_to(kernel: Kernel, op: BroadcastToOp) -> te.Tensor:
    """Repeated along dimensions of 1."""
    x, shape = kernel.tensor(op.x), kernel.shape(op.result)
    return te.compute(shape, lambda *i: broadcast_load(x, shape, i), name="broadcast_to")


@legalizes(FlipOp)
def flip(kernel: Kernel, op: FlipOp) -> te.Tensor:
    """In reverse order along the axis."""
    x = kernel.tensor(op.x)
    axis = axis_of(op.axis, x.ndim)
    last = x.shape[axis] - 1
    return te.compute(x.shape, lambda *i: x[(*i[:axis], last - i[axis], *i[axis + 1 :])], name="flip")


@rewrites(DropoutOp)
def dropout(op: DropoutOp, rewriter: PatternRewriter) -> Sequence[SSAValue]:
    """The tensor itself."""
    return (op.x,)


@rewrites(BatchFlattenOp)
def batch_flatten(op: BatchFlattenOp, rewriter: PatternRewriter) -> Sequence[SSAValue] | None:
    """A reshape, which is a view; one of unknown dimensions is left alone."""
    dims = op.result.type.known_dims
    if dims is None:
        return None
    shape = ShapeOp(dims)
    reshape = ReshapeOp(op.x, shape)
    rewriter.insert([shape, reshape])
    return (reshape.result,)


@legalizes(PixelShuffleOp)
def pixel_shuffle(kernel: Kernel, op: PixelShuffleOp) -> te.Tensor:
    """Every `factor`th row and column from another channel."""
    x, factor = kernel.tensor(op.x), op.upscale_factor.value.data

    def element(*i: te.Expr) -> te.Expr:
        *outer, channel, row, column = i
        position = channel * factor * factor + (row % factor) * factor + column % factor
        return x[(*outer, position, row // factor, column // factor)]

    return te.compute(kernel.shape(op.result), element, name="pixel_shuffle")


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


@legalizes(ReverseSequenceOp)
def reverse_sequence(kernel: Kernel, op: ReverseSequenceOp) -> te.Tensor:
    """The element as far from the end of the sequence as the position is from its start."""
    x, lengths = kernel.tensor(op.x), kernel.tensor(op.lengths)
    sequence, batch = axis_of(op.seq_axis, x.ndim), axis_of(op.batch_axis, x.ndim)

    def element(*i: te.Expr) -> te.Expr:
        length = te.minimum(te.cast(lengths[i[batch]], "index"), x.shape[sequence])
        position = te.select(i[sequence] < length, length - 1 - i[sequence], i[sequence])
        return x[(*i[:sequence], clamped(position, x.shape[sequence]), *i[sequence + 1 :])]

    return te.compute(x.shape, element, name="reverse_sequence")


@legalizes(MeshgridOp)
def meshgrid(kernel: Kernel, op: MeshgridOp) -> Sequence[te.Tensor]:
    """Each vector along its dimension."""
    vectors, shape = [kernel.tensor(vector) for vector in op.vectors], kernel.shape(op.res[0])
    pairs = zip(vectors, op.vectorized_axes, strict=True)
    return [_along(vector, shape, at) for vector, at in pairs]


def _along(vector: te.Tensor, shape: Sequence[Dim], index: int) -> te.Tensor:
    return te.compute(shape, lambda *i: vector[i[index]], name="meshgrid")


@legalizes(LayoutTransformOp)
def layout_transform(kernel: Kernel, op: LayoutTransformOp) -> te.Tensor:
    """The element whose whole coordinates are those of the position; zero beyond the end."""
    x, shape = kernel.tensor(op.x), kernel.shape(op.result)
    source, target = (parse_layout(text.data) or () for text in (op.source, op.target))
    blocks, inner = dict(source), dict(target)
    lengths: dict[str, Dim | None] = whole_dims(source, x.shape)

    def is_whole(length: Dim, block: int) -> bool:
        return length == ceildiv(length, constant(block)) * block

    def element(*i: te.Expr) -> te.Expr:
        at = dict(zip((letter for letter, _ in target), i, strict=True))
        whole: dict[str, te.Expr] = {}
        inside: list[te.Expr] = []
        for letter in lengths:
            small = letter.lower()
            whole[letter] = at[letter] * inner[small] + at[small] if small in inner else at[letter]
            length = lengths[letter]
            if small in inner and length is not None and not is_whole(length, inner[small]):
                inside.append(whole[letter] < length)
        index: list[te.Expr] = []
        for letter, size in source:
            block = blocks.get(letter.lower(), 0)
            position = whole[letter.upper()]
            index.append(position % size if letter.islower() else position // block if block else position)
        value = x[tuple(index)]
        return te.if_then_else(te.logical_and(*inside), value, te.const(0, x.dtype)) if inside else value

    return te.compute(shape, element, name="layout_transform")


@legalizes(MultinomialFromUniformOp)
def multinomial(kernel: Kernel, op: MultinomialFromUniformOp) -> te.Tensor:
    """A running sum for each sample, which counts how often it is not greater than the number."""
    probabilities, uniform, rows = (kernel.tensor(operand) for operand in op.operands)
    dtype, wide = str(kernel.dtype(op.result)), wide_dtype(probabilities.dtype)
    positions = probabilities.shape[1]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("multinomial", *axes((uniform.shape[0],))) as (i,):
            total, found = b.alloc((), wide, "total"), b.alloc((), "i64", "found")
            b.store(total, (), 0)
            b.store(found, (), 0)
            row = b.let(clamped(te.cast(rows[i, 0], "index"), probabilities.shape[0]), "row")
            with b.for_range(0, positions, "place") as position:
                b.store(total, (), total[()] + widen(probabilities[row, position]))
                below = te.cast(total[()], "f64") <= te.cast(widen(uniform[i, 0]), "f64")
                b.store(found, (), found[()] + te.cast(below, "i64"))
            last = te.cast(te.cast(positions - 1, "index"), "i64")
            b.store(outs[0], (i, 0), te.cast(te.minimum(found[()], last), dtype))

    inputs = list(dict.fromkeys((probabilities, uniform, rows)))
    return te.extern([(kernel.shape(op.result), dtype)], inputs, body, name="multinomial")[0]


@legalizes(PadOp)
def pad(kernel: Kernel, op: PadOp) -> te.Tensor:
    """The element that each position comes from, or the value."""
    x, mode = kernel.tensor(op.x), op.mode.data
    before = op.pad_width.get_values()[::2]
    shape = kernel.shape(op.result)
    if mode != "constant":
        return surrounded(x, shape, before, mode)
    # A constant, by which schedules know what this is.
    return filled(x, shape, before, element(op.pad_value.value.data, x.dtype))


@legalizes(MapIndicesOp)
def map_indices(kernel: Kernel, op: MapIndicesOp) -> te.Tensor:
    """The value in all positions, unless each has an element; then every element to its own."""
    x, shape, dtype = kernel.tensor(op.x), kernel.shape(op.result), str(kernel.dtype(op.result))
    is_full = DEFAULT_PROVER.equal(product(x.shape), product(shape)) is True

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        if not is_full:
            with b.block("pad_value", *axes(shape)) as position:
                b.store(outs[0], position, element(op.pad_value.value.data, x.dtype))
        with b.block("map_indices", *axes(x.shape)) as index:
            b.store(outs[0], mapped(op.index_map.data, index), x[index])

    return te.extern([(shape, dtype)], [x], body, name="map_indices")[0]
