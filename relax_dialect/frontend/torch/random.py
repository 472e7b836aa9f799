"""Random numbers: functions of the program's seed, each node with a stream of its own.

The numbers are not PyTorch's, but have the same distributions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.program import Refusal
from relax_dialect.frontend.torch.registry import Result, converts
from tir_dialect.dims import Dim, product, to_dim
from tir_dialect.dtypes import is_float

LEAST = 2.0**-53
"""The least uniformly distributed number of which a logarithm is taken."""


def uniform(node: Node, dims: Sequence[Dim], dtype: Attribute = f32, low: float = 0.0, high: float = 1.0) -> Expr:
    """Numbers that are uniformly distributed."""
    seed, stream = node.graph.random_stream()
    return op.random.uniform(seed, list(dims), low=low, high=high, dtype=dtype, stream=stream)


def normal(node: Node, dims: Sequence[Dim], dtype: Attribute) -> Expr:
    """Numbers with the standard normal distribution."""
    seed, stream = node.graph.random_stream()
    return op.random.normal(seed, list(dims), dtype=dtype, stream=stream)


def kept(node: Node, x: Expr, p: float) -> tuple[Expr, Expr]:
    """What dropout makes of a tensor, each element of which is dropped with a probability, and which are kept."""
    assert x.shape is not None
    dims = [to_dim(dim) for dim in x.shape if dim is not None]
    mask = op.greater_equal(uniform(node, dims), node.const(p, f32))
    scaled = op.multiply(x, node.like(1 / (1 - p) if p < 1 else 0, x))
    return op.where(mask, scaled, node.like(0, x)), mask


@converts(
    "aten.rand.default",
    "aten.rand_like.default",
    "aten.uniform.default",
)
def rand(node: Node) -> Result:
    """Numbers that are uniformly distributed, between 0 and 1 if nothing is said."""
    low, high = node.number("from", 0.0), node.number("to", 1.0)
    return uniform(node, node.out_dims(), node.out_dtype(), low, high)


@converts("aten.randn.default", "aten.randn_like.default")
def randn(node: Node) -> Result:
    """Numbers with the standard normal distribution."""
    return normal(node, node.out_dims(), node.out_dtype())


@converts(
    "aten.normal_functional.default",
    "aten.normal.Tensor_Tensor",
    "aten.normal.Tensor_float",
    "aten.normal.float_Tensor",
    "aten.normal.float_float",
)
def normal_(node: Node) -> Result:
    """Normally distributed numbers of a mean and a standard deviation."""
    dtype = node.out_dtype()
    mean, deviation = node.tensor("mean", dtype), node.tensor("std", dtype)
    return op.add(op.multiply(normal(node, node.out_dims(), dtype), deviation), mean)


@converts("aten.log_normal.default")
def log_normal(node: Node) -> Result:
    """Numbers whose logarithms are normally distributed."""
    drawn = normal(node, node.out_dims(), f64)
    scaled = op.multiply(drawn, node.const(node.number("std", 2.0), f64))
    return node.matched(op.exp(op.add(scaled, node.const(node.number("mean", 1.0), f64))), node.out_dtype())


@converts("aten.cauchy.default")
def cauchy(node: Node) -> Result:
    """Numbers with a Cauchy distribution: the tangents of uniformly distributed angles."""
    drawn = uniform(node, node.out_dims(), f64, LEAST - 0.5, 0.5)
    tangents = op.tan(op.multiply(drawn, node.const(math.pi, f64)))
    scaled = op.multiply(tangents, node.const(node.number("sigma", 1.0), f64))
    return node.matched(op.add(scaled, node.const(node.number("median", 0.0), f64)), node.out_dtype())


@converts("aten.geometric.default")
def geometric(node: Node) -> Result:
    """How many trials there are up to the first success."""
    drawn = op.log(uniform(node, node.out_dims(), f64, LEAST))
    p = node.number("p")
    if p == 1:
        return op.ones(list(node.out_dims()), node.out_dtype())
    trials = op.ceil(op.divide(drawn, node.const(math.log1p(-p), f64)))
    return node.matched(op.maximum(trials, node.const(1.0, f64)), node.out_dtype())


@converts("aten.exponential.default")
def exponential(node: Node) -> Result:
    """Exponentially distributed numbers."""
    drawn = op.log(uniform(node, node.out_dims(), f64, LEAST))
    return node.matched(op.divide(drawn, node.const(-node.number("lambd", 1.0), f64)), node.out_dtype())


@converts(
    "aten.randint.default",
    "aten.randint.low",
    "aten.randint_like.default",
    "aten.randint_like.low_dtype",
)
def randint(node: Node) -> Result:
    """Integers that are all equally likely: from `low` on, below `high`."""
    low, high = node.tensor("low" if node.has("low") else "high", f64), node.tensor("high", f64)
    low = low if node.has("low") else node.const(0.0, f64)
    drawn = op.floor(op.multiply(uniform(node, node.out_dims(), f64), op.subtract(high, low)))
    return node.matched(op.add(drawn, low), node.out_dtype())


@converts("aten.randperm.default")
def randperm(node: Node) -> Result:
    """The numbers from 0 on in a random order."""
    return node.matched(op.argsort(uniform(node, node.out_dims(), f64), 0), node.out_dtype())


@converts("aten.bernoulli.default", "aten.bernoulli.p", "aten.bernoulli.Tensor")
def bernoulli(node: Node) -> Result:
    """1 with a probability, else 0."""
    p = node.tensor("p" if node.has("p") else "self", f64)
    return node.matched(op.less(uniform(node, node.out_dims(), f64), p), node.out_dtype())


@converts("aten.multinomial.default")
def multinomial(node: Node) -> Result:
    """Indices, each as likely as its weight says; without replacement no index comes twice."""
    dims, weights = node.out_dims(), node.tensor("self", f64)
    if node.flag("replacement") or dims[-1].constant_value == 1:
        *lead, count = dims
        rows = op.reshape(op.arange(0, product(lead), 1, dtype=i64), [product(lead), 1])
        rows = op.reshape(op.broadcast_to(rows, [product(lead), count]), [product(dims), 1])
        matrix = op.reshape(weights, [product(lead), node.shape()[-1]])
        shares = op.divide(matrix, op.sum(matrix, [1], keepdims=True))
        drawn = op.multinomial_from_uniform(shares, uniform(node, [product(dims), to_dim(1)], f64), rows, dtype=i64)
        return op.reshape(drawn, dims)
    drawn = op.negative(op.log(op.negative(op.log(uniform(node, node.shape(), f64, LEAST)))))
    ranked = op.add(op.log(weights), drawn)
    return op.topk(ranked, dims[-1], -1, ret_type="indices", dtype=i64)[0]


@converts("aten.native_dropout.default")
def dropout(node: Node) -> Result:
    """The data with elements dropped in training, else as they are; and which are kept."""
    p = node.number("p")
    if not node.flag("train") or not p:
        return node.tensor("input"), op.full(node.out_dims(), node.bb.const(True))
    return kept(node, node.tensor("input"), p)


@converts("aten.rrelu_with_noise_functional.default")
def rrelu(node: Node) -> Result:
    """`x` if positive, else `slope * x` with slopes that are random in training, else their mean; and the slopes."""
    x, low, high = node.tensor("self"), node.number("lower"), node.number("upper")
    if not node.flag("training"):
        return [op.nn.leakyrelu(x, (low + high) / 2), node.tensor("noise")]
    if not is_float(node.dtype()):
        raise Refusal("slopes of integers are not supported")
    slopes = op.where(
        op.greater(x, node.like(0, x)), node.like(1, x), uniform(node, node.shape(), node.dtype(), low, high)
    )
    return [op.multiply(x, slopes), slopes]
