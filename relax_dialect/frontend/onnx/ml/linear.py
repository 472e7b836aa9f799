"""Linear models and support vector machines, and what classifiers and regressors end with: transformed scores, and the
labels of classes.
"""

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
from tir_dialect import te
from tir_dialect.dims import constant

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


def _kernels(node: Node, x: Expr, vectors: np.ndarray, kind: str) -> Expr:
    """The kernel of each sample with each vector, `[samples, vectors]`."""
    gamma, coef0, degree = (*coefficients(node, "kernel_params", np.float64).tolist(), 0.0, 0.0, 0.0)[:3]
    if kind == "RBF":
        other = matrix(node, vectors, x)
        distances = node.te(_squared_distances, x, other, name="squared_distances")
        return op.exp(op.multiply(distances, op.full_like(distances, -gamma)))
    dots = op.matmul(x, matrix(node, vectors.T, x))
    if kind == "LINEAR":
        return dots
    line = op.add(op.multiply(dots, op.full_like(dots, gamma)), op.full_like(dots, coef0))
    if kind == "SIGMOID":
        return op.tanh(line)
    if kind == "POLY":
        return op.power(line, op.full_like(line, int(degree)))
    raise Refusal(f"the kernel_type {kind} does not exist")


def _squared_distances(x: te.Tensor, vectors: te.Tensor) -> te.Tensor:
    r = te.reduce_axis(vectors.shape[1], "r")

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        apart = x[i, r] - vectors[j, r]
        return te.sum(apart * apart, r)

    return te.compute((x.shape[0], vectors.shape[0]), element, name="squared_distances")


def _rows(values: np.ndarray, count: int, what: str) -> np.ndarray:
    """A list of numbers as so many rows."""
    if not count or values.size % count:
        raise Refusal(f"{values.size} {what} do not make {count} rows")
    return values.reshape(count, -1)


def _support_vectors(node: Node, count: int) -> np.ndarray:
    vectors = _rows(coefficients(node, "support_vectors"), count, "support_vectors")
    if vectors.shape[1] != columns(node):
        raise Refusal(f"support vectors of {vectors.shape[1]} numbers are not those of {columns(node)} features")
    return vectors


@converts("SVMRegressor", domain=ML)
def svm_regressor(node: Node) -> Result:
    """A sum of kernels with the support vectors; for one class whether it is positive, as 1 or -1."""
    x, count = data(node), node.integer("n_supports")
    weights = coefficients(node, "coefficients")
    if count > 0:
        kernels = _kernels(node, x, _support_vectors(node, count), node.text("kernel_type", "LINEAR"))
        sums = op.matmul(kernels, matrix(node, _rows(weights, count, "coefficients")[:, :1], x))
    else:
        sums = op.matmul(x, matrix(node, _rows(weights, columns(node), "coefficients")[:, :1], x))
    sums = op.add(sums, op.full_like(sums, float(coefficients(node, "rho")[0])))
    if node.integer("one_class"):
        sums = op.where(op.greater(sums, op.full_like(sums, 0)), op.full_like(sums, 1), op.full_like(sums, -1))
    return op.astype(transformed(sums, node.text("post_transform", NO_TRANSFORM)), f32)


@converts("SVMClassifier", domain=ML)
def svm_classifier(node: Node) -> Result:
    """The label for which most pairs of classes vote, and the scores of pairs, or the probabilities of classes."""
    classes = Classes(node, "classlabels_ints")
    x, count = data(node), max(classes.count, 1)
    per_class = node.integers("vectors_per_class") or ()
    rho = coefficients(node, "rho")
    votes: Expr | None = None
    has_proba = False
    if sum(per_class):
        scores, votes = _pairs(node, x, per_class, rho)
        factors = coefficients(node, "prob_a"), coefficients(node, "prob_b")
        if factors[0].size:
            has_proba = True
            scores = node.te(lambda each: _probabilities(each, count, *factors), scores, name="svm_probabilities")
    else:
        weights = _rows(coefficients(node, "coefficients"), count, "coefficients")
        scores = op.matmul(x, matrix(node, weights.T, x))
        scores = op.add(scores, op.full_like(scores, float(rho[0])))
    width = count if votes is None or has_proba else count * (count - 1) // 2
    judged = scores if votes is None else votes
    labels = _labels(node, classes, judged, rho.size == 1, has_proba)
    transform = node.text("post_transform", NO_TRANSFORM)
    if width == 1 and rho.size == 1 and classes.count == 2:
        if transform != "PROBIT":
            scores = two_columns(op.negative(scores), scores)
    elif width == 1 and transform != "PROBIT":
        transform = NO_TRANSFORM
    return [labels, Value(op.astype(transformed(scores, transform), f32))]


def _labels(node: Node, classes: Classes, judged: Expr, is_one: bool, has_proba: bool) -> Value:
    """The labels of the greatest of what classes are judged by."""
    numbers = op.argmax(judged, 1)
    if is_one and classes.count != 2:
        is_positive = op.greater(op.max(judged, [1]), op.full_like(op.max(judged, [1]), 0))
        return classes.either(is_positive, 1, 0)
    if is_one and not has_proba and coefficients(node, "coefficients").min() >= 0:
        greatest = op.max(judged, [1])
        is_second = op.greater_equal(greatest, op.full_like(greatest, 0.5))
        numbers = op.where(is_second, op.full_like(numbers, 1), numbers)
    return classes.labels(numbers)


