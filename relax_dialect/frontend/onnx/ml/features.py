"""What is done to the columns of a table before a model sees them."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32, i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.ml.labels import table_of
from relax_dialect.frontend.onnx.ml.scores import coefficients
from relax_dialect.frontend.onnx.model import ML
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.onnx.values import Strings
from relax_dialect.frontend.range_checks import numbers_at_most
from tir_dialect.dims import constant, product
from tir_dialect.dtypes import is_float


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
    x = node[0]
    return op.where(op.greater(x, op.full_like(x, node.number("threshold"))), op.full_like(x, 1), op.full_like(x, 0))


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
