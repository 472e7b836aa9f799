"""Matrix multiplications, convolutions and activations that ONNX Runtime fuses, and operators that were tried out
in its domain before the standard had them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import f32

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.convolution import with_bias
from relax_dialect.frontend.onnx.creation import arange, trilu
from relax_dialect.frontend.onnx.gather import gather_nd
from relax_dialect.frontend.onnx.image import grid_sample
from relax_dialect.frontend.onnx.linear_algebra import gemm_of
from relax_dialect.frontend.onnx.manipulation import pad
from relax_dialect.frontend.onnx.model import MICROSOFT
from relax_dialect.frontend.onnx.node import Node, Result, converts, from_front
from relax_dialect.frontend.onnx.quantization import dequantize_linear, quantize_linear
from relax_dialect.frontend.onnx.reduction import unique_elements
from relax_dialect.frontend.onnx.values import Refusal, Value
from relax_dialect.frontend.onnx.windows import convolution, max_pool
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dtypes import is_float

GELU_LOGISTIC = 1.702
"""With this factor `x * sigmoid(factor * x)` is near the Gaussian error linear unit."""


@converts("Gelu", "BiasGelu", domain=MICROSOFT)
def gelu(node: Node) -> Result:
    """The Gaussian error linear unit, perhaps of data with a bias."""
    return op.nn.gelu(_biased(node, 1))


@converts("FastGelu", domain=MICROSOFT)
def fast_gelu(node: Node) -> Result:
    """The approximation by a tanh, perhaps of data with a bias."""
    return op.nn.gelu_tanh(_biased(node, 1))


@converts("QuickGelu", domain=MICROSOFT)
def quick_gelu(node: Node) -> Result:
    """`x * sigmoid(alpha * x)`."""
    x = node[0]
    return op.multiply(x, op.sigmoid(op.multiply(x, node.like(node.number("alpha", GELU_LOGISTIC)))))


@converts("ScaledSiLU", domain=MICROSOFT)
def scaled_silu(node: Node) -> Result:
    """`z * sigmoid(z)` of `z = scale * x`, where both factors have the type of data."""
    x, kind = node[0], node.dtype()
    scale = op.astype(op.reshape(node[1], []), f32) if node.has(1) else node.const(node.number("alpha", 1.0), f32)
    z = op.astype(op.multiply(op.astype(x, f32), scale), kind)
    return op.multiply(z, op.astype(op.sigmoid(op.astype(z, f32)), kind))


@converts("GatedAdd", domain=MICROSOFT)
def gated_add(node: Node) -> Result:
    """`x + y * gate`, with one gate for each row."""
    if node.has(3):
        raise Refusal("gates that are computed from data are not supported")
    return op.add(node[0], op.multiply(node[1], node[2]))


@converts("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(node: Node) -> Result:
    """The first half of the channels with a bias, times the unit of the second half."""
    left, right = op.split(_biased(node, 1), sections=2, axis=node.rank() - 1)
    return op.multiply(left, op.nn.gelu(right))


@converts("BiasAdd", domain=MICROSOFT)
def bias_add(node: Node) -> Result:
    """`x + bias + skip`."""
    return op.add(_biased(node, 1), node[2])


_PLAIN: dict[str, Callable[[Expr], Expr]] = {
    "Relu": op.nn.relu,
    "Sigmoid": op.sigmoid,
    "Tanh": op.tanh,
    "Gelu": op.nn.gelu,
    "Silu": op.nn.silu,
}
"""Activations without parameters."""


def _biased(node: Node, index: int) -> Expr:
    """The first operand, with the operand at `index` added if it is there."""
    return op.add(node[0], node[index]) if node.has(index) else node[0]


def activated(node: Node, x: Expr, name: str, parameters: list[float]) -> Expr:
    """What another operator ends with: an activation with its parameters in order, or none without a name.

    Raises `Refusal` for an activation that is not known.
    """
    if not name:
        return x
    if name in _PLAIN:
        return _PLAIN[name](x)
    given = dict(enumerate(parameters))
    if name == "LeakyRelu":
        return op.nn.leakyrelu(x, given.get(0, 0.01))
    if name == "Clip":
        return op.clip(x, given.get(0, float("-inf")), given.get(1, float("inf")))
    if name == "HardSigmoid":
        line = op.add(op.multiply(x, node.like(given.get(0, 0.2))), node.like(given.get(1, 0.5)))
        return op.maximum(op.minimum(line, node.like(1)), node.like(0))
    raise Refusal(f"the activation {name} is not supported")


@converts("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", domain=MICROSOFT)
def fused_matmul(node: Node) -> Result:
    """`alpha * a @ b`, with matrices transposed, or batches behind them, if that is asked for."""
    product = op.matmul(_arranged(node, 0, "A"), _arranged(node, 1, "B"))
    alpha = node.number("alpha", 1.0)
    scaled = product if alpha == 1.0 else op.multiply(product, node.like(alpha))
    return activated(node, scaled, node.text("activation"), _parameters(node))


def _arranged(node: Node, index: int, name: str) -> Expr:
    rank = node.rank(index)
    order = list(range(rank))
    if rank > 2 and node.integer(f"transBatch{name}"):
        order = [*order[1:-1], 0, rank - 1]
    if rank > 1 and node.integer(f"trans{name}"):
        order[-2:] = [order[-1], order[-2]]
    return node[index] if order == sorted(order) else op.permute_dims(node[index], order)


@converts("FusedGemm", domain=MICROSOFT)
def fused_gemm(node: Node) -> Result:
    """`alpha * a @ b + beta * c`, and an activation."""
    return activated(node, gemm_of(node), node.text("activation"), _parameters(node))


@converts("GemmFastGelu", domain=MICROSOFT)
def gemm_fast_gelu(node: Node) -> Result:
    """The product with a bias, and the approximated unit of it."""
    product = op.matmul(node[0], node[1])
    return op.nn.gelu_tanh(op.add(product, node[2]) if node.has(2) else product)


def _parameters(node: Node) -> list[float]:
    """The parameters of the activation that are given."""
    given = [node.attributes.get(f"activation_{name}") for name in ("alpha", "beta", "gamma")]
    return [float(each) for each in given if each is not None]


@converts("FusedConv", domain=MICROSOFT)
def fused_conv(node: Node) -> Result:
    """A convolution, a bias for each filter, another tensor added, and an activation."""
    made = with_bias(convolution(node, node[0], node[1]), node.optional(2))
    total = op.add(made, node[3]) if node.has(3) else made
    parameters = [float(each) for each in node.attribute("activation_params", [])]
    return activated(node, total, node.text("activation"), parameters)


@converts("NhwcConv", "NhwcFusedConv", domain=MICROSOFT)
def nhwc_conv(node: Node) -> Result:
    """The same on channels that come last, the kernel's included."""
    kernel = node.rank(1)
    first = channels_first(node, 0, 3)
    inputs = list(first.inputs)
    inputs[1] = Value(op.permute_dims(first[1], [0, kernel - 1, *range(1, kernel - 1)]))
    made = fused_conv(replace(first, inputs=inputs))
    assert isinstance(made, Expr)
    return channels_last(made)


@converts("NhwcMaxPool", domain=MICROSOFT)
def nhwc_max_pool(node: Node) -> Result:
    """The greatest element of each window, on channels that come last."""
    made = max_pool(channels_first(replace(node, outputs=node.outputs[:1]), 0))
    assert isinstance(made, Expr)
    return channels_last(made)


def channels_first(node: Node, *indices: int) -> Node:
    """The node with operands, those that are there, whose channels come second."""
    inputs = list(node.inputs)
    for index in indices:
        if node.has(index):
            rank = node.rank(index)
            inputs[index] = Value(op.permute_dims(node[index], [0, rank - 1, *range(1, rank - 1)]))
    return replace(node, inputs=inputs)


def channels_last(x: Expr) -> Expr:
    """A tensor whose channels come second, with channels that come last."""
    order: Sequence[int] = [0, *range(2, x.ndim or 0), 1]
    return op.permute_dims(x, order)


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
