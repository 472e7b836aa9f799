"""How convolutions, their transposes and deformable ones may be shared.

V1: along the batch, and along the filters of the kernel, which are channels of the result.
V2: along the channels of the data, which the kernel has, too: each worker has a term of the result.

Groups of channels are not separated, so that with more than one only the batch is left. Spatial dimensions are needed
as a whole: windows reach into the tiles of others.

DF1: `deform_conv2d` along the batch, and, of one group, along the filters.
DF2: `col2im` along the batch.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, Labels, dims, shards
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
from relax_dialect.ops.layouts import Layout


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
