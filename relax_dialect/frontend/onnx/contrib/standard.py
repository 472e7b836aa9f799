"""Operators that were tried out in ONNX Runtime's domain before the standard had them, and small ones like them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from relax_dialect.builder import op
from relax_dialect.frontend.onnx.creation import arange, trilu
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.gather import gather_nd
from relax_dialect.frontend.onnx.image import grid_sample
from relax_dialect.frontend.onnx.model import MICROSOFT
from relax_dialect.frontend.onnx.node import Node, from_front
from relax_dialect.frontend.onnx.padding import pad
from relax_dialect.frontend.onnx.quantization import dequantize_linear, quantize_linear
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.onnx.search import unique_elements
from relax_dialect.frontend.onnx.values import Value
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dtypes import is_float

_SAME = {
    "DequantizeLinear": dequantize_linear,
    "GatherND": gather_nd,
    "GridSample": grid_sample,
    "Pad": pad,
    "QuantizeLinear": quantize_linear,
    "Range": arange,
    "Trilu": trilu,
}
MEANING = 21
"""The version of the standard whose operators these are."""


@converts(*_SAME, domain=MICROSOFT)
def as_standard(node: Node) -> Result:
    """What the standard's operator of that name says; the step of a range is 1 unless it is given."""
    if node.op_type == "Range" and not node.has(2):
        one = Value(node.const(1, node.dtype())) if is_float(node.dtype()) else Value.of(np.array(1), node.dtype())
        return arange(replace(node, version=MEANING, inputs=[*node.inputs[:2], one]))
    return _SAME[node.op_type](replace(node, version=MEANING))


@converts("ExpandDims", domain=MICROSOFT)
def expand_dims(node: Node) -> Result:
    """A dimension of 1 more."""
    axis = node.ints(1)
    if axis is None:
        raise Refusal("the axis is not known while importing")
    return op.expand_dims(node[0], [from_front(axis[0], node.rank() + 1)])


@converts("Unique", domain=MICROSOFT)
def unique_in_order(node: Node) -> Result:
    """Different elements in the order in which they occur, which of them each element is, and how often each is."""
    values, _, which, counts = unique_elements(replace(node, attributes={"sorted": 0}, version=MEANING))
    return [values, which, counts]


@converts("Inverse", domain=MICROSOFT)
def inverse(node: Node) -> Result:
    """The inverse of each matrix, which the run-time library computes by LAPACK."""
    return node.bb.call_dps_packed("relax.linalg", [op.string("inv"), node[0]], TensorType(node.shape(), node.dtype()))


@converts("ComplexMul", "ComplexMulConj", domain=MICROSOFT)
def complex_mul(node: Node) -> Result:
    """The product of complex numbers, whose parts are the last dimension; of the second one's conjugate."""
    rank = node.rank()
    a, b, c, d = (
        op.squeeze(part, [rank - 1]) for index in range(2) for part in op.split(node[index], sections=2, axis=rank - 1)
    )
    sign = op.negative(d) if node.op_type == "ComplexMulConj" else d
    real = op.subtract(op.multiply(a, c), op.multiply(b, sign))
    return op.stack([real, op.add(op.multiply(a, sign), op.multiply(b, c))], rank - 1)


@converts("CDist", domain=MICROSOFT)
def cdist(node: Node) -> Result:
    """The Euclidean distance of each row to each row of another matrix, or its square."""
    metric = node.text("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        raise Refusal(f"the metric {metric} is not supported")
    apart = op.subtract(op.expand_dims(node[0], [1]), op.expand_dims(node[1], [0]))
    squares = op.sum(op.multiply(apart, apart), [2])
    return squares if metric == "sqeuclidean" else op.sqrt(squares)
