"""Regions of images, and volumes: operators of TVM's that are several of ours."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import i64

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.frontend.tvmscript.relax_func.box_calls import option
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from tir_dialect.dims import Dim

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader

_REGIONS = "data rois pooled_size spatial_scale"
_VOLUMES = (
    "data size roi layout method coordinate_transformation_mode rounding_method cubic_alpha cubic_exclude "
    "extrapolation_value out_dtype"
)


def _op(name: str) -> Callable[..., Any]:
    return function_of(operator_classes()[f"relax.{name}"])


def _size(reader: ExpressionReader, given: Arguments, name: str, count: int) -> Sequence[Any]:
    """Several lengths; one stands for all of them."""
    node = given.require(name)
    value = reader.value(node)
    items = (value,) * count if isinstance(value, int | Dim) else items_of(value)
    if isinstance(value, Expr):
        items = tuple(reader.emit(node, lambda: value.shape) or ())
    if items is None or len(items) != count:
        reader.fail(node, f"expected {count} lengths")
    return items


# Regions of images


def _roi_align(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.vision.roi_align(x, rois, pooled_size, ...)`, where a region begins with the number of its image."""
    names = f"{_REGIONS} sample_ratio aligned layout mode"
    given = Arguments(reader.source, node, "R.vision.roi_align", names)
    mode = option(reader, given, "mode", "avg")
    options = {
        "sampling_ratio": max(option(reader, given, "sample_ratio", -1), 0),
        "aligned": bool(option(reader, given, "aligned", False)),
        "mode": "max_point" if mode == "max" else mode,
    }
    return _pooled(reader, node, given, "vision.roi_align", options)


def _roi_pool(reader: ExpressionReader, node: ast.Call) -> object:
    given = Arguments(reader.source, node, "R.vision.roi_pool", f"{_REGIONS} layout")
    return _pooled(reader, node, given, "vision.roi_pool", {})


def _pooled(
    reader: ExpressionReader, node: ast.Call, given: Arguments, name: str, options: Mapping[str, Any]
) -> object:
    x, rois = reader.read(given.require("data")), reader.read(given.require("rois"))
    height, width = _size(reader, given, "pooled_size", 2)
    scale, layout = option(reader, given, "spatial_scale", 1.0), option(reader, given, "layout", "NCHW")
    if layout not in ("NCHW", "NHWC"):
        reader.fail(given.get("layout") or node, f"expected the layout NCHW or NHWC, got {layout}")

    def build() -> Expr:
        images, places = _op("strided_slice")(rois, [1], [0], [1]), _op("strided_slice")(rois, [1], [1], [5])
        batches = _op("astype")(_op("squeeze")(images, [1]), i64)
        data = x if layout == "NCHW" else _op("permute_dims")(x, [0, 3, 1, 2])
        found = _op(name)(data, places, batches, height, width, spatial_scale=float(scale), **options)
        return found if layout == "NCHW" else _op("permute_dims")(found, [0, 2, 3, 1])

    return reader.emit(node, build)


# Volumes


def _resize3d(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.image.resize3d`: one axis after the other."""
    given = Arguments(reader.source, node, "R.image.resize3d", _VOLUMES)
    lengths, layout = _size(reader, given, "size", 3), option(reader, given, "layout", "NCDHW")
    if not isinstance(layout, str) or sorted(layout) != sorted("NCDHW"):
        reader.fail(given.get("layout") or node, f"expected a layout of N, C, D, H and W, got {layout}")
    coordinates = option(reader, given, "coordinate_transformation_mode", "half_pixel")
    rounding = "round" if coordinates == "align_corners" else "floor"
    options = {
        "method": option(reader, given, "method", "linear"),
        "coordinates": coordinates,
        "rounding": option(reader, given, "rounding_method", "") or rounding,
        "cubic_alpha": float(option(reader, given, "cubic_alpha", -0.75)),
        "exclude_outside": bool(option(reader, given, "cubic_exclude", 0)),
    }
    result = reader.read(given.require("data"))
    for letter, length in zip("DHW", lengths, strict=True):
        before = result
        axis = layout.index(letter)
        result = reader.emit(
            node, lambda x=before, axis=axis, length=length: _op("image.resize1d")(x, length, axis, **options)
        )
    dtype = given.get("out_dtype")
    if dtype is None or (isinstance(dtype, ast.Constant) and not dtype.value):
        return result
    return reader.emit(node, lambda: result.astype(reader.dtype(dtype)))


VISION_FORMS: Mapping[str, Callable[[ExpressionReader, ast.Call], object]] = {
    "vision.roi_align": _roi_align,
    "vision.roi_pool": _roi_pool,
    "image.resize3d": _resize3d,
}
