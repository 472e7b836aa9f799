"""Object detection: choice among boxes, as TVM's operators have it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import i64

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.struct_info.types import TensorType, TupleType
from tir_dialect.dims import Dim, constant, product, symbol

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader

_ALL_CLASSES = "boxes scores max_output_boxes_per_class iou_threshold score_threshold output_format"
_COUNTS = "data score_threshold id_index score_index"
_OPTIONS = (
    "max_output_size iou_threshold force_suppress top_k coord_start score_index id_index return_indices "
    "invalid_to_bottom soft_nms_sigma score_threshold"
)
_PRIORS = "cls_pred loc_pred anchor clip threshold variances keep_background apply_softmax"


def _op(name: str) -> Callable[..., Any]:
    return function_of(operator_classes()[f"relax.{name}"])


def option(reader: ExpressionReader, given: Arguments, name: str, default: Any) -> Any:
    """What is known of an argument when the text is read; the default where it is left out or `None`."""
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
    given = Arguments(reader.source, node, "R.vision.get_valid_counts", _COUNTS)
    data, options = reader.read(given.require("data")), _options(reader, given, _COUNTS.removeprefix("data "))
    return reader.emit(node, lambda: _op("vision.get_valid_counts")(data, **options))


def _nms(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.vision.non_max_suppression(data, valid_count, indices, ...)`, whose options say which results it has."""
    given = Arguments(reader.source, node, "R.vision.non_max_suppression", f"data valid_count indices {_OPTIONS}")
    operands = [reader.read(given.require(name)) for name in ("data", "valid_count", "indices")]
    options = _options(reader, given, _OPTIONS)
    wants_indices = options.pop("return_indices", True)

    def build() -> object:
        rows, kept, taken = _op("vision.box_nms")(*operands, **options)
        results = (kept, _op("expand_dims")(taken, [1]))
        return (rows, *results) if options.get("soft_nms_sigma", 0.0) > 0 else results

    def build_rows() -> object:
        return _op("vision.box_nms")(*operands, **options)[0]

    return reader.emit(node, build if wants_indices else build_rows)


# Boxes of all classes


def _all_class_nms(reader: ExpressionReader, node: ast.Call) -> object:
    """The boxes that are taken; in the manner of TensorFlow with their scores, batch by batch."""
    given = Arguments(reader.source, node, "R.vision.all_class_non_max_suppression", _ALL_CLASSES)
    kind = option(reader, given, "output_format", "onnx")
    if kind not in ("onnx", "tensorflow"):
        reader.fail(given.require("output_format"), f"expected the output format onnx or tensorflow, got {kind}")
    boxes, scores = reader.read(given.require("boxes")), reader.read(given.require("scores"))
    limits = [reader.read(given.require(name)) for name in _ALL_CLASSES.split()[2:5]]
    dims = scores.type.known_dims if isinstance(scores.type, TensorType) else None
    if dims is None or len(dims) != 3:
        reader.fail(node, f"expected scores of known shape and rank 3, got {scores.type}")

    def build() -> object:
        scalars = [_op("reshape")(limit, []) for limit in limits]
        count = reader.builder.fresh_symbol("taken")
        rows = _op("vision.non_max_suppression")(boxes, scores, *scalars)
        taken = reader.builder.match_cast(rows, TensorType((count, constant(3)), i64))
        if kind == "onnx":
            return _filled(reader, taken, product(dims)), _length(taken)
        return _by_batch(taken, symbol(count), scores, dims)

    return reader.emit(node, build)


def _length(taken: Expr) -> Expr:
    return _op("strided_slice")(_op("shape_to_tensor")(_op("shape_of")(taken)), [0], [0], [1])


def _filled(reader: ExpressionReader, taken: Expr, most: Dim) -> Expr:
    """The rows; filled up with zeros where the text declares as many as there can be."""
    declared = reader.expected.fields[0] if isinstance(reader.expected, TupleType) else None
    if not isinstance(declared, TensorType) or declared.known_dims != (most, constant(3)):
        return taken
    filled = _op("concat")([taken, _op("zeros")([most, 3], i64)], 0)
    return _op("strided_slice")(filled, [0], [0], [most])


