"""How contractions, reductions, windows and the layers made of them may be shared.

L1: `matmul` along its batches, the rows of the first and the columns of the second operand.
L2: `matmul` along the contracted dimension: each worker has a term of the sum.
L3: `outer` along both dimensions.
L4: `einsum` along every letter; one that the result does not have gives terms of a sum.
T1: attention along the batch.
T2: attention along the heads. The heads of queries that one of keys serves stay on one worker; if there is one for all,
workers have it as a whole.
T3: attention along the queries, unless a causal mask counts them.
R1: reductions along every dimension that stays.
R2: `sum`, `prod`, `max` and `min` along a reduced dimension: each worker has a term. Of empty tiles there is no
greatest element, so that workers have to divide the dimension.
R3: running sums and products along every dimension but their axis.
N1: layer and RMS normalisation along every dimension but those over which they normalise; all workers have the weights.
N2: group and instance normalisation along the first dimension, if they do not normalise over it.
N3: batch normalisation along every dimension; the one of its axis is that of the statistics and weights, too.
RC1: recurrences along the batch, which data, lengths, states and results have. A quantised recurrence has one scale
for the states of the whole batch, and is computed by all workers alike.

Of operators on images spatial dimensions are needed as a whole: windows reach into the tiles of others.

V1: convolutions and their transposes along the batch, and along the filters of the kernel, which are channels of the
result.
V2: they along the channels of the data, which the kernel has, too: each worker has a term of the result. Groups of
channels are not separated, so that with more than one only the batch is left.
DF1: `deform_conv2d` along the batch, and, of one group, along the filters.
DF2: `col2im` along the batch.
P1: pooling along the batch and the channels.
GR1: gradients of pooling along the batch and the channels, which data, gradient and result have.
IM1: `resize2d` along the batch and the channels.
Z1: `resize1d` along every dimension but its axis.
SM1: `grid_sample` along the batch, the channels of the image, and the spatial dimensions of the grid.
SM2: `affine_grid` along the batch.
RV1: `roi_align` and `roi_pool` along the regions, and along the channels of the images.
DT1: `get_valid_counts` and `box_nms` along the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.distributed.factors import Factors, Labels, broadcast, dims, named, shards
from relax_dialect.inference import ONE
from relax_dialect.ops.convolution import (
    Col2ImOp,
    Conv1dOp,
    Conv1dTransposeOp,
    Conv2dOp,
    Conv2dTransposeOp,
    Conv3dOp,
    Conv3dTransposeOp,
    ConvolutionOp,
    DeformConv2dOp,
)
from relax_dialect.ops.image import AffineGridOp, GridSampleOp, Resize1dOp, Resize2dOp
from relax_dialect.ops.layouts import Layout
from relax_dialect.ops.linear_algebra import AttentionBiasOp, AttentionOp, EinsumOp, MatmulOp, OuterOp
from relax_dialect.ops.normalization import BatchNormOp, GroupNormOp, InstanceNormOp, LayerNormOp, RMSNormOp
from relax_dialect.ops.pooling import AvgPool2dBackwardOp, MaxPool2dBackwardOp, PoolBase, PoolGradientOp
from relax_dialect.ops.recurrent import GRUOp, LSTMOp, RecurrenceOp, RecurrentLayerOp, RNNOp
from relax_dialect.ops.reduction import (
    CumprodOp,
    CumsumOp,
    MaxOp,
    MeanOp,
    MedianOp,
    MinOp,
    ProdOp,
    ReductionOp,
    ScanOp,
    StdOp,
    SumOp,
    VarianceOp,
)
from relax_dialect.ops.vision import BoxNMSOp, GetValidCountsOp, ROIAlignOp, ROIPoolOp
from tir_dialect.dims import floordiv


@shards(MatmulOp)
def matmul(op: MatmulOp) -> Factors:
    """L1, L2."""
    x, y, result = dims(op.x), dims(op.y), dims(op.result)
    rows, columns = (1 if len(x) > 1 else 0), (1 if len(y) > 1 else 0)
    shapes = [shape[:-2] for shape in (x, y)]
    (left, right), batches = broadcast(shapes, result[: len(result) - rows - columns], "b")
    tail = ("i",) * rows + ("j",) * columns
    lhs: Labels = (*left, *("i",) * rows, "k")
    rhs: Labels = (*right, "k", *("j",) * columns)
    return Factors([lhs, rhs], [(*batches, *tail)], {"k": "sum"})


@shards(OuterOp)
def outer(op: OuterOp) -> Factors:
    """L3."""
    return Factors([("i",), ("j",)], [("i", "j")])


@shards(EinsumOp)
def einsum(op: EinsumOp) -> Factors | None:
    """L4, where each letter has one size."""
    text = op.subscripts.data.replace(" ", "")
    if "." in text or "->" not in text:
        return None
    inputs, _, output = text.partition("->")
    words = inputs.split(",")
    if any(len(set(word)) != len(word) for word in words):
        return None
    sizes: dict[str, set[object]] = {}
    for word, operand in zip(words, op.operands, strict=True):
        for letter, dim in zip(word, dims(operand), strict=True):
            sizes.setdefault(letter, set()).add(dim)
    shared = {letter for letter, found in sizes.items() if len(found) == 1}
    labels = [tuple(letter if letter in shared else None for letter in word) for word in words]
    reduced = {letter: "sum" for letter in sorted(shared) if letter not in output}
    return Factors(labels, [tuple(letter if letter in shared else None for letter in output)], reduced)


@shards(AttentionOp, AttentionBiasOp)
def attention(op: AttentionOp | AttentionBiasOp) -> Factors:
    """T1, T2, T3."""
    free = "q" if op.causal_mask is None else None
    queries: dict[str, str | None] = {"B": "b", "S": free, "H": "h", "D": None}
    keys: dict[str, str | None] = queries | {"S": None}
    q, k, v, out = op.layouts

    def labels(layout: Layout, by: dict[str, str | None]) -> Labels:
        return tuple(by[letter] for letter in layout.letters)

    whole = set[str]()
    operands: list[Labels] = [labels(q, queries), labels(k, keys), labels(v, keys)]
    if isinstance(op, AttentionBiasOp):
        sizes = dict(zip(operands[0], dims(op.q), strict=True))
        order = ("b", "h", free, None)
        own: list[str | None] = []
        for dim, label in zip(bias := dims(op.bias), order[len(order) - len(bias) :], strict=True):
            own.append(label if label is not None and dim == sizes.get(label) else None)
            if label is not None and dim not in (sizes.get(label), ONE):  # only the run time knows which it is
                whole.add(label)
        operands.append(tuple(own))
    operands += [("h",)] * (op.sink is not None)
    heads = [dims(value)[named.index("h")] for value, named in zip((op.q, op.k), operands, strict=False)]
    shared = [tuple(None if label in whole else label for label in each) for each in (*operands, labels(out, queries))]
    if heads[1] == ONE != heads[0]:
        for at in (1, 2):
            shared[at] = tuple(None if label == "h" else label for label in shared[at])
        return Factors(shared[:-1], shared[-1:])
    q_heads, kv_heads = heads
    if q_heads == kv_heads:
        return Factors(shared[:-1], shared[-1:])
    each = None if q_heads is None or kv_heads is None else floordiv(q_heads, kv_heads).constant_value
    if each is None:
        return Factors(shared[:-1], shared[-1:], even=frozenset("h"))
    return Factors(shared[:-1], shared[-1:], units={"h": [1 if at in (1, 2) else each for at in range(len(shared))]})


_TERMS: dict[type[ReductionOp], str] = {SumOp: "sum", ProdOp: "prod", MaxOp: "max", MinOp: "min"}


@shards(*_TERMS, MeanOp, VarianceOp, StdOp, MedianOp)
def reduction(op: ReductionOp) -> Factors:
    """R1, R2."""
    rank = len(dims(op.x))
    axes = range(rank) if op.axes is None else [axis % rank for axis in op.axes.get_values()]
    by = _TERMS.get(type(op))
    operand = named("d", rank, () if by else list(axes))
    kept = [None if at in axes else f"d{at}" for at in range(rank) if op.keepdims is not None or at not in axes]
    return Factors([operand], [tuple(kept)], {f"d{axis}": by for axis in axes} if by else {})


@shards(CumsumOp, CumprodOp)
def scan(op: ScanOp) -> Factors | None:
    """R3; without an axis the elements are in one row."""
    rank = len(dims(op.x))
    if op.axis is None:
        return None
    labels = named("d", rank, [op.axis.value.data % rank])
    return Factors([labels], [labels])


@shards(LayerNormOp, RMSNormOp)
def over_axes(op: LayerNormOp | RMSNormOp) -> Factors:
    """N1."""
    rank = len(dims(op.x))
    labels = named("d", rank, [axis % rank for axis in op.axes.get_values()])
    return Factors([labels, *((None,) * len(dims(weight)) for weight in op.operands[1:])], [labels])


@shards(GroupNormOp, InstanceNormOp)
def over_channels(op: GroupNormOp | InstanceNormOp) -> Factors:
    """N2."""
    rank = len(dims(op.x))
    whole = {axis % rank for axis in (*op.axes.get_values(), op.channel_axis.value.data)}
    labels = named("d", rank, sorted({*range(1, rank), *whole}))
    return Factors([labels, *((None,) * len(dims(weight)) for weight in op.operands[1:])], [labels])


@shards(BatchNormOp)
def by_statistics(op: BatchNormOp) -> Factors:
    """N3."""
    rank = len(dims(op.x))
    axis, labels = op.axis.value.data % rank, named("d", rank)
    return Factors([labels, *((f"d{axis}",) for _ in op.operands[1:])], [labels])


@shards(RNNOp, GRUOp, LSTMOp, RecurrenceOp)
def recurrence(op: RecurrentLayerOp | RecurrenceOp) -> Factors:
    """RC1."""
    first = isinstance(op, RecurrentLayerOp) and op.batch_first is not None
    data: Labels = ("n", None, None) if first else (None, "n", None)
    states: Labels = ("n", None, None) if first else (None, "n", None)
    outputs: Labels = ("n", None, None, None) if first else (None, None, "n", None)
    operands: list[Labels] = []
    for operand in op.operands:
        whole: Labels = (None,) * len(dims(operand))
        batches: Sequence[tuple[object, Labels]] = [
            (op.x, data),
            (op.lengths, ("n",)),
            *((state, states) for state in op.states),
        ]
        operands.append(next((labels for value, labels in batches if value == operand), whole))
    return Factors(operands, [outputs, *(states for _ in op.res[1:])])


@shards(Conv1dOp, Conv2dOp, Conv3dOp, Conv1dTransposeOp, Conv2dTransposeOp, Conv3dTransposeOp)
def convolution(op: ConvolutionOp) -> Factors:
    """V1, V2; channels in blocks are shared by blocks, if the blocks of both tensors are equally large."""
    data, kernel, out = op.layouts
    x, w, result = {"N": "n"}, dict[str, str](), {"N": "n"}
    if op.groups.value.data == 1:
        if _sizes(data, dims(op.x), "C") == _sizes(kernel, dims(op.w), "I"):
            x["C"] = w["I"] = "c"
        if _sizes(out, dims(op.result), "C") == _sizes(kernel, dims(op.w), "O"):
            result["C"] = w["O"] = "o"
    operands = [_labels(data, x), _labels(kernel, w)]
    return Factors(operands, [_labels(out, result)], {"c": "sum"} if "C" in x else {})


def _labels(layout: Layout, by: dict[str, str]) -> Labels:
    return tuple(by.get(letter) for letter in layout.letters)


def _sizes(layout: Layout, shape: tuple[object, ...], letter: str) -> tuple[object, ...]:
    """The dimensions of channels: of blocks, how many and how large they are."""
    return tuple(shape[layout.index(part)] for part in layout.parts(letter))


@shards(DeformConv2dOp)
def deform_conv2d(op: DeformConv2dOp) -> Factors:
    """DF1; channels have offsets in common, and are needed as a whole."""
    batch: Labels = ("n", None, None, None)
    filters = "o" if op.groups.value.data == 1 else None
    return Factors([batch, (filters, None, None, None), batch, batch], [("n", filters, None, None)])


@shards(Col2ImOp)
def col2im(op: Col2ImOp) -> Factors:
    """DF2."""
    labels = [("n", *(None,) * (len(dims(value)) - 1)) for value in (op.x, op.result)]
    return Factors([labels[0], ()], [labels[1]])


@shards(PoolBase)
def pool(op: PoolBase) -> Factors:
    """P1; channels in blocks are shared if operand and result have the same ones."""
    data, out = op.layouts
    shared = ("N", "C") if data.blocks == out.blocks else ("N",)
    return Factors([images(data, shared)] * len(op.operands), [images(out, shared)])


def images(layout: Layout, shared: tuple[str, ...] = ("N", "C")) -> Labels:
    """The factors of batch and channels, and none of other dimensions."""
    return tuple(letter.lower() if letter in shared else None for letter in layout.letters)


@shards(MaxPool2dBackwardOp, AvgPool2dBackwardOp)
def gradient(op: PoolGradientOp) -> Factors:
    """GR1."""
    data, out = op.layouts
    shared = ("N", "C") if data.blocks == out.blocks else ("N",)
    return Factors([images(data, shared), images(out, shared)], [images(data, shared)])


@shards(Resize2dOp)
def resize(op: Resize2dOp) -> Factors:
    """IM1; the size is that of the spatial dimensions."""
    labels = images(Layout("NCHW" if op.layout is None else op.layout.data))
    return Factors([labels, ()], [labels])


@shards(Resize1dOp)
def resize_axis(op: Resize1dOp) -> Factors:
    """Z1."""
    rank = len(dims(op.x))
    labels = named("d", rank, [op.axis.value.data % rank])
    return Factors([labels], [labels])


@shards(GridSampleOp)
def grid_sample(op: GridSampleOp) -> Factors:
    """SM1."""
    spatial = len(dims(op.x)) - 2
    positions = named("s", spatial)
    return Factors([("n", "c", *(None,) * spatial), ("n", *positions, None)], [("n", "c", *positions)])


@shards(AffineGridOp)
def affine_grid(op: AffineGridOp) -> Factors:
    """SM2."""
    return Factors([("n", None, None), ()], [("n", *(None,) * (len(dims(op.result)) - 1))])


@shards(ROIAlignOp, ROIPoolOp)
def by_region(op: ROIAlignOp | ROIPoolOp) -> Factors:
    """RV1; a region may be of any image, so all workers have the batch."""
    return Factors([(None, "c", None, None), ("r", None), ("r",)], [("r", "c", None, None)])


@shards(GetValidCountsOp, BoxNMSOp)
def by_batch(op: GetValidCountsOp | BoxNMSOp) -> Factors:
    """DT1: the first dimension of all operands and results."""
    operands, results = (
        [(("n", *(None,) * (len(dims(value)) - 1))) for value in values]
        for values in (tuple(op.operands), tuple(op.results))
    )
    return Factors(operands, results)
