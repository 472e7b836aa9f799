"""How elementwise operators, what makes tensors, and what changes shapes, rearranges, pads, joins and splits tensors,
may be shared.

B1: elementwise operators along every dimension of the result; an operand that is broadcast along it is needed as a
whole there. So `astype`, too.
A2: `prelu` along every dimension, of which the one of its axis is that of the slopes, too.
A3: softmax along every dimension but its axis.
Q1: `quantize` and `dequantize` along every dimension; the one of the axis is that of scales and zero points, too.
Q2: `dequantize_blocks` along every dimension, the last one by blocks, which stay in one piece.
C1: `full`, `zeros` and `ones` along every dimension, and so the ones that are like another tensor.
C2: `tril` and `triu` along every dimension but the last two.
M1: `permute_dims`, `expand_dims` and `squeeze` along every dimension that operand and result have.
M2: `reshape` and `flatten` along dimensions that stay, and along the first of those that are made one, or that one
becomes: by units, so that tiles stay in one piece. Where units are not known, workers have to divide the dimensions.
M3: `broadcast_to` along every dimension of the result; the operand is needed as a whole where it is broadcast.
M4: `flip` along every dimension but its axis.
Y1: `dropout`, which leaves a tensor as it is, along every dimension.
Y2: `batch_flatten` along the batch.
Y3: `pixel_shuffle` along every dimension but the last three.
E1: `reverse_sequence` along every dimension but that of the sequence; that of the batch is that of the lengths, too.
E2: `meshgrid` along every dimension of the results, of which each vector has one.
E3: `layout_transform` along the dimensions that both layouts have and neither cuts into blocks.
E4: `multinomial_from_uniform` along the samples; all workers have the probabilities.
PD1: `pad` along every dimension that is not padded.
J1: `concat` and `split` along every dimension but their axis.
J2: `stack` along every dimension of its operands.
J3: `repeat` along every dimension but its axis, and `tile` along those that it does not repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

from lowering.distributed.factors import Factors, Labels, broadcast, dims, named, shards
from relax_dialect.ops.activation import ClipOp, LeakyReluOp, LogSoftmaxOp, PreluOp, SoftmaxBase, SoftmaxOp, SoftplusOp
from relax_dialect.ops.creation import FullLikeOp, FullOp, OnesLikeOp, OnesOp, TrilOp, TriuOp, ZerosLikeOp, ZerosOp
from relax_dialect.ops.datatype import AstypeOp, DequantizeBlocksOp, DequantizeOp, QuantizeOp
from relax_dialect.ops.joining import ConcatOp, RepeatOp, SplitOp, StackOp, TileOp
from relax_dialect.ops.layouts import Layout
from relax_dialect.ops.manipulation import (
    BatchFlattenOp,
    BroadcastToOp,
    DropoutOp,
    ExpandDimsOp,
    FlattenOp,
    FlipOp,
    PermuteDimsOp,
    PixelShuffleOp,
    ReshapeOp,
    SqueezeOp,
)
from relax_dialect.ops.operator import ElementwiseOp, Operator
from relax_dialect.ops.rearranging import (
    LayoutTransformOp,
    MeshgridOp,
    MultinomialFromUniformOp,
    PadOp,
    ReverseSequenceOp,
)
from tir_dialect.dims import Dim, product


def elementwise(op: Operator) -> Factors:
    """B1, for any operator whose elements do not depend on each other."""
    operands, result = broadcast([dims(operand) for operand in op.operands], dims(op.results[0]))
    return Factors(operands, [result])


shards(ElementwiseOp, AstypeOp, ClipOp, LeakyReluOp, SoftplusOp)(elementwise)


@shards(PreluOp)
def prelu(op: PreluOp) -> Factors:
    """A2."""
    shape = dims(op.x)
    axis = op.axis.value.data % len(shape)
    (slope,), (along,) = broadcast([dims(op.slope)], shape[axis : axis + 1])
    labels = (*named("b", axis), along, *named("a", len(shape) - axis - 1))
    return Factors([labels, slope], [labels])


@shards(SoftmaxOp, LogSoftmaxOp)
def softmax(op: SoftmaxBase) -> Factors:
    """A3."""
    rank = len(dims(op.x))
    labels = named("d", rank, [op.axis.value.data % rank] if rank else [])
    return Factors([labels], [labels])


@shards(QuantizeOp, DequantizeOp)
def by_axis(op: QuantizeOp | DequantizeOp) -> Factors:
    """Q1."""
    rank = len(dims(op.x))
    labels: Labels = named("d", rank)
    axis = op.axis.value.data % rank if rank else 0
    others: list[Labels] = [(labels[axis],) if dims(value) else () for value in (op.scale, op.zero_point)]
    return Factors([labels, *others], [labels])


@shards(DequantizeBlocksOp)
def blocks(op: DequantizeBlocksOp) -> Factors:
    """Q2."""
    labels, block = named("d", len(dims(op.packed))), op.block_format
    return Factors([labels], [labels], units={str(labels[-1]): (block.bytes, block.elements)})


@shards(FullOp, ZerosOp, OnesOp)
def of_shape(op: FullOp | ZerosOp | OnesOp) -> Factors:
    """C1; a value is a tensor of rank 0, or none."""
    return Factors([() for _ in op.operands], [named("d", len(dims(op.result)))])


@shards(FullLikeOp, ZerosLikeOp, OnesLikeOp)
def like(op: FullLikeOp | ZerosLikeOp | OnesLikeOp) -> Factors:
    """C1."""
    labels = named("d", len(dims(op.operands[0])))
    return Factors([labels, *(() for _ in op.operands[1:])], [labels])


@shards(TrilOp, TriuOp)
def triangle(op: TrilOp | TriuOp) -> Factors:
    """C2."""
    rank = len(dims(op.x))
    labels = named("d", rank, [rank - 2, rank - 1])
    return Factors([labels], [labels])


@shards(PermuteDimsOp)
def permute_dims(op: PermuteDimsOp) -> Factors:
    """M1."""
    rank = len(dims(op.x))
    axes = [axis % rank for axis in op.axes.get_values()] if op.axes is not None else list(reversed(range(rank)))
    return Factors([named("d", rank)], [tuple(f"d{axis}" for axis in axes)])


@shards(ExpandDimsOp)
def expand_dims(op: ExpandDimsOp) -> Factors:
    """M1."""
    rank = len(dims(op.result))
    new = {axis % rank for axis in op.axes.get_values()}
    old = iter(range(rank))
    labels = tuple(None if at in new else f"d{next(old)}" for at in range(rank))
    return Factors([named("d", len(dims(op.x)))], [labels])


@shards(SqueezeOp)
def squeeze(op: SqueezeOp) -> Factors | None:
    """M1; without axes, dimensions have to be known to be 1."""
    x = dims(op.x)
    if op.axes is not None:
        gone = {axis % len(x) for axis in op.axes.get_values()}
    else:
        gone = {at for at, dim in enumerate(x) if dim is not None and dim.constant_value == 1}
    kept = [f"d{at}" for at in range(len(x)) if at not in gone]
    if len(kept) != len(dims(op.result)):
        return None
    return Factors([named("d", len(x), sorted(gone))], [tuple(kept)])


@shards(ReshapeOp, FlattenOp)
def reshape(op: ReshapeOp | FlattenOp) -> Factors | None:
    """M2."""
    old, new = dims(op.x), dims(op.result)
    if None in old or None in new:
        return None
    left, right, steps = _match([d for d in old if d is not None], [d for d in new if d is not None])
    shapes: tuple[Labels, ...] = (left,) if isinstance(op, FlattenOp) else (left, ())
    units = {factor: (own[0], *(1 for _ in shapes[1:]), own[1]) for factor, own in steps.items() if own is not None}
    return Factors(shapes, [right], even=frozenset(steps.keys() - units.keys()), units=units)


def _match(old: Sequence[Dim], new: Sequence[Dim]) -> tuple[Labels, Labels, dict[str, tuple[int, int] | None]]:
    """The factors of both shapes: groups of dimensions with equal products, of which the first ones belong together.
    Of groups of several dimensions, how many elements of these belong to one step, if that is known.
    """
    left: list[str | None] = [None] * len(old)
    right: list[str | None] = [None] * len(new)
    steps: dict[str, tuple[int, int] | None] = {}
    i = j = 0
    while i < len(old) and j < len(new):
        end, stop = _group(old, new, i, j)
        if end == i or stop == j:
            break
        first, last = _leading(old, i, end), _leading(new, j, stop)
        if first is not None and last is not None:
            left[first] = right[last] = f"d{i}"
            if end - first > 1 or stop - last > 1:
                rows = [product(dims).constant_value for dims in (old[first + 1 : end], new[last + 1 : stop])]
                steps[f"d{i}"] = _steps(*rows)
        i, j = end, stop
    return tuple(left), tuple(right), steps


def _steps(one: int | None, other: int | None) -> tuple[int, int] | None:
    """How many rows of so many elements have to stay together, so that both kinds of rows stay in one piece."""
    if not one or not other:
        return None
    piece = lcm(one, other)
    return piece // one, piece // other


def _leading(shape: Sequence[Dim], begin: int, end: int) -> int | None:
    """The first dimension of a group that is not 1."""
    return next((at for at in range(begin, end) if shape[at].constant_value != 1), None)


def _group(old: Sequence[Dim], new: Sequence[Dim], i: int, j: int) -> tuple[int, int]:
    """The ends of the shortest groups from `i` and `j` on whose products are equal; the starts if there are none."""
    for end in range(i + 1, len(old) + 1):
        for stop in range(j + 1, len(new) + 1):
            if product(old[i:end]) == product(new[j:stop]):
                return end, stop
    return i, j


@shards(BroadcastToOp)
def broadcast_to(op: BroadcastToOp) -> Factors:
    """M3."""
    (x,), result = broadcast([dims(op.x)], dims(op.result))
    return Factors([x, ()], [result])


@shards(FlipOp)
def flip(op: FlipOp) -> Factors:
    """M4."""
    rank = len(dims(op.x))
    labels = named("d", rank, [op.axis.value.data % rank])
    return Factors([labels], [labels])


shards(DropoutOp)(elementwise)  # Y1


@shards(BatchFlattenOp)
def batch_flatten(op: BatchFlattenOp) -> Factors:
    """Y2."""
    return Factors([("n", *(None,) * (len(dims(op.x)) - 1))], [("n", None)])


@shards(PixelShuffleOp)
def pixel_shuffle(op: PixelShuffleOp) -> Factors:
    """Y3."""
    rank = len(dims(op.x))
    labels: Labels = named("d", rank, range(rank - 3, rank))
    return Factors([labels], [labels])


@shards(ReverseSequenceOp)
def reverse_sequence(op: ReverseSequenceOp) -> Factors:
    """E1."""
    rank = len(dims(op.x))
    labels = named("d", rank, [op.seq_axis.value.data % rank])
    return Factors([labels, (labels[op.batch_axis.value.data % rank],)], [labels])


@shards(MeshgridOp)
def meshgrid(op: MeshgridOp) -> Factors:
    """E2."""
    labels = list(named("d", len(op.vectors)))
    operands: list[Labels] = [(label,) for label in labels]
    if op.indexing.data == "xy" and len(labels) > 1:
        labels[:2] = labels[1::-1]
    return Factors(operands, [tuple(labels) for _ in op.results])


@shards(LayoutTransformOp)
def layout_transform(op: LayoutTransformOp) -> Factors:
    """E3."""
    layouts = [Layout(text.data) for text in (op.source, op.target)]
    cut = {letter for layout in layouts for letter in layout.blocks}
    source, target = (
        tuple(letter if letter.isupper() and letter not in cut else None for letter in layout.letters)
        for layout in layouts
    )
    return Factors([source], [target])


@shards(MultinomialFromUniformOp)
def multinomial(op: MultinomialFromUniformOp) -> Factors:
    """E4."""
    return Factors([(None, None), ("n", None), ("n", None)], [("n", None)])


@shards(PadOp)
def pad(op: PadOp) -> Factors:
    """PD1."""
    rank, widths = len(dims(op.x)), op.pad_width.get_values()
    labels = named("d", rank, [at for at in range(rank) if widths[2 * at] or widths[2 * at + 1]])
    return Factors([labels], [labels])


@shards(ConcatOp, SplitOp)
def along_axis(op: ConcatOp | SplitOp) -> Factors:
    """J1."""
    rank = len(dims(op.operands[0]))
    labels = named("d", rank, [op.axis.value.data % rank])
    return Factors([labels for _ in op.operands], [labels for _ in op.results])


@shards(StackOp)
def stack(op: StackOp) -> Factors:
    """J2."""
    rank = len(dims(op.operands[0]))
    labels, axis = named("d", rank), op.axis.value.data % (rank + 1)
    return Factors([labels for _ in op.operands], [(*labels[:axis], None, *labels[axis:])])


@shards(RepeatOp)
def repeat(op: RepeatOp) -> Factors | None:
    """J3."""
    if op.axis is None:
        return None
    rank = len(dims(op.x))
    labels = named("d", rank, [op.axis.value.data % rank])
    return Factors([labels], [labels])


@shards(TileOp)
def tile(op: TileOp) -> Factors:
    """J3; the shorter one of shape and repeats is extended at the front."""
    rank, repeats = len(dims(op.x)), op.repeats.get_values()
    total = len(dims(op.result))
    times = (*(1,) * (total - len(repeats)), *repeats)
    result = tuple(f"d{at}" if times[at] == 1 and at >= total - rank else None for at in range(total))
    return Factors([result[total - rank :]], [result])
