"""Images: resizing and sampling."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from tir_dialect.dims import Dim, to_dim

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
    """The elements of images at places that a grid gives."""
    return op.image.grid_sample(
        node.tensor("input"),
        node.tensor("grid"),
        method=("linear", "nearest", "cubic")[node.integer("interpolation_mode")],
        padding_mode=("zeros", "border", "reflection")[node.integer("padding_mode")],
        align_corners=node.flag("align_corners"),
    )


@converts("aten.affine_grid_generator.default")
def affine_grid(node: Node) -> Result:
    """The places to which affine maps take those of an image."""
    size = node.dims("size")[2:]
    return op.image.affine_grid(node.tensor("theta"), size, align_corners=node.flag("align_corners"))
