"""Normalisation."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.relax_to_tir.elementwise import narrow, number, widen
from lowering.relax_to_tir.indices import axes_of, axis_of, without
from lowering.relax_to_tir.kernel import Kernel, legalizes
from lowering.relax_to_tir.reduction import Element, mean_of, variance_of
from relax_dialect.ops.normalization import BatchNormOp, GroupNormOp, InstanceNormOp, LayerNormOp, RMSNormOp
from tir_dialect import te
from tir_dialect.dims import Dim, constant


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
