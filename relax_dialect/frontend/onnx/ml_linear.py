"""Columns of a table before a model sees them; linear models and support vector machines; and what classifiers and
regressors end with: transformed scores, and the labels of classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.edge_cases import numbers_at_most
from relax_dialect.frontend.onnx.model import ML
from relax_dialect.frontend.onnx.node import Node, Result, converts
from relax_dialect.frontend.onnx.values import ClassMap, Refusal, Strings, Value
from tir_dialect import te
from tir_dialect.dims import constant, product
from tir_dialect.dtypes import from_numpy, is_float

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
    # The labels of the greatest of what classes are judged by.
    is_one = rho.size == 1
    numbers = op.argmax(judged, 1)
    if is_one and classes.count != 2:
        is_positive = op.greater(op.max(judged, [1]), op.full_like(op.max(judged, [1]), 0))
        labels = classes.either(is_positive, 1, 0)
    else:
        if is_one and not has_proba and coefficients(node, "coefficients").min() >= 0:
            greatest = op.max(judged, [1])
            is_second = op.greater_equal(greatest, op.full_like(greatest, 0.5))
            numbers = op.where(is_second, op.full_like(numbers, 1), numbers)
        labels = classes.labels(numbers)
    transform = node.text("post_transform", NO_TRANSFORM)
    if width == 1 and rho.size == 1 and classes.count == 2:
        if transform != "PROBIT":
            scores = two_columns(op.negative(scores), scores)
    elif width == 1 and transform != "PROBIT":
        transform = NO_TRANSFORM
    return [labels, Value(op.astype(transformed(scores, transform), f32))]


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


def table_of(
    node: Node, x: Expr, keys: Sequence[float], values: Sequence[Any], default: Any, dtype: Attribute = i64
) -> Expr:
    """For each element the value whose key it is, or a default; of equal keys the last one counts."""
    table = {_key(key): value for key, value in zip(keys, values, strict=True)}
    nan = table.pop(None, default)
    ordered = sorted(key for key in table if key is not None)
    if not ordered:
        return op.full_like(op.astype(x, dtype), default)
    own = np.array(ordered, np.float64 if any(isinstance(key, float) for key in ordered) else np.int64)
    sought = node.const(own.astype(np.float32) if str(x.dtype) == "f32" else own, x.dtype or i64)
    found = node.const(np.array([table[key] for key in ordered]), dtype)
    lone = node.const(np.array([default, nan]), dtype)
    return node.te(_looked_up, x, sought, found, lone, name="look_up")


def _key(key: float) -> float | None:
    return None if isinstance(key, float) and isnan(key) else key


def _looked_up(x: te.Tensor, keys: te.Tensor, values: te.Tensor, lone: te.Tensor) -> te.Tensor:
    """Halves the keys, which are in order, until one is left."""
    count = keys.shape[0].constant_value or 1
    steps = max(count - 1, 1).bit_length()
    found = te.compute(x.shape, lambda *i: te.const(0, "i64"), name="at")
    for step in reversed(range(steps)):
        found = _nearer(x, keys, found, 1 << step)
    last = found

    def value(*i: te.Expr) -> te.Expr:
        position = te.cast(last[i], "index")
        other = (
            lone[te.cast(te.cast(te.isnan(x[i]), "i64"), "index")] if str(x.dtype).startswith(("f", "bf")) else lone[0]
        )
        return te.select(keys[position] == x[i], values[position], other)

    return te.compute(x.shape, value, name="looked_up")


def _nearer(x: te.Tensor, keys: te.Tensor, before: te.Tensor, width: int) -> te.Tensor:
    """Places in the keys, each moved by a width if the key that is there is not greater."""
    count = keys.shape[0].constant_value or 1

    def element(*i: te.Expr) -> te.Expr:
        there = before[i] + width
        inside = te.cast(te.minimum(there, count - 1), "index")
        return te.select(te.logical_and(there < count, keys[inside] <= x[i]), there, before[i])

    return te.compute(x.shape, element, name="at")


@converts("LabelEncoder", since=2, domain=ML)
def label_encoder(node: Node) -> Result:
    """What a list has for each element, which is a key of it."""
    keys, values = _listed(node, "keys"), _listed(node, "values")
    if len(keys) != len(values):
        raise Refusal(f"{len(keys)} keys are not those of {len(values)} values")
    default = node.attribute("default_tensor")
    if default is not None:
        default = np.asarray(default).reshape(-1)[0]
    elif values and isinstance(values[0], str):
        default = node.text("default_string", "_Unused")
    elif node.attributes.get("values_floats") is not None:
        default = node.number("default_float", -0.0)
    else:
        default = node.integer("default_int64", -1)
    tensor = node.attribute("values_tensor")
    if tensor is not None and not isinstance(values[0], str):
        dtype: Attribute = from_numpy(np.asarray(tensor).dtype)
    else:
        dtype = f32 if node.attributes.get("values_floats") is not None else i64
    return _encoded(node, keys, values, default, dtype)


@converts("LabelEncoder", domain=ML)
def old_label_encoder(node: Node) -> Result:
    """The strings of a list by their indices, or the indices of strings."""
    names = node.strings("classes_strings")
    if isinstance(node.value(0), Strings):
        return _encoded(node, names, range(len(names)), node.integer("default_int64", -1), i64)
    return _encoded(node, range(len(names)), names, node.text("default_string", "_Unused"), i64)


@converts("CategoryMapper", domain=ML)
def category_mapper(node: Node) -> Result:
    """The string of an integer, or the integer of a string."""
    names, numbers = node.strings("cats_strings"), node.integers("cats_int64s") or ()
    if len(names) != len(numbers):
        raise Refusal(f"{len(names)} cats_strings are not those of {len(numbers)} cats_int64s")
    if isinstance(node.value(0), Strings):
        return _encoded(node, names, numbers, node.integer("default_int64", -1), i64)
    return _encoded(node, numbers, names, node.text("default_string", "_Unused"), i64)


def _listed(node: Node, name: str) -> Sequence[Any]:
    """The list that is given in one of several types."""
    if strings := node.strings(f"{name}_strings"):
        return strings
    for kind in ("floats", "int64s"):
        if (found := node.attribute(f"{name}_{kind}")) is not None and len(found):
            return list(found)
    tensor = node.attribute(f"{name}_tensor")
    if tensor is None:
        raise Refusal(f"there are no {name}")
    return np.asarray(tensor).reshape(-1).tolist()


def _encoded(node: Node, keys: Sequence[Any], values: Sequence[Any], default: Any, dtype: Attribute) -> Value:
    """Values for keys, of which either may be strings."""
    operand = node.value(0)
    names: list[str] | None = None
    if isinstance(default, str):
        names = list(dict.fromkeys([*values, default]))
        values, default = [names.index(each) for each in values], names.index(default)
    if isinstance(operand, Strings):
        known = dict(zip(keys, values, strict=True))
        entries = np.array([known.get(each, default) for each in operand.vocabulary])
        made = op.take(node.const(entries, dtype), operand.at, 0) if operand.vocabulary else operand.at
    elif any(isinstance(each, str) for each in keys):
        raise Refusal("keys that are strings are those of strings")
    else:
        made = table_of(node, operand.expr(node.bb), keys, values, default, dtype)
    return Value(made) if names is None else Strings(made, tuple(names))


@converts("ZipMap", domain=ML)
def zip_map(node: Node) -> Result:
    """A map from labels to scores for each sample: the scores, and what their columns stand for."""
    labels = [*node.strings("classlabels_strings"), *map(str, node.integers("classlabels_int64s") or ())]
    count = node.shape()[-1]
    if count != constant(len(labels)):
        raise Refusal(f"{len(labels)} labels are not those of {count} columns")
    return ClassMap(node[0], tuple(labels))


def _numbers(node: Node) -> Expr:
    """The operand as `f32`, which the results of these operators have."""
    return node[0] if node.dtype() == f32 else op.astype(node[0], f32)


@converts("Scaler", domain=ML)
def scaler(node: Node) -> Result:
    """`(x - offset) * scale`, of each column or of all."""
    x = _numbers(node)
    offset, scale = coefficients(node, "offset"), coefficients(node, "scale")
    moved = op.subtract(x, node.const(offset, f32)) if offset.size else x
    return op.multiply(moved, node.const(scale, f32)) if scale.size else moved


@converts("Normalizer", domain=ML)
def normalizer(node: Node) -> Result:
    """Each row divided by its norm."""
    x, norm = _numbers(node), node.text("norm", "MAX")
    axis = [node.rank() - 1]
    match norm:
        case "MAX":
            size = op.max(op.abs(x), axis, keepdims=True)
        case "L1":
            size = op.sum(op.abs(x), axis, keepdims=True)
        case "L2":
            size = op.sqrt(op.sum(op.multiply(x, x), axis, keepdims=True))
        case _:
            raise Refusal(f"the norm {norm} does not exist")
    return op.divide(x, op.maximum(size, node.const(1e-30, f32)))


@converts("Binarizer", domain=ML)
def binarizer(node: Node) -> Result:
    """1 for what is more than a threshold, 0 for the rest."""
    x = node[0] if is_float(node.dtype()) else op.astype(node[0], f64)
    found = op.greater(x, node.const(node.number("threshold"), x.dtype or f64))
    return op.where(found, op.full_like(node[0], 1), op.full_like(node[0], 0))


@converts("Imputer", domain=ML)
def imputer(node: Node) -> Result:
    """Other numbers where one stands, or NaN."""
    x = node[0]
    kind = "float" if is_float(node.dtype()) else "int64"
    values = np.asarray(node.attribute(f"imputed_value_{kind}s", []))
    if not values.size:
        raise Refusal(f"the attribute imputed_value_{kind}s is missing")
    replaced = float(node.number("replaced_value_float")) if kind == "float" else node.integer("replaced_value_int64")
    there = op.isnan(x) if replaced != replaced else op.equal(x, op.full_like(x, replaced))
    return op.where(there, node.const(values, node.dtype()), x)


@converts("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(node: Node) -> Result:
    """Elements of the last dimension by their indices; a row becomes a matrix."""
    indices = op.reshape(node[1], [product(node.shape(1))])
    made = op.take(node[0], indices, node.rank() - 1)
    return op.expand_dims(made, [0]) if node.rank() == 1 else made


@converts("FeatureVectorizer", domain=ML)
def feature_vectorizer(node: Node) -> Result:
    """Columns beside each other, each operand cut or filled with zeros to a width of its own."""
    widths = node.integers("inputdimensions") or ()
    if len(widths) != len(node.inputs):
        raise Refusal(f"{len(widths)} inputdimensions are not those of {len(node.inputs)} operands")
    return op.astype(op.concat([_of_width(node, index, width) for index, width in enumerate(widths)], 1), f32)


def _of_width(node: Node, index: int, width: int) -> Expr:
    x = op.expand_dims(node[index], [1]) if node.rank(index) == 1 else node[index]
    dims = x.shape
    if dims is None or len(dims) != 2 or dims[1] is None or dims[1].constant_value is None:
        raise Refusal(f"operand #{index} is no matrix whose width is known while importing")
    given = dims[1].constant_value
    if given > width:
        return op.strided_slice(x, [1], [0], [width])
    if given == width:
        return x
    rows = dims[0] if dims[0] is not None else constant(0)
    return op.concat([x, op.zeros([rows, constant(width - given)], node.dtype(index))], 1)


@converts("OneHotEncoder", domain=ML)
def one_hot_encoder(node: Node) -> Result:
    """For each category whether it is that."""
    operand, names = node.value(0), node.strings("cats_strings")
    keys = node.integers("cats_int64s") or ()
    if isinstance(operand, Strings):
        table = np.array([names.index(each) if each in names else -1 for each in operand.vocabulary])
        numbers = op.take(node.const(table, i64), operand.at, 0)
    elif names:
        raise Refusal("categories that are strings are those of strings")
    else:
        numbers = table_of(node, operand.expr(node.bb), keys, range(len(keys)), -1)
    if not node.integer("zeros", 1):
        message = "'OneHotEncoder': expected a category for each element, got the greatest of 1 for those without and"
        numbers = op.negative(numbers_at_most(node.bb, op.negative(numbers), constant(0), message))
    columns = op.expand_dims(numbers, [numbers.ndim or 0])
    return op.astype(op.equal(columns, node.const(np.arange(len(names or keys)), i64)), f32)
