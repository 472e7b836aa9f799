"""Activation functions and softmax."""

from __future__ import annotations

import numpy as np

from relax_dialect.interpreter.operators import computes, element, wide
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.activation import ClipOp, LeakyReluOp, LogSoftmaxOp, PreluOp, SoftmaxBase, SoftmaxOp, SoftplusOp
from relax_dialect.ops.binary import maximum, minimum


@computes(LeakyReluOp)
def leaky_relu(op: LeakyReluOp, x: Array) -> Array:
    """`alpha * x` where x is not positive."""
    w = wide(x)
    return np.where(w > 0, w, w.dtype.type(op.alpha.value.data) * w).astype(x.dtype)


@computes(SoftplusOp)
def softplus(op: SoftplusOp, x: Array) -> Array:
    """`log(1 + exp(beta * x)) / beta`, x itself far to the right."""
    w = wide(x)
    beta = w.dtype.type(op.beta.value.data)
    scaled = beta * w
    return np.where(scaled > op.threshold.value.data, w, np.log1p(np.exp(scaled)) / beta).astype(x.dtype)


@computes(PreluOp)
def prelu(op: PreluOp, x: Array, slope: Array) -> Array:
    """`slope * x` where x is not positive, with a slope for each position along the axis."""
    shape = [1] * x.ndim
    shape[op.axis.value.data] = slope.size
    w = wide(x)
    return np.where(w > 0, w, wide(slope).reshape(shape) * w).astype(x.dtype)


@computes(ClipOp)
def clip(op: ClipOp, x: Array) -> Array:
    """`min(max(x, low), high)`."""
    low, high = (element(bound.value.data, op, x) for bound in (op.min, op.max))
    return minimum(maximum(x, low), high)


@computes(SoftmaxOp, LogSoftmaxOp)
def softmax(op: SoftmaxBase, x: Array) -> Array:
    """The function of the op along its axis."""
    return op.EVALUATE(wide(x), op.axis.value.data).astype(x.dtype)
