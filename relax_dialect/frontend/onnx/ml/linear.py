"""Linear models, and what classifiers and regressors end with: transformed scores, and the labels of classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import f32, f64, i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.dtypes import Refusal
from relax_dialect.frontend.onnx.model import ML
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.onnx.values import Strings, Value

NO_TRANSFORM = "NONE"


def data(node: Node) -> Expr:
    """The operand of a model as numbers: doubles as they are, all others as `f32`; a row is a matrix of one."""
    x = node[0]
    if node.dtype() not in (f32, f64):
        x = op.astype(x, f32)
    if node.rank() == 1:
        x = op.expand_dims(x, [0])
    if node.rank() not in (1, 2):
        raise Refusal(f"expected a matrix with a row for each sample, got rank {node.rank()}")
    return x


def columns(node: Node) -> int:
    """The number of features of the operand."""
    count = node.shape()[-1].constant_value if node.shape() else None
    if count is None:
        raise Refusal("the number of features is not known while importing")
    return count


def coefficients(node: Node, name: str, dtype: type[np.floating] = np.float32) -> np.ndarray:
    """An attribute that is a list of numbers; of none it has no elements."""
    return np.asarray(node.attribute(name, []), np.float64).astype(dtype)


def transformed(x: Expr, transform: str) -> Expr:
    """Scores, `[samples, classes]`, after a `post_transform`."""
    match transform:
        case "" | "NONE":
            return x
        case "LOGISTIC":
            return op.sigmoid(x)
        case "SOFTMAX":
            return op.nn.softmax(x, 1)
        case "SOFTMAX_ZERO":
            # A softmax that leaves out what is 0: it is only scaled.
            largest = op.max(x, [1], keepdims=True)
            is_zero = op.less_equal(op.abs(x), _number(x, 1e-7))
            powers = op.where(is_zero, op.multiply(x, op.exp(op.negative(largest))), op.exp(op.subtract(x, largest)))
            total = op.sum(powers, [1], keepdims=True)
            return op.where(op.equal(total, _number(total, 0)), _number(x, 0.5), op.divide(powers, total))
        case "PROBIT":
            # The quantile of the normal distribution, by Winitzki's approximation of the inverse error
            # function.
            centred = op.subtract(op.multiply(x, _number(x, 2)), _number(x, 1))
            one = _number(x, 1)
            rest = op.multiply(op.subtract(one, centred), op.add(one, centred))
            log = op.log(rest)
            v = op.add(op.multiply(log, _number(x, 0.5)), _number(x, 2 / (np.pi * 0.147)))
            root = op.subtract(op.sqrt(op.subtract(op.multiply(v, v), op.multiply(log, _number(x, 1 / 0.147)))), v)
            sign = op.where(op.less(centred, _number(x, 0)), _number(x, -1), one)
            inverse = op.where(op.equal(rest, _number(x, 0)), _number(x, 0), op.multiply(sign, op.sqrt(root)))
            return op.multiply(inverse, _number(x, 1.41421356))
        case _:
            raise Refusal(f"the post_transform {transform} does not exist")


def _number(x: Expr, value: float) -> Expr:
    return op.full_like(x, value)


class Classes:
    """The labels of a classifier: integers, strings, or the numbers of the classes."""

    def __init__(self, node: Node, integers: str):
        """`integers` is the attribute with labels that are integers."""
        self.node = node
        self.strings = tuple(node.strings("classlabels_strings"))
        self.integers = tuple(node.integers(integers) or ())
        self.count = len(self.strings) or len(self.integers)

    def labels(self, numbers: Expr) -> Value:
        """The labels of classes that are given by their numbers, `[samples]` of `i64`."""
        if self.strings:
            return Strings(numbers, self.strings)
        if not self.integers or self.integers == tuple(range(len(self.integers))):
            return Value(numbers)
        return Value(op.take(self.node.const(np.array(self.integers), i64), numbers, 0))

    def either(self, condition: Expr, yes: int, no: int) -> Value:
        """One of two labels, or of two integers if there are no strings, for each sample."""
        i = [self.node.const(each, i64) for each in (yes, no)]
        return Value(op.where(condition, *i))


def two_columns(negative: Expr, positive: Expr) -> Expr:
    """The scores of two classes from those of each, `[samples, 1]`."""
    return op.concat([negative, positive], 1)


def matrix(node: Node, rows: np.ndarray | Sequence[Sequence[float]], like: Expr) -> Expr:
    """A constant matrix of the dtype of a tensor."""
    assert like.dtype is not None
    return node.const(np.asarray(rows), like.dtype)


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
