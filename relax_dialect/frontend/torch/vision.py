"""Boxes and regions of images: the operators of torchvision."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import f32, i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.frontend.torch.windows import with_bias
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import symbol


@converts("torchvision.nms.default")
def nms(node: Node) -> Result:
    """The indices of the boxes with the best scores that do not overlap much, in descending order of scores."""
    boxes, scores = node.tensor("dets", f32), node.tensor("scores", f32)
    count = node.graph.dimension(node.shape("dets")[0], i64)
    limits = node.const(node.number("iou_threshold"), f32), node.const(-math.inf, f32)
    found = op.vision.non_max_suppression(op.expand_dims(boxes, [0]), op.expand_dims(scores, [0, 1]), count, *limits)
    found = node.graph.match(found, TensorType([symbol(node.bb.fresh_symbol("k")), 3], i64))
    return op.squeeze(op.strided_slice(found, [1], [2], [3]), [1])


def _regions(node: Node) -> tuple[Expr, Expr]:
    """The corners of regions, and which image each is of."""
    corners = op.strided_slice(node.tensor("rois"), [1], [1], [5])
    return corners, op.astype(op.squeeze(op.strided_slice(node.tensor("rois"), [1], [0], [1]), [1]), i64)


@converts("torchvision.roi_align.default")
def roi_align(node: Node) -> Result:
    """Means of points of regions that are interpolated."""
    aligned = node.flag("aligned")
    return op.vision.roi_align(
        node.tensor("input"),
        *_regions(node),
        node.integer("pooled_height"),
        node.integer("pooled_width"),
        sampling_ratio=max(node.integer("sampling_ratio"), 0),
        spatial_scale=node.number("spatial_scale"),
        aligned=aligned,
        offset=0.5 if aligned else 0.0,
    )


@converts("torchvision.roi_pool.default")
def roi_pool(node: Node) -> Result:
    """The greatest elements of the parts of regions."""
    if node.wants(1):
        raise Refusal("the indices of the greatest elements are not supported")
    sizes = node.integer("pooled_height"), node.integer("pooled_width")
    scale = node.number("spatial_scale")
    return [op.vision.roi_pool(node.tensor("input"), *_regions(node), *sizes, spatial_scale=scale), None]


@converts("torchvision.deform_conv2d.default")
def deform_conv2d(node: Node) -> Result:
    """A convolution whose window has its places moved by data."""
    x, offset = node.tensor("input"), node.tensor("offset")
    batch, channels, *space = node.shape("offset")
    mask = node.tensor("mask")
    if not node.flag("use_mask"):
        mask = op.full([batch, channels // 2, *space], node.like(1, x))
    pair = [[node.integer(f"{name}_{side}") for side in "hw"] for name in ("stride", "pad", "dilation")]
    made = op.nn.deform_conv2d(
        x,
        node.tensor("weight"),
        offset,
        mask,
        strides=pair[0],
        padding=pair[1] * 2,
        dilation=pair[2],
        groups=node.integer("groups"),
        offset_groups=node.integer("offset_groups"),
    )
    return with_bias(made, node.optional("bias"), 2)
