"""How operators on images, most of which slide a window, may be shared.

Spatial dimensions are needed as a whole: windows reach into the tiles of others.

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

from lowering.distributed.factors import Factors, Labels, dims, named, shards
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
from relax_dialect.ops.pooling import AvgPool2dBackwardOp, MaxPool2dBackwardOp, PoolBase, PoolGradientOp
from relax_dialect.ops.vision import BoxNMSOp, GetValidCountsOp, ROIAlignOp, ROIPoolOp


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
