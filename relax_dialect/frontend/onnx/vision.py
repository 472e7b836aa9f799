"""Object detection, and convolutions at places that are data."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.convolution import with_bias
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.kernels.columns import Blocks, columns_to_image
from relax_dialect.frontend.onnx.kernels.deformable import deform_conv
from relax_dialect.frontend.onnx.node import Node, fixed
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.onnx.windows import window_attributes
from tir_dialect.dims import floordiv, product


@converts("NonMaxSuppression")
def non_max_suppression(node: Node) -> Result:
    """The boxes with the best scores that do not overlap."""
    most = _scalar(node[2]) if node.has(2) else node.bb.const(0, "i64")
    overlap = _scalar(node[3]) if node.has(3) else node.like(0)
    least = _scalar(node[4]) if node.has(4) else node.like(float("-inf"))
    return op.vision.non_max_suppression(
        node[0], node[1], most, overlap, least, center_point_box=bool(node.integer("center_point_box"))
    )


def _scalar(x: Expr) -> Expr:
    return x if x.ndim == 0 else op.reshape(x, [])


@converts("RoiAlign")
def roi_align(node: Node) -> Result:
    """Regions of images brought to one size."""
    aligned = node.version >= 16 and node.text("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    return op.vision.roi_align(
        node[0],
        node[1],
        node[2],
        node.integer("output_height", 1),
        node.integer("output_width", 1),
        sampling_ratio=node.integer("sampling_ratio"),
        spatial_scale=node.number("spatial_scale", 1.0),
        mode=node.text("mode", "avg"),
        aligned=aligned,
        offset=0.5 if aligned else 0.0,
    )


@converts("DeformConv")
def deformable_convolution(node: Node) -> Result:
    """A convolution whose places are moved by offsets that are data."""
    if node.rank() != 4:
        raise Refusal("deformable convolutions over other than two dimensions are not supported")
    windows = window_attributes(node, node.shape()[2:], fixed(node.shape(1)[2:], "the kernel's shape"))
    arguments = [node[0], node[1], node[2], *([node[4]] if node.has(4) else [])]
    groups, offset_groups = node.integer("group", 1), node.integer("offset_group", 1)
    made = node.te(
        lambda *tensors: deform_conv(tensors, windows, groups, offset_groups), *arguments, name="deform_conv"
    )
    return with_bias(made, node.optional(3))


@converts("Col2Im")
def col2im(node: Node) -> Result:
    """Blocks of an image, put back and added up where they overlap."""
    image, block = node.dims(1), node.dims(2)
    hints = node.hinted_dims(2 + node.length(1))
    if image is None:
        image = node.run_time_dims(node[1], hints[2:])
    if block is None:
        block = node.run_time_dims(node[2])
    rank, depth = len(image), floordiv(node.shape()[1], product(block))
    (depth,) = node.named([depth], hints[1:2])
    blocks = Blocks(
        block,
        node.integers("strides") or (1,) * rank,
        node.integers("dilations") or (1,) * rank,
        node.integers("pads") or (0,) * (2 * rank),
        depth,
    )
    return node.te(lambda x: columns_to_image(x, image, blocks), node[0], name="col2im")
