"""Tensors made from a shape or a rule; windows of signals, and frequencies; random numbers.

Random numbers are functions of the program's seed, each node with a stream of its own. They are not PyTorch's, but have
the same distributions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.node import Node, Result, converts
from relax_dialect.frontend.torch.program import Refusal
from tir_dialect import te
from tir_dialect.dims import Dim, constant, maximum, product, to_dim
from tir_dialect.dtypes import is_float


def filled(node: Node, value: Any) -> Expr:
    """A tensor of one value, of the shape and dtype of the result."""
    return op.full(node.out_dims(), node.graph.tensor(value, node.out_dtype()))


@converts("aten.full.default", "aten.full_like.default", "aten.new_full.default")
def full(node: Node) -> Result:
    """A tensor of a value."""
    return filled(node, node.value("fill_value"))


@converts("aten.fill.Scalar", "aten.fill.Tensor")
def fill(node: Node) -> Result:
    """A tensor of a value, of the shape of another."""
    return filled(node, node.value("value"))


@converts("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default")
def ones(node: Node) -> Result:
    """A tensor of ones."""
    return filled(node, 1)


@converts(
    "aten.empty.memory_format",
    "aten.empty_like.default",
    "aten.empty_permuted.default",
    "aten.empty_strided.default",
    "aten.new_empty.default",
    "aten.new_empty_strided.default",
    "aten.new_zeros.default",
    "aten.zero.default",
    "aten.zeros.default",
    "aten.zeros_like.default",
)
def zeros(node: Node) -> Result:
    """A tensor of zeros, also where elements may be anything."""
    return filled(node, 0)


@converts("aten.arange.default", "aten.arange.start", "aten.arange.start_step")
def arange(node: Node) -> Result:
    """Numbers from a start on, as many as PyTorch says there are."""
    dtype = node.out_dtype()
    start, step = (node.value(name) for name in ("start", "step"))
    if not is_float(dtype) and all(isinstance(each, int | None) for each in (start, step)):
        first, by, (length,) = to_dim(start or 0), 1 if step is None else step, node.out_dims()
        return node.matched(op.arange(first, first + length * by, by), dtype)
    return _steps(node, start or 0, 1 if step is None else step)


def _steps(node: Node, start: Any, step: Any) -> Expr:
    """`start + i * step`, computed in `f64` or, of integers, in `i64`."""
    wide = f64 if is_float(node.out_dtype()) else node.out_dtype()
    (length,) = node.out_dims()

    def kernel(start: te.Tensor, step: te.Tensor) -> te.Tensor:
        return te.compute((length,), lambda *i: start[()] + te.cast(i[0], str(wide)) * step[()], name="arange")

    made = node.te(kernel, node.graph.tensor(start, wide), node.graph.tensor(step, wide), name="arange")
    return node.matched(made, node.out_dtype())


@converts("aten.linspace.default")
def linspace(node: Node) -> Result:
    """Numbers at equal distances between two, which are both included."""
    steps = node.graph.dimension(maximum(node.out_dims()[0] - 1, constant(1)), f64)
    start, end = node.tensor("start", f64), node.tensor("end", f64)
    return _steps(node, start, op.divide(op.subtract(end, start), steps))


@converts("aten.eye.default", "aten.eye.m")
def eye(node: Node) -> Result:
    """Ones on the diagonal."""
    rows, columns = node.out_dims()
    return op.eye(rows, columns, 0, dtype=node.out_dtype())


@converts("aten.tril.default", "aten.triu.default")
def triangle(node: Node) -> Result:
    """The lower or upper triangle of matrices."""
    return (op.tril if node.name == "tril" else op.triu)(node.tensor("self"), node.dim("diagonal"))


@converts("aten.tril_indices.default", "aten.triu_indices.default")
def triangle_indices(node: Node) -> Result:
    """The indices of the lower or upper triangle of a matrix."""
    import numpy as np

    function = np.tril_indices if node.name == "tril_indices" else np.triu_indices
    return node.const(function(node.integer("row"), node.integer("offset"), node.integer("col")), node.out_dtype())


@converts("aten.one_hot.default")
def one_hot(node: Node) -> Result:
    """1 at indices along a new axis, else 0."""
    on, off = node.bb.prim(1, node.out_dtype()), node.bb.prim(0, node.out_dtype())
    return op.one_hot(node.tensor("self"), on, off, node.out_dims()[-1], -1)


_COSINES = {"hann_window": [0.5, 0.5], "blackman_window": [0.42, 0.5, 0.08]}


@converts(
    *(f"aten.{name}.{overload}" for name in _COSINES for overload in ("default", "periodic")),
    *(f"aten.hamming_window.{overload}" for overload in ("default", "periodic", "periodic_alpha")),
    "aten.hamming_window.periodic_alpha_beta",
)
def window(node: Node) -> Result:
    """A sum of cosines with alternating signs; it is periodic unless it is said not to be."""
    hamming = [node.number("alpha", 0.54), node.number("beta", 0.46)]
    periodic = node.value("periodic") is not False
    coefficients = _COSINES.get(node.name, hamming)
    return op.cosine_window(node.dim("window_length"), coefficients, periodic=periodic, dtype=node.out_dtype())


@converts("aten.fft_fftfreq.default", "aten.fft_rfftfreq.default")
def frequencies(node: Node) -> Result:
    """The frequencies of a Fourier transform; above the half, negative ones."""
    (length,), dtype, n = node.out_dims(), node.out_dtype(), node.dim("n")
    index = op.arange(0, length, 1, dtype=i64)
    if node.name == "fft_fftfreq":
        size, half = node.graph.dimension(n, i64), node.graph.dimension((n + 1) // 2, i64)
        index = op.where(op.less(index, half), index, op.subtract(index, size))
    step = op.multiply(node.graph.dimension(n, dtype), node.const(node.number("d", 1.0), dtype))
    return op.divide(node.matched(index, dtype), step)


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
