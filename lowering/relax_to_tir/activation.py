"""Activation functions and softmax."""

from __future__ import annotations

from collections.abc import Callable

from lowering.relax_to_tir.elementwise import narrow, number, widen
from lowering.relax_to_tir.indices import axis_of, without
from lowering.relax_to_tir.kernel import Kernel, legalizes
from relax_dialect.ops.activation import ClipOp, LeakyReluOp, LogSoftmaxOp, PreluOp, SoftmaxBase, SoftmaxOp, SoftplusOp
from tir_dialect import te


def each(x: te.Tensor, function: Callable[[te.Expr], te.Expr], name: str) -> te.Tensor:
    """A function on every element, computed wide."""
    return te.compute(x.shape, lambda *i: narrow(function(widen(x[i])), x), name=name)


@legalizes(LeakyReluOp)
def leaky_relu(kernel: Kernel, op: LeakyReluOp) -> te.Tensor:
    """`alpha * x` where x is not positive."""
    alpha = op.alpha.value.data
    return each(kernel.tensor(op.x), lambda x: te.select(x > 0, x, number(alpha, x) * x), "leakyrelu")


@legalizes(SoftplusOp)
def softplus(kernel: Kernel, op: SoftplusOp) -> te.Tensor:
    """`log(1 + exp(beta * x)) / beta`, x itself far to the right."""
    beta, threshold = op.beta.value.data, op.threshold.value.data

    def function(x: te.Expr) -> te.Expr:
        scaled = number(beta, x) * x
        return te.select(scaled > number(threshold, x), x, te.log1p(te.exp(scaled)) / number(beta, x))

    return each(kernel.tensor(op.x), function, "softplus")


@legalizes(PreluOp)
def prelu(kernel: Kernel, op: PreluOp) -> te.Tensor:
    """`slope * x` where x is not positive, with a slope for each position along the axis."""
    x, slope = kernel.tensor(op.x), kernel.tensor(op.slope)
    axis = axis_of(op.axis, x.ndim)
    same = slope.shape[0] is x.shape[axis]

    def element(*i: te.Expr) -> te.Expr:
        value = widen(x[i])
        factor = widen(slope[i[axis] if same else te.minimum(i[axis], slope.shape[0] - 1)])
        return narrow(te.select(value > 0, value, factor * value), x)

    return te.compute(x.shape, element, name="prelu")


@legalizes(ClipOp)
def clip(kernel: Kernel, op: ClipOp) -> te.Tensor:
    """`min(max(x, low), high)`."""
    low, high = op.min.value.data, op.max.value.data

    def function(x: te.Expr) -> te.Expr:
        return te.minimum(te.maximum(x, number(low, x)), number(high, x))

    return each(kernel.tensor(op.x), function, "clip")


@legalizes(SoftmaxOp)
def softmax(kernel: Kernel, op: SoftmaxOp) -> te.Tensor:
    """Powers, divided by their sum."""
    x, axis, top, powers = _powers(kernel, op)
    r = te.reduce_axis(x.shape[axis], "r")
    exps = te.compute(x.shape, powers, name="exps")
    sums = te.compute(top.shape, lambda *i: te.sum(exps[(*i[:axis], r, *i[axis:])], r), name="sums")
    return te.compute(x.shape, lambda *i: narrow(exps[i] / sums[without(i, axis)], x), name="softmax")


@legalizes(LogSoftmaxOp)
def log_softmax(kernel: Kernel, op: LogSoftmaxOp) -> te.Tensor:
    """Distances from the greatest element, less the logarithm of the sum of their powers."""
    x, axis, top, powers = _powers(kernel, op)
    r = te.reduce_axis(x.shape[axis], "r")
    sums = te.compute(top.shape, lambda *i: te.sum(powers(*i[:axis], r, *i[axis:]), r), name="sums")

    def element(*i: te.Expr) -> te.Expr:
        outer = without(i, axis)
        return narrow(widen(x[i]) - top[outer] - te.log(sums[outer]), x)

    return te.compute(x.shape, element, name="log_softmax")


def _powers(kernel: Kernel, op: SoftmaxBase) -> tuple[te.Tensor, int, te.Tensor, Callable[..., te.Expr]]:
    """The operand, the axis, the greatest elements along it, and the powers of the distances from these."""
    x = kernel.tensor(op.x)
    axis = axis_of(op.axis, x.ndim)
    r = te.reduce_axis(x.shape[axis], "r")
    shape = without(x.shape, axis)
    top = te.compute(shape, lambda *i: te.max(widen(x[(*i[:axis], r, *i[axis:])]), r), name="top")
    return x, axis, top, lambda *i: te.exp(widen(x[i]) - top[without(i, axis)])