def _by_batch(taken: Expr, count: Dim, scores: Expr, dims: Sequence[Dim]) -> tuple[Expr, Expr, Expr]:
    """Class and box of what was taken of each batch from the top on, its scores, and how many they are."""
    batch = _op("strided_slice")(taken, [1], [0], [1])
    counts = _op("sum")(_op("astype")(_op("equal")(batch, _op("arange")(0, dims[0], 1, i64)), i64), [0])
    before = _op("cumsum")(counts, axis=0) - counts
    place = _op("arange")(0, count, 1, i64) - _op("take")(before, _op("squeeze")(batch, [1]), 0)
    targets = _op("concat")([batch, _op("expand_dims")(place, [1])], 1)
    pairs = _op("strided_slice")(taken, [1], [1], [3])
    indices = _op("scatter_nd")(_op("zeros")([dims[0], dims[1] * dims[2], 2], i64), targets, pairs)
    empty = _op("zeros")([dims[0], dims[1] * dims[2]], scores.dtype)
    return indices, _op("scatter_nd")(empty, targets, _op("gather_nd")(scores, taken)), counts


# Boxes from priors


def _multibox(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.vision.multibox_transform_loc`: boxes from priors and what a network says of them, and masked scores."""
    given = Arguments(reader.source, node, "R.vision.multibox_transform_loc", _PRIORS)
    scores, places, priors = (reader.read(given.require(name)) for name in _PRIORS.split()[:3])
    factors = _variances(reader, given)
    dims = places.type.known_dims if isinstance(places.type, TensorType) else None
    if dims is None or len(dims) != 2:
        reader.fail(given.require("loc_pred"), f"expected a tensor of known shape and rank 2, got {places.type}")
    clip, least = option(reader, given, "clip", False), float(option(reader, given, "threshold", 0.0))
    keeps = option(reader, given, "keep_background", True)
    softmax = option(reader, given, "apply_softmax", True)

    def build() -> tuple[Expr, Expr]:
        likely = _op("nn.softmax")(scores, 1) if softmax else scores
        masked = likely * _op("astype")(likely >= least, likely.dtype)
        if not keeps:
            others = _op("strided_slice")(masked, [1], [1], [2**31 - 1])
            none = _op("zeros_like")(_op("strided_slice")(masked, [1], [0], [1]))
            masked = _op("concat")([none, others], 1)
        boxes = _decoded(places, priors, dims, factors)
        return _op("clip")(boxes, 0.0, 1.0) if clip else boxes, masked

    return reader.emit(node, build)


def _variances(reader: ExpressionReader, given: Arguments) -> list[float]:
    """What the four parts of a place are multiplied by."""
    node = given.get("variances")
    items = (1.0,) * 4 if node is None else items_of(reader.value(node)) or ()
    factors = [float(each) for each in items if isinstance(each, int | float)]
    if len(factors) != 4:
        reader.fail(node or given.node, "expected four variances that are numbers")
    return factors


def _decoded(places: Expr, priors: Expr, dims: Sequence[Dim], factors: Sequence[float]) -> Expr:
    """Least and greatest `y, x` of boxes whose centre and size are told by the priors'."""
    moved = _op("split")(_op("reshape")(places, [dims[0], dims[1] // 4, 4]), sections=4, axis=2)
    left, top, right, bottom = _op("split")(priors, sections=4, axis=2)
    low: list[Expr] = []
    high: list[Expr] = []
    for axis, (start, end) in ((1, (top, bottom)), (0, (left, right))):
        middle = moved[axis] * factors[axis] * (end - start) + (start + end) * 0.5
        half = _op("exp")(moved[axis + 2] * factors[axis + 2]) * (end - start) * 0.5
        low.append(middle - half)
        high.append(middle + half)
    return _op("concat")([*low, *high], 2)


BOX_FORMS: Mapping[str, Callable[[ExpressionReader, ast.Call], object]] = {
    "vision.all_class_non_max_suppression": _all_class_nms,
    "vision.get_valid_counts": _valid_counts,
    "vision.multibox_transform_loc": _multibox,
    "vision.non_max_suppression": _nms,
}
