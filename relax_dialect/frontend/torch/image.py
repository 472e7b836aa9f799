"""Images: resizing and sampling."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts

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
    """Another number of places along the spatial dimensions, one after the other."""
    kind = node.name.strip("_").removeprefix("upsample_").removesuffix("_aa").rstrip("123d")
    exact, x = kind == "nearest_exact", node.tensor("input" if node.has("input") else "self")
    spatial, smooth = len(node.out_dims()) - 2, node.name.endswith("_aa")
    coordinates = "align_corners" if node.flag("align_corners") else "half_pixel"
    for at, length in enumerate(node.out_dims()[2:]):
        assert x.shape is not None
        if x.shape[at + 2] == length:
            continue
        x = op.image.resize1d(
            x,
            length,
            at + 2,
            scale=_scale(node, at, spatial),
            method=_METHODS[kind.removesuffix("_exact")],
            coordinates="asymmetric" if kind == "nearest" else coordinates,
            rounding="round_prefer_ceil" if exact else "floor",
            cubic_alpha=-0.5 if smooth else -0.75,
            antialias=smooth,
            exclude_outside=smooth,
        )
    return x


def _scale(node: Node, at: int, spatial: int) -> float | None:
    """The factor of a spatial dimension, if the program says it."""
    if node.has("scale_factors"):
        return float(node.value("scale_factors")[at])
    name = "scales" if spatial == 1 else f"scales_{'dhw'[3 - spatial + at]}"
    return node.number(name) if node.has(name) else None


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
