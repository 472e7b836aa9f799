"""What is done to the columns of a table before a model sees them, and numbers and strings that stand for
each other.
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
from relax_dialect.frontend.onnx.dtypes import Refusal
from relax_dialect.frontend.onnx.ml.linear import coefficients
from relax_dialect.frontend.onnx.model import ML
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.onnx.values import ClassMap, Strings, Value
from relax_dialect.frontend.range_checks import numbers_at_most
from tir_dialect import te
from tir_dialect.dims import constant, product
from tir_dialect.dtypes import from_numpy, is_float


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
