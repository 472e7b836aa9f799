"""Normalisation, computed in `f32` for 16-bit floats; softmax and activation functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relax_dialect.interpreter.operators import computes, element, integers, wide
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.activation import ClipOp, LeakyReluOp, LogSoftmaxOp, PreluOp, SoftmaxBase, SoftmaxOp, SoftplusOp
from relax_dialect.ops.binary import maximum, minimum
from relax_dialect.ops.normalization import BatchNormOp, GroupNormOp, InstanceNormOp, LayerNormOp, RMSNormOp


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


def _normalised(x: Array, axes: Sequence[int], epsilon: float) -> Array:
    """`(x - mean) / sqrt(variance + epsilon)` over axes."""
    along = tuple(axes)
    mean = np.mean(x, axis=along, keepdims=True)
    variance = np.mean(np.square(x - mean), axis=along, keepdims=True)
    return (x - mean) / np.sqrt(variance + x.dtype.type(epsilon))


def _at(weight: Array, axes: Sequence[int], rank: int) -> Array:
    """A weight whose dimensions are those at the axes, in their order, for a tensor of a rank."""
    positions = [axis % rank for axis in axes]
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    shape = [1] * rank
    for position, length in zip(positions, weight.shape, strict=True):
        shape[position] = length
    return wide(weight).transpose(order).reshape(shape)


@computes(LayerNormOp)
def layer_norm(op: LayerNormOp, x: Array, gamma: Array, beta: Array) -> Array:
    """Over the axes."""
    axes = integers(op.axes) or ()
    result = _normalised(wide(x), axes, op.epsilon.value.data) if axes else np.zeros_like(wide(x))
    result = result if op.no_scale is not None else result * _at(gamma, axes, x.ndim)
    result = result if op.no_center is not None else result + _at(beta, axes, x.ndim)
    return result.astype(x.dtype)


@computes(RMSNormOp)
def rms_norm(op: RMSNormOp, x: Array, weight: Array) -> Array:
    """By the root mean square over the axes."""
    axes, w = integers(op.axes) or (), wide(x)
    square = np.mean(np.square(w), axis=axes, keepdims=True)
    return (w / np.sqrt(square + w.dtype.type(op.epsilon.value.data)) * _at(weight, axes, x.ndim)).astype(x.dtype)


@computes(GroupNormOp)
def group_norm(op: GroupNormOp, x: Array, gamma: Array, beta: Array) -> Array:
    """Over the axes and the channels of a group."""
    channel, groups = op.channel_axis.value.data % x.ndim, op.num_groups.value.data
    axes = [axis % x.ndim for axis in integers(op.axes) or ()]
    grouped = wide(x).reshape((*x.shape[:channel], groups, x.shape[channel] // groups, *x.shape[channel + 1 :]))
    inner = [channel + 1, *(axis if axis < channel else axis + 1 for axis in axes)]
    result = _normalised(grouped, inner, op.epsilon.value.data).reshape(x.shape)
    return (result * _at(gamma, [channel], x.ndim) + _at(beta, [channel], x.ndim)).astype(x.dtype)


@computes(InstanceNormOp)
def instance_norm(op: InstanceNormOp, x: Array, gamma: Array, beta: Array) -> Array:
    """Over the axes."""
    channel = [op.channel_axis.value.data]
    result = _normalised(wide(x), integers(op.axes) or (), op.epsilon.value.data)
    return (result * _at(gamma, channel, x.ndim) + _at(beta, channel, x.ndim)).astype(x.dtype)


@computes(BatchNormOp)
def batch_norm(op: BatchNormOp, x: Array, gamma: Array, beta: Array, mean: Array, variance: Array) -> Array:
    """By the given mean and variance of each channel."""
    channel, w = [op.axis.value.data], wide(x)
    deviation = np.sqrt(_at(variance, channel, x.ndim) + w.dtype.type(op.epsilon.value.data))
    result = (w - _at(mean, channel, x.ndim)) / deviation
    result = result if op.no_scale is not None else result * _at(gamma, channel, x.ndim)
    result = result if op.no_center is not None else result + _at(beta, channel, x.ndim)
    return result.astype(x.dtype)
