"""Operators of TVM's that are made of several of ours: losses, gradients, collapsing sums, object detection, images."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import f32, i64

from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.tvmscript.evaluator import items_of
from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader, Form, rank_of
from relax_dialect.frontend.tvmscript.relax_func.operators import relax_op
from relax_dialect.frontend.tvmscript.relax_func.values import known_number, same
from relax_dialect.frontend.tvmscript.source import Arguments, is_none
from relax_dialect.struct_info.types import ShapeType, TensorType, TupleType
from tir_dialect.dims import Dim, constant, product, symbol


@dataclass(frozen=True)
class NllArguments:
    """The arguments that a negative log likelihood and its gradient share."""

    predictions: Expr
    targets: Expr
    weights: Expr | None
    reduction: str
    ignored: int
    axis: int
    """The dimension of the classes."""

    def counts(self) -> Expr:
        """Which targets are not ignored."""
        return relax_op("not_equal")(self.targets, self.ignored)

    def classes(self) -> Expr:
        """The targets, with 0 for those that are ignored."""
        return relax_op("where")(self.counts(), self.targets, relax_op("zeros_like")(self.targets))

    def weight(self) -> Expr:
        """The weight of each target, 0 for those that are ignored."""
        dtype = self.predictions.type.dtype if isinstance(self.predictions.type, TensorType) else None
        if self.weights is None:
            return relax_op("astype")(self.counts(), dtype)
        weight = relax_op("take")(self.weights, self.classes(), axis=0)
        return relax_op("where")(self.counts(), weight, relax_op("zeros_like")(weight))


def read_nll_arguments(reader: ExpressionReader, given: Arguments) -> NllArguments:
    """The arguments `predictions targets weights reduction ignore_index`."""
    node = given.node
    predictions, targets = reader.read(given.require("predictions")), reader.read(given.require("targets"))
    weights_node, reduction_node, ignored_node = map(given.get, ("weights", "reduction", "ignore_index"))
    weights = None if weights_node is None else reader.value(weights_node)
    reduction = "mean" if reduction_node is None else reader.text(reduction_node)
    ignored = -100 if ignored_node is None else reader.integer(ignored_node)
    if reduction not in ("mean", "sum", "none"):
        reader.fail(reduction_node or node, f"expected mean, sum or none, got {reduction}")
    known = None if weights is None else reader.expr(node, weights)
    return NllArguments(predictions, targets, known, reduction, ignored, _class_axis(reader, node, predictions))


def _nll_loss(reader: ExpressionReader, node: ast.Call) -> object:
    """Minus what is predicted of the targets, weighted; the mean is that of the weights."""
    names = "predictions targets weights reduction ignore_index"
    nll = read_nll_arguments(reader, reader.arguments(node, "R.nn.nll_loss", names))

    def build() -> Expr:
        indices = relax_op("expand_dims")(nll.classes(), [nll.axis])
        values = relax_op("squeeze")(relax_op("gather_elements")(nll.predictions, indices, axis=nll.axis), [nll.axis])
        weight = nll.weight()
        loss = relax_op("negative")(values * weight)
        if nll.reduction == "none":
            return loss
        total = relax_op("sum")(loss)
        return total if nll.reduction == "sum" else total / relax_op("sum")(weight)

    return reader.emit(node, build)


def _class_axis(reader: ExpressionReader, node: ast.AST, predictions: Expr) -> int:
    """The dimension of the classes: the second, or the only one."""
    rank = predictions.type.rank if isinstance(predictions.type, TensorType) else None
    if not rank:
        reader.fail(node, f"expected predictions of known rank, at least 1, got {predictions.type}")
    return min(rank - 1, 1)


def _cross_entropy(reader: ExpressionReader, node: ast.Call) -> object:
    """Minus the sum of the products; of a matrix, the mean over rows."""
    given = reader.arguments(node, "R.nn.cross_entropy_with_logits", "predictions labels")
    predictions, labels = reader.read(given.require("predictions")), reader.read(given.require("labels"))
    axis = _class_axis(reader, node, predictions)

    def build() -> Expr:
        loss = relax_op("negative")(relax_op("sum")(predictions * labels))
        rows = predictions.type.known_dims if isinstance(predictions.type, TensorType) else None
        if axis == 0 or rows is None:
            return loss
        count = reader.scalar_tensor(node, reader.expr(node, rows[0]))
        dtype = predictions.type.dtype if isinstance(predictions.type, TensorType) else None
        return loss / relax_op("astype")(count, dtype)

    return reader.emit(node, build)


def _nll_loss_backward(reader: ExpressionReader, node: ast.Call) -> object:
    """Minus the weight where the target stands, by the mean's divisor; elsewhere 0."""
    names = "output_grad predictions targets weights reduction ignore_index"
    given = reader.arguments(node, "R.grad.nll_loss_backward", names)
    gradient = reader.read(given.require("output_grad"))
    nll = read_nll_arguments(reader, given)

    def build() -> Expr:
        weight = nll.weight()
        share = gradient / relax_op("sum")(weight) if nll.reduction == "mean" else gradient
        # Zeros with a value at the class of each target.
        values = relax_op("negative")(weight * share)
        axis = nll.axis
        indices, updates = (relax_op("expand_dims")(each, [axis]) for each in (nll.classes(), values))
        return relax_op("scatter_elements")(relax_op("zeros_like")(nll.predictions), indices, updates, axis=axis)

    return reader.emit(node, build)