def _pairs(node: Node, x: Expr, per_class: Sequence[int], rho: np.ndarray) -> tuple[Expr, Expr]:
    """The score of each pair of classes, and how many pairs vote for each class."""
    total, count = sum(per_class), len(per_class)
    kernels = _kernels(node, x, _support_vectors(node, total), node.text("kernel_type", "LINEAR"))
    weights = _rows(coefficients(node, "coefficients"), count - 1, "coefficients")
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    if weights.shape[1] != total or len(rho) < len(pairs):
        raise Refusal(f"{weights.size} coefficients and {len(rho)} rho are not those of {count} classes")
    starts = np.cumsum([0, *per_class])
    mixed, first, second = np.zeros((total, len(pairs))), np.zeros((len(pairs), count)), np.zeros((len(pairs), count))
    for at, (i, j) in enumerate(pairs):
        mixed[starts[i] : starts[i + 1], at] = weights[j - 1, starts[i] : starts[i + 1]]
        mixed[starts[j] : starts[j + 1], at] = weights[i, starts[j] : starts[j + 1]]
        first[at, i] = second[at, j] = 1
    scores = op.add(op.matmul(kernels, matrix(node, mixed, x)), matrix(node, rho[: len(pairs)], x))
    won = op.astype(op.greater(scores, op.full_like(scores, 0)), x.dtype or f32)
    lost = op.subtract(op.full_like(won, 1), won)
    votes = op.add(op.matmul(won, matrix(node, first, x)), op.matmul(lost, matrix(node, second, x)))
    return scores, votes


LEAST_PROBABILITY = 1e-7
"""Of the probabilities of pairs, of which none is quite 0 or 1."""


def _probabilities(scores: te.Tensor, count: int, a: np.ndarray, b: np.ndarray) -> te.Tensor:
    """The probabilities of classes from those of pairs, by Wu, Lin and Weng's second method, as LIBSVM has it."""
    dtype = scores.dtype
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    if min(len(a), len(b)) < len(pairs):
        raise Refusal(f"{len(a)} prob_a and {len(b)} prob_b are not those of {count} classes")

    def body(builder: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        p = outs[0]
        with builder.block("probabilities", ("spatial", scores.shape[0], "n")) as (n,):
            r, q = (builder.alloc((count, count), dtype, name) for name in ("r", "q"))
            for at, (i, j) in enumerate(pairs):
                line = scores[n, at] * float(a[at]) + float(b[at])
                bounded = te.maximum(1 - te.sigmoid(line), LEAST_PROBABILITY)
                share = builder.let(te.minimum(bounded, 1 - LEAST_PROBABILITY), "share")
                builder.store(r, (i, j), share)
                builder.store(r, (j, i), 1 - share)
            # The matrix whose form is least for the probabilities.
            for t in range(count):
                others = [j for j in range(count) if j != t]
                squares = [r[j, t] * r[j, t] for j in others]
                builder.store(q, (t, t), sum(squares[1:], squares[0]) if squares else te.const(0, q.dtype))
                for j in others:
                    builder.store(q, (t, j), -(r[j, t] * r[t, j]))
            _solved(builder, q, p, n, count)

    return te.extern([((scores.shape[0], constant(count)), dtype)], [scores], body, name="svm_probabilities")[0]


def _solved(b: te.ExternBuilder, q: te.Tensor, p: te.Tensor, n: te.Expr, count: int) -> None:
    """One coordinate after the other, until all agree up to a bound."""
    dtype = q.dtype
    products = b.alloc((count,), dtype, "products")
    form, rounds, diff = b.alloc((), dtype, "form"), b.alloc((), "i64", "rounds"), b.alloc((), dtype, "diff")
    error = b.alloc((), dtype, "error")
    for t in range(count):
        b.store(p, (n, t), te.const(1 / count, dtype))
    b.store(rounds, (), 0)
    b.store(error, (), te.const(1, dtype))
    with b.while_(te.logical_and(rounds[()] < max(100, count), error[()] >= 0.005 / count)):
        b.store(rounds, (), rounds[()] + 1)
        b.store(form, (), te.const(0, dtype))
        for t in range(count):
            row = [q[t, j] * p[n, j] for j in range(count)]
            b.store(products, t, sum(row[1:], row[0]))
            b.store(form, (), form[()] + p[n, t] * products[t])
        b.store(error, (), te.const(0, dtype))
        for t in range(count):
            b.store(error, (), te.maximum(error[()], te.abs(products[t] - form[()])))
        with b.if_(error[()] >= 0.005 / count):
            for t in range(count):
                b.store(diff, (), (form[()] - products[t]) / q[t, t])
                b.store(p, (n, t), p[n, t] + diff[()])
                grown = form[()] + diff[()] * (diff[()] * q[t, t] + 2 * products[t])
                b.store(form, (), grown / ((1 + diff[()]) * (1 + diff[()])))
                for j in range(count):
                    b.store(p, (n, j), p[n, j] / (1 + diff[()]))
                    b.store(products, j, (products[j] + diff[()] * q[t, j]) / (1 + diff[()]))
