"""Linear models."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.ml.scores import (
    NO_TRANSFORM,
    Classes,
    coefficients,
    columns,
    data,
    matrix,
    transformed,
    two_columns,
)
from relax_dialect.frontend.onnx.model import ML
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.onnx.values import Value


def _scores(node: Node, targets: int | None = None) -> tuple[Expr, int]:
    """`x @ coefficients + intercepts`, and how many there are of each sample."""
    x, features = data(node), columns(node)
    weights = coefficients(node, "coefficients", np.float64)
    if not features or weights.size % features:
        raise Refusal(f"{weights.size} coefficients are not those of {features} features")
    weights = weights.reshape(-1, features)
    if targets is not None and len(weights) != targets:
        raise Refusal(f"{len(weights)} rows of coefficients are not those of {targets} targets")
    scores = op.matmul(x, matrix(node, weights.T, x))
    intercepts = coefficients(node, "intercepts", np.float64)
    if intercepts.size:
        scores = op.add(scores, matrix(node, intercepts, x))
    return scores, len(weights)


@converts("LinearRegressor", domain=ML)
def linear_regressor(node: Node) -> Result:
    """`x @ coefficients + intercepts`."""
    scores, _ = _scores(node, node.integer("targets", 1))
    return op.astype(transformed(scores, node.text("post_transform", NO_TRANSFORM)), f32)


@converts("LinearClassifier", domain=ML)
def linear_classifier(node: Node) -> Result:
    """The label of the class with the greatest score, and the scores."""
    classes, transform = Classes(node, "classlabels_ints"), node.text("post_transform", NO_TRANSFORM)
    scores, count = _scores(node)
    if count == 1 and classes.count == 2:
        scores, count = two_columns(op.negative(scores), scores), 2
    scores = transformed(scores, transform)
    made = Value(op.astype(scores, f32))
    if count > 1:
        return [classes.labels(op.argmax(scores, 1)), made]
    column = op.squeeze(scores, [1])
    is_positive = op.greater_equal(column, op.full_like(column, 0 if transform == NO_TRANSFORM else 0.5))
    if classes.strings:
        raise Refusal("one label that is a string has no counterpart")
    yes = classes.integers[0] if classes.integers else 1
    return [classes.either(is_positive, yes, 0), made]
