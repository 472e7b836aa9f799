"""Matrix products, einsum and attention, which is computed in `f32` for 16-bit floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import inf
from typing import TypeAlias, TypeVar

from xdsl.ir import SSAValue

from lowering.relax_to_tir.elementwise import narrow, number, widen
from lowering.relax_to_tir.kernel import Kernel, axes_of, axis_of, broadcast_index, broadcast_load, legalizes, without
from lowering.relax_to_tir.reduction import Element, mean_of, variance_of
from relax_dialect.ops.activation import ClipOp, LeakyReluOp, LogSoftmaxOp, PreluOp, SoftmaxBase, SoftmaxOp, SoftplusOp
from relax_dialect.ops.layouts import Layout
from relax_dialect.ops.linear_algebra import (
    LAYOUT,
    AttentionBase,
    AttentionBiasOp,
    AttentionOp,
    EinsumOp,
    MatmulOp,
    OuterOp,
    heads_of_queries,
)
from relax_dialect.ops.normalization import BatchNormOp, GroupNormOp, InstanceNormOp, LayerNormOp, RMSNormOp
from tir_dialect import te
from tir_dialect.dims import Dim, broadcast, constant, maximum
from tir_dialect.dtypes import is_bool


@legalizes(MatmulOp)
def matmul(kernel: Kernel, op: MatmulOp) -> te.Tensor:
    """Sums of products over the contracted axis, in the dtype of the result; 16-bit floats are summed in `f32`."""
    x, y = kernel.tensor(op.x), kernel.tensor(op.y)
    shape, dtype = kernel.shape(op.result), str(kernel.dtype(op.result))
    rows, columns = int(x.ndim > 1), int(y.ndim > 1)
    rank = len(shape) - rows - columns
    r = te.reduce_axis(x.shape[-1], "r")

    def element(*i: te.Expr) -> te.Expr:
        batch, row, column = i[:rank], i[rank : rank + rows], i[len(i) - columns :]
        left = x[(*broadcast_index(x.shape[:-2], shape[:rank], batch), *row, r)]
        right = y[(*broadcast_index(y.shape[:-2], shape[:rank], batch), r, *column)]
        return te.cast(te.sum(widen(te.cast(left, dtype)) * widen(te.cast(right, dtype)), r), dtype)

    return te.compute(shape, element, name="matmul")


@legalizes(OuterOp)
def outer(kernel: Kernel, op: OuterOp) -> te.Tensor:
    """All products."""
    x, y = kernel.tensor(op.x), kernel.tensor(op.y)
    return te.compute(kernel.shape(op.result), lambda *i: narrow(widen(x[i[0]]) * widen(y[i[1]]), x), name="outer")


@legalizes(EinsumOp)
def einsum(kernel: Kernel, op: EinsumOp) -> te.Tensor:
    """Sums of products over the letters that are not in the result."""
    tensors = [kernel.tensor(operand) for operand in op.inputs]
    groups, output = op.letters
    extents: dict[str, Dim] = {}
    for tensor, letters in zip(tensors, groups, strict=True):
        for letter, extent in zip(letters, tensor.shape, strict=True):
            known = extents.get(letter, extent)
            extents[letter] = extent if known is extent else broadcast(known, extent)
    extents.update(zip(output, kernel.shape(op.result), strict=True))
    summed = {letter: te.reduce_axis(extent, letter) for letter, extent in extents.items() if letter not in output}

    def element(*i: te.Expr) -> te.Expr:
        positions: dict[str, te.Expr] = {**summed, **dict(zip(output, i, strict=True))}
        factors: list[te.Expr] = []
        for tensor, letters in zip(tensors, groups, strict=True):
            shape, index = [extents[letter] for letter in letters], [positions[letter] for letter in letters]
            factors.append(widen(broadcast_load(tensor, shape, index)))
        value = reduce(lambda a, b: a * b, factors)
        return narrow(te.sum(value, list(summed.values())) if summed else value, tensors[0])

    return te.compute(kernel.shape(op.result), element, name="einsum")


@legalizes(AttentionOp)
def attention(kernel: Kernel, op: AttentionOp) -> te.Tensor:
    """Scores, powers, their sums, and the mean of values that they weigh."""
    return _attention(kernel, op, (op.q, op.k, op.v))


@legalizes(AttentionBiasOp)
def attention_bias(kernel: Kernel, op: AttentionBiasOp) -> te.Tensor:
    """The same with a bias on the scores."""
    return _attention(kernel, op, (op.q, op.k, op.v), kernel.tensor(op.bias))


def _attention(
    kernel: Kernel, op: AttentionBase, operands: Sequence[SSAValue], bias: te.Tensor | None = None
) -> te.Tensor:
    q, k, v = (_View(kernel.tensor(each), order) for each, order in zip(operands, op.layouts, strict=False))
    batch, queries, heads, _ = q.shape
    keys = k.shape[1]
    scores = _scores(op, q, k, bias)
    seen = _seen(op, (batch, heads, queries, keys), bias)
    powers, sums = _softmax_terms(scores, seen, None if op.sink is None else kernel.tensor(op.sink))
    s = te.reduce_axis(keys, "s")

    def weighted(b: te.Expr, i: te.Expr, h: te.Expr, d: te.Expr) -> te.Expr:
        share = powers[b, h, i, s]
        # A key that is not seen has the share 0, but 0 times an infinite value is NaN.
        product = share * widen(v[b, s, _shared(h, heads, v.shape[2]), d])
        return te.sum(te.select(share == 0, te.const(0.0, share.dtype), product), s)

    def element(b: te.Expr, i: te.Expr, h: te.Expr, d: te.Expr) -> te.Expr:
        total = sums[b, h, i]
        # A query that sees no key gives zeros.
        return narrow(te.select(total == 0, total, totals[_ordered(out, (b, i, h, d))] / total), q.tensor)

    out = op.layouts[3]
    shape = _ordered(out, (batch, queries, heads, v.shape[3]))
    totals = te.compute(shape, lambda *i: weighted(*_by_letter(out, i)), name="totals")
    return te.compute(shape, lambda *i: element(*_by_letter(out, i)), name="attention")


Seen: TypeAlias = Callable[[te.Expr, te.Expr, te.Expr, te.Expr], te.Expr]
"""Whether a key is seen, by batch, head, query and key."""


def _softmax_terms(scores: te.Tensor, seen: Seen | None, sink: te.Tensor | None) -> tuple[te.Tensor, te.Tensor]:
    """The powers of scores, of which the greatest in each row is 1, and their sums, in which a sink takes part."""
    *rows, keys = scores.shape
    r, t = (te.reduce_axis(keys, name) for name in ("r", "t"))

    def greatest(b: te.Expr, h: te.Expr, i: te.Expr) -> te.Expr:
        return te.max(scores[b, h, i, r], r, where=None if seen is None else seen(b, h, i, r))

    def power(b: te.Expr, h: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        value = te.exp(scores[b, h, i, j] - top[b, h, i])
        return value if seen is None else te.select(seen(b, h, i, j), value, te.const(0.0, value.dtype))

    highest = top = te.compute(rows, greatest, name="top")
    if sink is not None:
        top = te.compute(rows, lambda *i: te.maximum(highest[i], widen(sink[i[1]])), name="top_or_sink")
    powers = te.compute(scores.shape, power, name="powers")
    sums = te.compute(rows, lambda *i: te.sum(powers[(*i, t)], t), name="sums")
    if sink is None:
        return powers, sums
    # Before the sums of values, so that a kernel goes once through a row.
    whole = te.compute(rows, lambda *i: sums[i] + te.exp(widen(sink[i[1]]) - top[i]), name="sums_with_sink")
    return powers, whole


class _View:
    """A tensor in some layout, indexed by batch, sequence, head and feature."""

    def __init__(self, tensor: te.Tensor, layout: Layout):
        self.tensor = tensor
        self.layout = layout

    @property
    def shape(self) -> tuple[Dim, ...]:
        return _by_letter(self.layout, self.tensor.shape)

    def __getitem__(self, indices: Sequence[te.Expr]) -> te.Expr:
        return self.tensor[_ordered(self.layout, indices)]


T = TypeVar("T")


def _by_letter(layout: Layout, values: Sequence[T]) -> tuple[T, ...]:
    """What belongs to batch, sequence, head and feature."""
    return tuple(values[layout.index(letter)] for letter in LAYOUT)


def _ordered(layout: Layout, values: Sequence[T]) -> tuple[T, ...]:
    """What belongs to batch, sequence, head and feature in the order of a layout."""
    return tuple(values[LAYOUT.index(letter)] for letter in layout.letters)


def _scores(op: AttentionBase, q: _View, k: _View, bias: te.Tensor | None) -> te.Tensor:
    """Products of queries and keys, scaled and moved by the bias; by batch, head, query and key."""
    shape = (q.shape[0], q.shape[2], q.shape[1], k.shape[1])
    c = te.reduce_axis(q.shape[3], "c")

    def product(b: te.Expr, h: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        return te.sum(widen(q[b, i, h, c]) * widen(k[b, j, _shared(h, q.shape[2], k.shape[2]), c]), c)

    products = te.compute(shape, product, name="products")

    def score(*i: te.Expr) -> te.Expr:
        value = products[i] * _scale(op, q.shape[3], products[i])
        if op.softcap is not None:
            cap = number(op.softcap.value.data, value)
            value = te.tanh(value / cap) * cap
        if bias is None or _hides(op, bias):
            return value
        here = broadcast_load(bias, shape, i)
        masked = op.masked_score if isinstance(op, AttentionBiasOp) else None
        if masked is not None:
            return te.select(here, value, number(masked.value.data, value))
        moved, least = widen(here), number(-inf, value)
        # Minus infinity hides a key, whatever its score is: even NaN.
        return te.select(moved == least, least, value + moved)

    return te.compute(shape, score, name="scores")


def _shared(head: te.Expr, queries: Dim, keys: Dim) -> te.Expr:
    """The head of keys and values that serves a head of queries."""
    return head if queries is keys else head // maximum(heads_of_queries(queries, keys), 1)


def _scale(op: AttentionBase, features: Dim, like: te.Expr) -> te.Expr:
    if op.scale is not None:
        return number(op.scale.value.data, like)
    if features.constant_value:
        return number(features.constant_value**-0.5, like)
    return te.rsqrt(te.cast(te.cast(features, "index"), like.dtype))


def _hides(op: AttentionBase, bias: te.Tensor) -> bool:
    """Whether a bias says which keys are left out."""
    return is_bool(bias.dtype) and isinstance(op, AttentionBiasOp) and op.masked_score is None


def _seen(op: AttentionBase, shape: tuple[Dim, ...], bias: te.Tensor | None) -> Seen | None:
    """`None` if all are seen."""
    visible = _visible(op, *shape[2:])
    hiding = bias if bias is not None and _hides(op, bias) else None
    if visible is None and hiding is None:
        return None

    def seen(b: te.Expr, h: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        if hiding is None:
            return te.const(True, "i1") if visible is None else visible(i, j)
        here = broadcast_load(hiding, shape, (b, h, i, j))
        return here if visible is None else te.logical_and(visible(i, j), here)

    return seen


def _visible(op: AttentionBase, queries: Dim, keys: Dim) -> Callable[[te.Expr, te.Expr], te.Expr] | None:
    """Whether a query sees a key; `None` if every query sees all."""
    if op.causal_mask is None:
        return None
    offset = keys - queries if op.causal_mask.data == "BottomRight" else 0
    size = None if op.window_size is None else op.window_size.value.data

    def visible(i: te.Expr, j: te.Expr) -> te.Expr:
        last = i + offset
        return j <= last if size is None else te.logical_and(j <= last, j > last - size)

    return visible


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
