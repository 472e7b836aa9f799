"""Matrix products, einsum, attention, normalisation, softmax and activation functions; computed in `f32` for 16-bit
floats.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relax_dialect.interpreter import operators
from relax_dialect.interpreter.operators import computes, element, integers, result_dtype, wide
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.activation import ClipOp, LeakyReluOp, LogSoftmaxOp, PreluOp, SoftmaxBase, SoftmaxOp, SoftplusOp
from relax_dialect.ops.binary import maximum, minimum
from relax_dialect.ops.linear_algebra import AttentionBase, AttentionBiasOp, AttentionOp, EinsumOp, MatmulOp, OuterOp
from relax_dialect.ops.normalization import BatchNormOp, GroupNormOp, InstanceNormOp, LayerNormOp, RMSNormOp


@computes(MatmulOp)
def matmul(op: MatmulOp, x: Array, y: Array) -> Array:
    """NumPy's `matmul`, in the dtype of the result; 16-bit floats are summed in `f32`."""
    dtype = result_dtype(op, x)
    left, right = (wide(operand.astype(dtype, copy=False)) for operand in (x, y))
    return np.asarray(np.matmul(left, right)).astype(dtype, copy=False)


@computes(OuterOp)
def outer(op: OuterOp, x: Array, y: Array) -> Array:
    """All products."""
    return np.outer(x, y)


@computes(EinsumOp)
def einsum(op: EinsumOp, *operands: Array) -> Array:
    """NumPy's `einsum`; 16-bit floats are summed in `f32`."""
    return operators.einsum(op.subscripts.data, *map(wide, operands)).astype(operands[0].dtype)


@computes(AttentionOp, AttentionBiasOp)
def attention(op: AttentionBase, q: Array, k: Array, v: Array, *others: Array) -> Array:
    """`softmax(q @ transpose(k) * scale + bias) @ v`; zeros for a query that sees no key."""
    bias = others[0] if isinstance(op, AttentionBiasOp) else None
    queries, keys, values = (
        wide(each).transpose(*map(layout.index, "BHSD")) for each, layout in zip((q, k, v), op.layouts, strict=False)
    )
    shared = queries.shape[1] // max(keys.shape[1], 1)
    keys, values = np.repeat(keys, shared, 1), np.repeat(values, shared, 1)
    scale = 1 / np.sqrt(queries.shape[3]) if op.scale is None else op.scale.value.data
    scores = queries @ keys.swapaxes(2, 3) * queries.dtype.type(scale)
    if op.softcap is not None:
        cap = scores.dtype.type(op.softcap.value.data)
        scores = np.tanh(scores / cap) * cap
    scores = scores if bias is None else biased(op, scores, bias)
    seen = visible(op, queries.shape[2], keys.shape[2])
    seen = seen & bias if bias is not None and hides(op, bias) else seen
    top = np.max(scores, axis=3, keepdims=True, initial=-np.inf, where=seen)
    sink = None if op.sink is None else wide(others[-1])[:, None, None]
    top = top if sink is None else np.maximum(top, sink)
    powers = np.where(seen, np.exp(scores - top), 0)
    total = np.sum(powers, axis=3, keepdims=True) + (0 if sink is None else np.exp(sink - top))
    result = np.where(total == 0, 0, weighted(powers, values) / total if keys.size else 0)
    whole = np.broadcast_to(result, (*queries.shape[:3], values.shape[3]))
    return whole.transpose(*map("BHSD".index, op.layouts[3].text)).astype(q.dtype)


def biased(op: AttentionBase, scores: Array, bias: Array) -> Array:
    """Scores moved by a bias, or replaced where a mask is off."""
    if hides(op, bias):
        return scores
    number = op.masked_score if isinstance(op, AttentionBiasOp) else None
    if number is not None:
        return np.where(bias, scores, scores.dtype.type(number.value.data))
    moved = wide(bias)
    return np.where(moved == -np.inf, moved, scores + moved)


def weighted(powers: Array, values: Array) -> Array:
    """Sums of values by their powers. What has the power 0 is left out, even if it is infinite or NaN."""
    found = powers @ np.where(np.isfinite(values), values, 0)
    for key in np.flatnonzero(~np.isfinite(values).all(axis=(0, 1, 3))):
        power, value = powers[..., key, None], values[:, :, key, None]
        found += np.where((power == 0) | np.isfinite(value), 0, power * value)
    return found


def hides(op: AttentionBase, bias: Array) -> bool:
    """Whether a bias says which keys are left out."""
    return bias.dtype == np.bool_ and isinstance(op, AttentionBiasOp) and op.masked_score is None


def visible(op: AttentionBase, queries: int, keys: int) -> Array:
    """Which keys a query sees."""
    if op.causal_mask is None:
        return np.ones((queries, keys), bool)
    last = np.arange(queries)[:, None] + (keys - queries if op.causal_mask.data == "BottomRight" else 0)
    positions = np.arange(keys)
    seen = positions <= last
    return seen if op.window_size is None else seen & (positions > last - op.window_size.value.data)


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
