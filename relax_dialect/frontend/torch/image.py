"""Images: resizing, sampling, and boxes and regions, the operators of torchvision."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import f32, i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.convolution import with_bias
from relax_dialect.frontend.torch.node import Node, Result, converts
from relax_dialect.frontend.torch.program import Refusal
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, symbol, to_dim

_METHODS = {
    "nearest": "nearest_neighbor",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "bicubic": "cubic",
}
_NAMES = ("nearest1d", "nearest2d", "nearest3d", "linear1d", "bilinear2d", "trilinear3d", "bicubic2d")
_EXACT = ("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d")
_SMOOTH = ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")


@converts(
    *(
        f"aten.{name}.{overload}"
        for name in (*(f"upsample_{each}" for each in _NAMES), *_EXACT, *_SMOOTH)
        for overload in ("default", "vec")
    )
)
def upsample(node: Node) -> Result:
    """Another number of elements along the spatial dimensions, one after the other."""
    kind = node.name.strip("_").removeprefix("upsample_").removesuffix("_aa").rstrip("123d")
    exact, x = kind == "nearest_exact", node.tensor("input" if node.has("input") else "self")
    smooth, aligned = node.name.endswith("_aa"), node.flag("align_corners")
    coordinates = "align_corners" if aligned and not smooth else "half_pixel"
    for at, length in enumerate(node.out_dims()[2:]):
        assert x.shape is not None
        size = x.shape[at + 2]
        assert size is not None
        scale = _scale(node, at, kind, size, length)
        if size == length and scale in (None, 1):
            continue
        x = op.image.resize1d(
            x,
            length,
            at + 2,
            scale=scale,
            method=_METHODS[kind.removesuffix("_exact")],
            coordinates="asymmetric" if kind == "nearest" else coordinates,
            rounding="round_prefer_ceil" if exact else "floor",
            cubic_alpha=-0.5 if smooth else -0.75,
            antialias=smooth,
            exclude_outside=smooth,
        )
    return x


def _scale(node: Node, at: int, kind: str, size: Dim | int, length: Dim) -> float | None:
    """The factor of a spatial dimension, if it is not that of the sizes.

    Where PyTorch has a shortcut for sizes that are the same or doubled, it does not look at the scale.
    """
    spatial, smooth = len(node.out_dims()) - 2, node.name.endswith("_aa")
    has_shortcut = smooth or kind in ("linear", "bilinear", "trilinear") or (kind == "nearest" and spatial == 2)
    if (has_shortcut and length == size) or (kind == "nearest" and spatial == 2 and length == size * 2):
        return None
    if node.flag("align_corners"):
        return _scale_of_corners(to_dim(size), length) if smooth else None
    if node.has("scale_factors"):
        return float(node.value("scale_factors")[at])
    name = "scales" if spatial == 1 else f"scales_{'dhw'[3 - spatial + at]}"
    return node.number(name) if node.has(name) else None


def _scale_of_corners(size: Dim, length: Dim) -> float:
    """The factor with which corners stay corners; PyTorch smooths with it around the middles of elements."""
    known, wanted = size.constant_value, length.constant_value
    if known is None or wanted is None or known < 2 or wanted < 2:
        raise Refusal("smooth resizing with aligned corners is supported for sizes that are known and above 1")
    return (wanted - 1) / (known - 1)


@converts("aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default", "aten.grid_sampler.default")
def grid_sampler(node: Node) -> Result:
    """The elements of images at positions that a grid gives."""
    return op.image.grid_sample(
        node.tensor("input"),
        node.tensor("grid"),
        method=("linear", "nearest", "cubic")[node.integer("interpolation_mode")],
        padding_mode=("zeros", "border", "reflection")[node.integer("padding_mode")],
        align_corners=node.flag("align_corners"),
    )


@converts("aten.affine_grid_generator.default")
def affine_grid(node: Node) -> Result:
    """The positions to which affine maps take those of an image."""
    size = node.dims("size")[2:]
    return op.image.affine_grid(node.tensor("theta"), size, align_corners=node.flag("align_corners"))


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
    """A convolution whose window has its positions moved by data."""
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