def _take_backward(reader: ExpressionReader, node: ast.Call) -> object:
    """The sum of the gradients of all positions where a slice was taken to."""
    given = reader.arguments(node, "R.grad.take_backward", "output_grad x indices axis mode")
    gradient, x, indices = (reader.read(given.require(name)) for name in ("output_grad", "x", "indices"))
    rank, count = (rank_of(reader, node, each) for each in (x, indices))
    axis = 0 if (at := given.get("axis")) is None or is_none(at) else reader.integer(at) % max(rank, 1)
    # the slices of the data first, then everything around them
    of_data = [axis, *(each for each in range(rank) if each != axis)]
    around = rank + count - 1
    of_gradient = [*range(axis, axis + count), *range(axis), *range(axis + count, around)]

    def build() -> Expr:
        zeros = relax_op("zeros_like")(relax_op("permute_dims")(x, of_data))
        positions = relax_op("expand_dims")(indices, [count])
        summed = relax_op("scatter_nd")(
            zeros, positions, relax_op("permute_dims")(gradient, of_gradient), reduction="add"
        )
        return relax_op("permute_dims")(summed, [of_data.index(axis) for axis in range(rank)])

    return reader.emit(node, build)


def _collapse_like(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.collapse_sum_like(x, y)`."""
    given = reader.arguments(node, "R.collapse_sum_like", "data collapse_target")
    return _collapse(reader, node, given, reader.read(given.require("collapse_target")))


def _collapse_to(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.collapse_sum_to(x, shape)`."""
    given = reader.arguments(node, "R.collapse_sum_to", "data shape")
    return _collapse(reader, node, given, reader.value(given.require("shape")))


def _collapse(reader: ExpressionReader, node: ast.Call, given: Arguments, target: object) -> object:
    """The sum over the dimensions that broadcasting a tensor of the shape adds or widens."""
    x = reader.read(given.require("data"))
    old = x.type.known_dims if isinstance(x.type, TensorType) else None
    if isinstance(target, Expr):
        new = target.type.known_dims if isinstance(target.type, TensorType | ShapeType) else None
    else:
        new = [reader.to_dim(node, each) for each in items_of(target) or (target,)]
    if old is None or new is None or len(new) > len(old):
        reader.fail(node, "expected shapes that are known, the new one not longer")
    return reader.emit(node, lambda: _summed(x, old, new))


def _summed(x: Expr, old: Sequence[Dim], new: Sequence[Dim]) -> Expr:
    added = len(old) - len(new)
    inner = [added + at for at, dim in enumerate(new) if dim == constant(1) and old[added + at] != constant(1)]
    kept = relax_op("sum")(x, inner, keepdims=True) if inner else x
    result = relax_op("sum")(kept, list(range(added))) if added else kept
    return relax_op("reshape")(result, new)


def _hamming_window(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.hamming_window(length, periodic, alpha, beta, dtype)`."""
    names = "window_size periodic alpha beta dtype"
    given = reader.arguments(node, "R.hamming_window", names)
    length = reader.dim(given.require("window_size"))
    periodic, alpha, beta = (known_number(reader, given.require(name)) for name in names.split()[1:4])
    dtype = f32 if (written := given.get("dtype")) is None else reader.dtype(written)
    return reader.emit(
        node, lambda: relax_op("cosine_window")(length, [alpha, beta], periodic=bool(periodic), dtype=dtype)
    )


_ALL_CLASSES = "boxes scores max_output_boxes_per_class iou_threshold score_threshold output_format"

_COUNTS = "data score_threshold id_index score_index"

_OPTIONS = (
    "max_output_size iou_threshold force_suppress top_k coord_start score_index id_index return_indices "
    "invalid_to_bottom soft_nms_sigma score_threshold"
)

_PRIORS = "cls_pred loc_pred anchor clip threshold variances keep_background apply_softmax"


def option(reader: ExpressionReader, given: Arguments, name: str, default: Any) -> Any:
    """What is known about an argument when the text is read; the default where it is left out or `None`."""
    node = given.get(name)
    value = None if node is None else reader.value(node)
    if node is not None and isinstance(value, Expr):
        value = reader.known(node, value)
    return default if value is None else value


def _options(reader: ExpressionReader, given: Arguments, names: str) -> dict[str, Any]:
    """Those arguments that are given, as the constructors of ops take them."""
    found = {name: option(reader, given, name, None) for name in names.split()}
    present = {name: value for name, value in found.items() if value is not None}
    real = ("iou_threshold", "soft_nms_sigma", "score_threshold")
    flags = ("force_suppress", "return_indices", "invalid_to_bottom")
    return {
        name: float(value) if name in real else bool(value) if name in flags else value
        for name, value in present.items()
    }


def _valid_counts(reader: ExpressionReader, node: ast.Call) -> object:
    given = reader.arguments(node, "R.vision.get_valid_counts", _COUNTS)
    data, options = reader.read(given.require("data")), _options(reader, given, _COUNTS.removeprefix("data "))
    return reader.emit(node, lambda: relax_op("vision.get_valid_counts")(data, **options))


def _nms(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.vision.non_max_suppression(data, valid_count, indices, ...)`, whose options say which results it has."""
    given = reader.arguments(node, "R.vision.non_max_suppression", f"data valid_count indices {_OPTIONS}")
    operands = [reader.read(given.require(name)) for name in ("data", "valid_count", "indices")]
    options = _options(reader, given, _OPTIONS)
    wants_indices = options.pop("return_indices", True)

    def build() -> object:
        rows, kept, taken = relax_op("vision.box_nms")(*operands, **options)
        results = (kept, relax_op("expand_dims")(taken, [1]))
        return (rows, *results) if options.get("soft_nms_sigma", 0.0) > 0 else results

    def build_rows() -> object:
        return relax_op("vision.box_nms")(*operands, **options)[0]

    return reader.emit(node, build if wants_indices else build_rows)


# Boxes of all classes


def _all_class_nms(reader: ExpressionReader, node: ast.Call) -> object:
    """The boxes that are taken; in the manner of TensorFlow with their scores, batch by batch."""
    given = reader.arguments(node, "R.vision.all_class_non_max_suppression", _ALL_CLASSES)
    kind = option(reader, given, "output_format", "onnx")
    if kind not in ("onnx", "tensorflow"):
        reader.fail(given.require("output_format"), f"expected the output format onnx or tensorflow, got {kind}")
    boxes, scores = reader.read(given.require("boxes")), reader.read(given.require("scores"))
    limits = [reader.read(given.require(name)) for name in _ALL_CLASSES.split()[2:5]]
    dims = scores.type.known_dims if isinstance(scores.type, TensorType) else None
    if dims is None or len(dims) != 3:
        reader.fail(node, f"expected scores of known shape and rank 3, got {scores.type}")

    def build() -> object:
        scalars = [relax_op("reshape")(limit, []) for limit in limits]
        count = reader.builder.fresh_symbol("taken")
        rows = relax_op("vision.non_max_suppression")(boxes, scores, *scalars)
        taken = reader.builder.match_cast(rows, TensorType((count, constant(3)), i64))
        if kind == "onnx":
            return _filled(reader, taken, product(dims)), _length(taken)
        return _by_batch(taken, symbol(count), scores, dims)

    return reader.emit(node, build)


def _length(taken: Expr) -> Expr:
    return relax_op("strided_slice")(relax_op("shape_to_tensor")(relax_op("shape_of")(taken)), [0], [0], [1])


def _filled(reader: ExpressionReader, taken: Expr, most: Dim) -> Expr:
    """The rows; filled up with zeros where the text declares as many as there can be."""
    declared = reader.expected.fields[0] if isinstance(reader.expected, TupleType) else None
    if not isinstance(declared, TensorType) or declared.known_dims != (most, constant(3)):
        return taken
    filled = relax_op("concat")([taken, relax_op("zeros")([most, 3], i64)], 0)
    return relax_op("strided_slice")(filled, [0], [0], [most])


def _by_batch(taken: Expr, count: Dim, scores: Expr, dims: Sequence[Dim]) -> tuple[Expr, Expr, Expr]:
    """Class and box of what was taken of each batch from the top on, its scores, and how many they are."""
    batch = relax_op("strided_slice")(taken, [1], [0], [1])
    counts = relax_op("sum")(
        relax_op("astype")(relax_op("equal")(batch, relax_op("arange")(0, dims[0], 1, i64)), i64), [0]
    )
    before = relax_op("cumsum")(counts, axis=0) - counts
    rank = relax_op("arange")(0, count, 1, i64) - relax_op("take")(before, relax_op("squeeze")(batch, [1]), 0)
    targets = relax_op("concat")([batch, relax_op("expand_dims")(rank, [1])], 1)
    pairs = relax_op("strided_slice")(taken, [1], [1], [3])
    indices = relax_op("scatter_nd")(relax_op("zeros")([dims[0], dims[1] * dims[2], 2], i64), targets, pairs)
    empty = relax_op("zeros")([dims[0], dims[1] * dims[2]], scores.dtype)
    return indices, relax_op("scatter_nd")(empty, targets, relax_op("gather_nd")(scores, taken)), counts


# Boxes from priors


def _multibox(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.vision.multibox_transform_loc`: boxes from priors and what a network says of them, and masked scores."""
    given = reader.arguments(node, "R.vision.multibox_transform_loc", _PRIORS)
    scores, locations, priors = (reader.read(given.require(name)) for name in _PRIORS.split()[:3])
    factors = _variances(reader, given)
    dims = locations.type.known_dims if isinstance(locations.type, TensorType) else None
    if dims is None or len(dims) != 2:
        reader.fail(given.require("loc_pred"), f"expected a tensor of known shape and rank 2, got {locations.type}")
    clip, least = option(reader, given, "clip", False), float(option(reader, given, "threshold", 0.0))
    keeps = option(reader, given, "keep_background", True)
    softmax = option(reader, given, "apply_softmax", True)

    def build() -> tuple[Expr, Expr]:
        likely = relax_op("nn.softmax")(scores, 1) if softmax else scores
        masked = likely * relax_op("astype")(likely >= least, likely.dtype)
        if not keeps:
            others = relax_op("strided_slice")(masked, [1], [1], [2**31 - 1])
            none = relax_op("zeros_like")(relax_op("strided_slice")(masked, [1], [0], [1]))
            masked = relax_op("concat")([none, others], 1)
        boxes = _decoded(locations, priors, dims, factors)
        return relax_op("clip")(boxes, 0.0, 1.0) if clip else boxes, masked

    return reader.emit(node, build)


def _variances(reader: ExpressionReader, given: Arguments) -> list[float]:
    """What the four parts of a position are multiplied by."""
    node = given.get("variances")
    items = (1.0,) * 4 if node is None else items_of(reader.value(node)) or ()
    factors = [float(each) for each in items if isinstance(each, int | float)]
    if len(factors) != 4:
        reader.fail(node or given.node, "expected four variances that are numbers")
    return factors


def _decoded(locations: Expr, priors: Expr, dims: Sequence[Dim], factors: Sequence[float]) -> Expr:
    """Least and greatest `y, x` of boxes whose centre and size are told by the priors'."""
    moved = relax_op("split")(relax_op("reshape")(locations, [dims[0], dims[1] // 4, 4]), sections=4, axis=2)
    left, top, right, bottom = relax_op("split")(priors, sections=4, axis=2)
    low: list[Expr] = []
    high: list[Expr] = []
    for axis, (start, end) in ((1, (top, bottom)), (0, (left, right))):
        middle = moved[axis] * factors[axis] * (end - start) + (start + end) * 0.5
        half = relax_op("exp")(moved[axis + 2] * factors[axis + 2]) * (end - start) * 0.5
        low.append(middle - half)
        high.append(middle + half)
    return relax_op("concat")([*low, *high], 2)


_REGIONS = "data rois pooled_size spatial_scale"

_VOLUMES = (
    "data size roi layout method coordinate_transformation_mode rounding_method cubic_alpha cubic_exclude "
    "extrapolation_value out_dtype"
)


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
    given = reader.arguments(node, "R.vision.roi_align", names)
    mode = option(reader, given, "mode", "avg")
    options = {
        "sampling_ratio": max(option(reader, given, "sample_ratio", -1), 0),
        "aligned": bool(option(reader, given, "aligned", False)),
        "mode": "max_point" if mode == "max" else mode,
    }
    return _pooled(reader, node, given, "vision.roi_align", options)


def _roi_pool(reader: ExpressionReader, node: ast.Call) -> object:
    given = reader.arguments(node, "R.vision.roi_pool", f"{_REGIONS} layout")
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
        images, indices = relax_op("strided_slice")(rois, [1], [0], [1]), relax_op("strided_slice")(rois, [1], [1], [5])
        batches = relax_op("astype")(relax_op("squeeze")(images, [1]), i64)
        data = x if layout == "NCHW" else relax_op("permute_dims")(x, [0, 3, 1, 2])
        found = relax_op(name)(data, indices, batches, height, width, spatial_scale=float(scale), **options)
        return found if layout == "NCHW" else relax_op("permute_dims")(found, [0, 2, 3, 1])

    return reader.emit(node, build)


# Volumes


def _resize3d(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.image.resize3d`: one axis after the other."""
    given = reader.arguments(node, "R.image.resize3d", _VOLUMES)
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
            node, lambda x=before, axis=axis, length=length: relax_op("image.resize1d")(x, length, axis, **options)
        )
    dtype = given.get("out_dtype")
    if dtype is None or (isinstance(dtype, ast.Constant) and not dtype.value):
        return result
    return reader.emit(node, lambda: result.astype(reader.dtype(dtype)))


_METHODS = {"bilinear": "linear", "bicubic": "cubic"}

_LAYOUTS = ("NCHW", "NCDHW", "NCW")


def _permuted(reader: ExpressionReader, node: ast.AST, value: Expr, axes: list[int]) -> Expr:
    return reader.emit(node, lambda: relax_op("permute_dims")(value, axes))


def _flag(reader: ExpressionReader, given: Arguments, name: str, default: bool) -> bool:
    node = given.get(name)
    return default if node is None else bool(reader.value(node))


def _grid_sample(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.image.grid_sample(x, grid)` with a grid of `(batch, 2, height, width)`."""
    names = "data grid method layout padding_mode align_corners"
    given = reader.arguments(node, "R.image.grid_sample", names)
    if (layout := given.get("layout")) is not None and reader.text(layout) not in _LAYOUTS:
        reader.fail(layout, f"R.image.grid_sample is taken with the layouts {', '.join(_LAYOUTS)} only")
    method = "bilinear" if (text := given.get("method")) is None else reader.text(text)
    padding = "zeros" if (text := given.get("padding_mode")) is None else reader.text(text)
    corners = _flag(reader, given, "align_corners", False)
    data, grid = reader.read(given.require("data")), reader.read(given.require("grid"))
    rank = rank_of(reader, node, grid)
    indices = _permuted(reader, node, grid, [0, *range(2, rank), 1])
    sample = relax_op("image.grid_sample")
    options = {"method": _METHODS.get(method, method), "padding_mode": padding, "align_corners": corners}
    return reader.emit(node, lambda: sample(data, indices, **options))


def _affine_grid(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.image.affine_grid(theta, size)` gives `(batch, 2, height, width)`."""
    given = reader.arguments(node, "R.image.affine_grid", "data size align_corners", {"target_shape": "size"})
    theta, size_node = reader.read(given.require("data")), given.require("size")
    size = reader.shape(size_node, reader.value(size_node))
    corners = _flag(reader, given, "align_corners", True)
    grid = relax_op("image.affine_grid")
    indices: Expr = reader.emit(node, lambda: grid(theta, size, align_corners=corners))
    rank = rank_of(reader, node, indices)
    return _permuted(reader, node, indices, [0, rank - 1, *range(1, rank - 1)])


COMPOSED_FORMS: Mapping[str, Form] = {
    "nn.nll_loss": _nll_loss,
    "nn.cross_entropy_with_logits": _cross_entropy,
    **{f"grad.{name}": same for name in ("no_grad", "start_checkpoint", "end_checkpoint")},
    "grad.nll_loss_backward": _nll_loss_backward,
    "grad.take_backward": _take_backward,
    "collapse_sum_like": _collapse_like,
    "collapse_sum_to": _collapse_to,
    "hamming_window": _hamming_window,
    "vision.all_class_non_max_suppression": _all_class_nms,
    "vision.get_valid_counts": _valid_counts,
    "vision.multibox_transform_loc": _multibox,
    "vision.non_max_suppression": _nms,
    "vision.roi_align": _roi_align,
    "vision.roi_pool": _roi_pool,
    "image.resize3d": _resize3d,
    "image.grid_sample": _grid_sample,
    "image.affine_grid": _affine_grid,
}
"""Operators of TVM's that are made of several of ours."""
