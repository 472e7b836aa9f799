"""Normalisation, softmax and activation functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lowering.relax_to_tir.elementwise import narrow, number, widen
from lowering.relax_to_tir.indices import axes_of, axis_of, without
from lowering.relax_to_tir.kernel import Kernel, legalizes
from lowering.relax_to_tir.reduction import Element, mean_of, variance_of
from relax_dialect.ops.activation import ClipOp, LeakyReluOp, LogSoftmaxOp, PreluOp, SoftmaxBase, SoftmaxOp, SoftplusOp
from relax_dialect.ops.normalization import BatchNormOp, GroupNormOp, InstanceNormOp, LayerNormOp, RMSNormOp
from tir_dialect import te
from tir_dialect.dims import Dim, constant


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


def _normalised(shape: Sequence[Dim], axes: Sequence[int], element: Element, epsilon: float) -> Element:
    """`(x - mean) / sqrt(variance + epsilon)` over axes."""
    means, variances = variance_of(shape, axes, element)

    def normalised(i: tuple[te.Expr, ...]) -> te.Expr:
        outer = without(i, *axes)
        variance = variances[outer]
        return (element(i) - means[outer]) / te.sqrt(variance + number(epsilon, variance))

    return normalised


def _weight(weight: te.Tensor, axes: Sequence[int]) -> Element:
    """A weight whose dimensions are those at the axes, in their order."""
    return lambda i: widen(weight[tuple(i[axis] for axis in axes)])


def _affine(x: te.Tensor, element: Element, gamma: Element | None, beta: Element | None, name: str) -> te.Tensor:
    """`element * gamma + beta` on every position of `x`."""

    def affine(*i: te.Expr) -> te.Expr:
        value = element(i)
        value = value if gamma is None else value * gamma(i)
        return narrow(value if beta is None else value + beta(i), x)

    return te.compute(x.shape, affine, name=name)


@legalizes(LayerNormOp)
def layer_norm(kernel: Kernel, op: LayerNormOp) -> te.Tensor:
    """Over the axes."""
    x = kernel.tensor(op.x)
    axes = axes_of(op.axes, x.ndim)
    element = _normalised(x.shape, axes, lambda i: widen(x[i]), op.epsilon.value.data)
    gamma = None if op.no_scale is not None else _weight(kernel.tensor(op.gamma), axes)
    beta = None if op.no_center is not None else _weight(kernel.tensor(op.beta), axes)
    return _affine(x, element, gamma, beta, "layer_norm")


@legalizes(RMSNormOp)
def rms_norm(kernel: Kernel, op: RMSNormOp) -> te.Tensor:
    """By the root mean square over the axes."""
    x = kernel.tensor(op.x)
    axes = axes_of(op.axes, x.ndim)
    squares = mean_of(x.shape, axes, lambda i: widen(x[i]) * widen(x[i]), "squares")

    def element(i: tuple[te.Expr, ...]) -> te.Expr:
        square = squares[without(i, *axes)]
        return widen(x[i]) / te.sqrt(square + number(op.epsilon.value.data, square))

    return _affine(x, element, _weight(kernel.tensor(op.weight), axes), None, "rms_norm")


@legalizes(GroupNormOp)
def group_norm(kernel: Kernel, op: GroupNormOp) -> te.Tensor:
    """Over the axes and the channels of a group."""
    x, groups = kernel.tensor(op.x), op.num_groups.value.data
    channel = axis_of(op.channel_axis, x.ndim)
    size = x.shape[channel] // groups
    inner = [channel + 1, *(axis + (axis > channel) for axis in axes_of(op.axes, x.ndim))]
    shape = (*x.shape[:channel], constant(groups), size, *x.shape[channel + 1 :])

    def joined(i: tuple[te.Expr, ...]) -> te.Expr:
        return widen(x[(*i[:channel], i[channel] * size + i[channel + 1], *i[channel + 2 :])])

    grouped = _normalised(shape, inner, joined, op.epsilon.value.data)

    def element(i: tuple[te.Expr, ...]) -> te.Expr:
        return grouped((*i[:channel], i[channel] // size, i[channel] % size, *i[channel + 1 :]))

    gamma, beta = (_weight(kernel.tensor(weight), [channel]) for weight in (op.gamma, op.beta))
    return _affine(x, element, gamma, beta, "group_norm")


@legalizes(InstanceNormOp)
def instance_norm(kernel: Kernel, op: InstanceNormOp) -> te.Tensor:
    """Over the axes."""
    x = kernel.tensor(op.x)
    channel = [axis_of(op.channel_axis, x.ndim)]
    element = _normalised(x.shape, axes_of(op.axes, x.ndim), lambda i: widen(x[i]), op.epsilon.value.data)
    gamma, beta = (_weight(kernel.tensor(weight), channel) for weight in (op.gamma, op.beta))
    return _affine(x, element, gamma, beta, "instance_norm")


@legalizes(BatchNormOp)
def batch_norm(kernel: Kernel, op: BatchNormOp) -> te.Tensor:
    """By the given mean and variance of each channel."""
    x = kernel.tensor(op.x)
    channel = [axis_of(op.axis, x.ndim)]
    mean, variance = (_weight(kernel.tensor(weight), channel) for weight in (op.mean, op.variance))

    def element(i: tuple[te.Expr, ...]) -> te.Expr:
        spread = variance(i)
        return (widen(x[i]) - mean(i)) / te.sqrt(spread + number(op.epsilon.value.data, spread))

    gamma = None if op.no_scale is not None else _weight(kernel.tensor(op.gamma), channel)
    beta = None if op.no_center is not None else _weight(kernel.tensor(op.beta), channel)
    return _affine(x, element, gamma, beta, "batch_norm")
