"""Normalisation, embeddings, and channels moved in space; layers that PyTorch computes by one operator in inference, as
the operators that they stand for; and recurrent layers.

`nn.TransformerEncoderLayer` and `nn.MultiheadAttention` call operators of their own where no gradients are needed.

PyTorch traces an LSTM, GRU or RNN by unrolling it over time, which fixes the length. `whole_recurrent_layers` puts an
operator of our own, with the same arguments and values, for each of them, so that their length can stay open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial, reduce
from importlib import import_module
from typing import Any

from xdsl.dialects.builtin import i32, i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.creation import kept
from relax_dialect.frontend.torch.manipulation import indices
from relax_dialect.frontend.torch.node import Node, Result, converts
from relax_dialect.frontend.torch.program import FxNode, Refusal, name_of, torch
from tir_dialect.dims import Dim, product, to_dim

NAMESPACE = "xdsl_relax"
LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
"""The recurrent layers, as PyTorch calls their functions and we our operators."""

_OPTIONS = (
    "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first"
)


def whole_recurrent_layers() -> AbstractContextManager[Any]:
    """A context in which `torch.export.export` keeps LSTM, GRU and RNN layers whole.

    With it the length of sequences can be dynamic. Packed sequences are as without it.
    """
    return _mode()()


@cache
def recurrent_operators() -> Mapping[str, Callable[..., Any]]:
    """Our operators by the names of PyTorch's functions. They are known to PyTorch from the first call on."""
    return {name: _operator(name) for name in LAYERS}


def _operator(name: str) -> Callable[..., Any]:
    function = getattr(import_module("torch._VF"), name)
    layer: Any = getattr(torch().ops.aten, name).input
    lstm = name == "lstm"
    state, results = ("Tensor[] hx", "(Tensor, Tensor, Tensor)") if lstm else ("Tensor hx", "(Tensor, Tensor)")
    made = torch().library.custom_op(
        f"{NAMESPACE}::{name}",
        function,
        mutates_args=(),
        schema=f"(Tensor input, {state}, {_OPTIONS}) -> {results}",
        tags=layer.tags,
    )
    made.register_fake(partial(_shapes, lstm))
    return made


def _shapes(
    lstm: bool,
    input: Any,
    hx: Any,
    params: Sequence[Any],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Any, ...]:
    """Results without elements: the outputs, and the last states, which are like those given."""
    states = hx if lstm else [hx]
    units = states[0].shape[-1] * (2 if bidirectional else 1)
    return input.new_empty([*input.shape[:-1], units]), *(each.new_empty(each.shape) for each in states)


@cache
def _mode() -> type[AbstractContextManager[Any]]:
    base = import_module("torch.overrides").TorchFunctionMode
    functions = {getattr(import_module("torch._VF"), name): made for name, made in recurrent_operators().items()}

    class WholeRecurrentLayers(base):
        """Calls our operators instead of PyTorch's functions."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            named: dict[str, Any] = kwargs or {}
            whole = functions.get(func) if not named and len(args) == 9 and isinstance(args[3], bool) else None
            return func(*args, **named) if whole is None else whole(*args)

    return WholeRecurrentLayers


_LAYERS: dict[str, Any] = {"lstm": op.nn.lstm, "gru": op.nn.gru, "rnn_tanh": op.nn.rnn, "rnn_relu": op.nn.rnn}
_GATES = {"lstm": [0, 3, 1, 2], "gru": [1, 0, 2], "rnn_tanh": [0], "rnn_relu": [0]}
"""Where the gates of the operators are in PyTorch's weights."""


@converts(*(f"aten.{name}.input" for name in LAYERS), *(f"{NAMESPACE}.{name}.default" for name in LAYERS))
def recurrent(node: Node) -> Result:
    """Layers over sequences, one after the other: the outputs, and the last states."""
    dropped = node.number("dropout") if node.flag("train") else 0
    layers, directions = node.integer("num_layers"), 2 if node.flag("bidirectional") else 1
    given = node.tensors("hx") if node.name == "lstm" else [node.tensor("hx")]
    x, last = node.tensor("input"), list[list[Expr]]()
    if x.ndim != 3:
        raise Refusal("sequences without a batch dimension are not supported")
    for layer in range(layers):
        x = kept(node, x, dropped)[0] if layer and dropped else x
        start = layer * directions
        states = [op.strided_slice(each, [0], [start], [start + directions]) for each in given]
        make = _projected_layer if is_projected(node.fx) else _layer
        x, *ends = make(node, x, layer * directions, directions, states)
        last.append(ends)
    ends = [op.concat(each, 0) if layers > 1 else each[0] for each in zip(*last, strict=True)]
    return [x, *ends]


def is_projected(node: FxNode) -> bool:
    """Whether a node is an LSTM whose hidden states are projected, which is imported as a loop."""
    if name_of(node.target) not in ("aten.lstm.input", f"{NAMESPACE}.lstm.default"):
        return False
    hidden, cell = (each.meta["val"].shape[-1] for each in node.args[1])
    return hidden != cell


def _projected_layer(node: Node, x: Expr, first: int, directions: int, states: list[Expr]) -> list[Expr]:
    """One layer of an LSTM whose hidden states are projected."""
    batch_first = node.flag("batch_first")
    x = op.permute_dims(x, [1, 0, 2]) if batch_first else x
    found = [_projected(node, x, first + at, at, states, backward=at == 1) for at in range(directions)]
    y, *ends = ([each[at] for each in found] for at in range(3))
    joined = op.concat(y, 2) if directions > 1 else y[0]
    joined = op.permute_dims(joined, [1, 0, 2]) if batch_first else joined
    return [joined, *(op.stack(each, 0) for each in ends)]


def _projected(node: Node, x: Expr, number: int, at: int, states: list[Expr], *, backward: bool) -> list[Expr]:
    """One direction: the outputs by time, and the last states."""
    count = 5 if node.flag("has_biases") else 3
    w, r, *biases, projection = node.tensors("params")[number * count : (number + 1) * count]
    assert x.shape is not None
    assert projection.shape is not None
    time, batch, units = x.shape[0], x.shape[1], projection.shape[0]
    assert time is not None
    assert batch is not None
    assert units is not None
    last = op.subtract(node.graph.dimension(to_dim(time), i64), node.const(1, i64))
    gates = reduce(op.add, biases, op.matmul(x, op.permute_dims(w)))
    h, c = (op.squeeze(op.strided_slice(each, [0], [at], [at + 1]), [0]) for each in states)
    y = op.zeros([time, batch, units], node.dtype("input"))
    with node.bb.while_({"t": node.const(0, i64), "h": h, "c": c, "y": y}) as loop:
        with loop.condition() as (t, *_):
            node.bb.yield_(op.less_equal(t, last))
        with loop.body() as (t, h, c, y):
            here = op.subtract(last, t) if backward else t
            added = op.add(op.take(gates, here, 0), op.matmul(h, op.permute_dims(r)))
            i, f, g, o = op.split(added, sections=4, axis=1)
            c = op.add(op.multiply(op.sigmoid(f), c), op.multiply(op.sigmoid(i), op.tanh(g)))
            h = op.matmul(op.multiply(op.sigmoid(o), op.tanh(c)), op.permute_dims(projection))
            y = op.index_put(y, op.expand_dims(h, [0]), [op.reshape(here, [1])])
            node.bb.yield_(op.add(t, node.const(1, i64)), h, c, y)
    _, h, c, y = loop.results
    return [y, h, c]


def _layer(node: Node, x: Expr, first: int, directions: int, states: list[Expr]) -> list[Expr]:
    """One layer; `first` is the number of its first direction."""
    batch_first = node.flag("batch_first")
    weights = [_weights(node, first + at) for at in range(directions)]
    w, r, b = (op.stack(list(each), 0) for each in zip(*weights, strict=True))
    if batch_first:
        states = [op.permute_dims(each, [1, 0, 2]) for each in states]
    if node.name == "lstm":
        units = r.shape[2] if r.shape is not None else None
        states = [*states, op.full([directions, 3 * units], node.like(0, x))] if units is not None else states
    options: dict[str, Any] = {"direction": "bidirectional" if directions == 2 else "forward"}
    if node.name == "gru":
        options["linear_before_reset"] = True
    if node.name == "rnn_relu":
        options["activations"] = " ".join(["relu"] * directions)
    # All sequences are whole.
    outer, inner, _ = node.shape("input")
    batch, length = (outer, inner) if node.flag("batch_first") else (inner, outer)
    y, *ends = _LAYERS[node.name](
        x, w, r, b, op.full([batch], node.graph.dimension(length, i32)), states, batch_first=batch_first, **options
    )
    if batch_first:
        return [_joined(y, [0, 1, 2, 3]), *(op.permute_dims(each, [1, 0, 2]) for each in ends)]
    return [_joined(y, [0, 2, 1, 3]), *ends]


def _joined(y: Expr, order: list[int]) -> Expr:
    """The outputs of all directions one behind the other."""
    made = y if order == sorted(order) else op.permute_dims(y, order)
    assert made.shape is not None
    *lead, directions, units = made.shape
    assert directions is not None
    assert units is not None
    return op.reshape(made, [*(each for each in lead if each is not None), directions * units])


def _weights(node: Node, direction: int) -> Sequence[Expr]:
    """The weights of the data and of the state, and the biases of both, of one direction."""
    each = 4 if node.flag("has_biases") else 2
    parts = node.tensors("params")[direction * each : (direction + 1) * each]
    w, r, *biases = (_reordered(part, _GATES[node.name]) for part in parts)
    rows = None if w.shape is None else w.shape[0]
    if not biases and rows is not None:
        biases = [op.full([rows], node.like(0, w))] * 2
    return w, r, op.concat(biases, 0)


def _reordered(x: Expr, order: list[int]) -> Expr:
    if len(order) == 1:
        return x
    parts = op.split(x, sections=len(order), axis=0)
    return op.concat([parts[at] for at in order], 0)


def attention(
    query: Any,
    key: Any,
    value: Any,
    embed_dim: int,
    num_head: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    mask: Any = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Any, Any]:
    """`nn.MultiheadAttention` of tensors `[batch, length, features]`, and its weights, or `None`.

    A mask hides what is not 0 in it: for all `[queries, keys]` (`mask_type` 0), for each text `[batch, keys]` (1), or
    for each head `[batch, heads, queries, keys]` (2).
    """
    linear, library = torch().nn.functional, torch()
    parts = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    q, k, v = (
        linear.linear(x, weight, bias).unflatten(-1, (num_head, embed_dim // num_head)).transpose(1, 2)
        for x, weight, bias in parts
    )
    seen = None
    if mask is not None:
        seen = mask.to(library.bool).logical_not()
        seen = seen[:, None, None, :] if mask_type == 1 else seen
    if need_weights:
        scores = q @ k.transpose(-2, -1) * (embed_dim // num_head) ** -0.5
        hidden = scores if seen is None else scores.masked_fill(seen.logical_not(), float("-inf"))
        weights = library.ops.aten._safe_softmax(hidden, -1)
        made = weights @ v
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        made, weights = linear.scaled_dot_product_attention(q, k, v, seen), None
    return linear.linear(made.transpose(1, 2).flatten(2), proj_weight, proj_bias), weights


def encoder_layer(
    src: Any,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Any,
    norm_bias_1: Any,
    norm_weight_2: Any,
    norm_bias_2: Any,
    ffn_weight_1: Any,
    ffn_bias_1: Any,
    ffn_weight_2: Any,
    ffn_bias_2: Any,
    mask: Any = None,
    mask_type: int | None = None,
) -> Any:
    """`nn.TransformerEncoderLayer` of a tensor `[batch, length, features]`."""
    nn = torch().nn.functional

    def attended(x: Any) -> Any:
        parameters = qkv_weight, qkv_bias, proj_weight, proj_bias
        return attention(x, x, x, embed_dim, num_heads, *parameters, mask, False, mask_type=mask_type)[0]

    def fed_forward(x: Any) -> Any:
        activation = nn.gelu if use_gelu else nn.relu
        return nn.linear(activation(nn.linear(x, ffn_weight_1, ffn_bias_1)), ffn_weight_2, ffn_bias_2)

    def norm_1(x: Any) -> Any:
        return nn.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x: Any) -> Any:
        return nn.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attended(norm_1(src))
        return x + fed_forward(norm_2(x))
    x = norm_1(src + attended(src))
    return norm_2(x + fed_forward(x))


def layer_decompositions() -> Mapping[Any, Callable[..., Any]]:
    """By the operator."""
    aten = torch().ops.aten
    return {
        aten._native_multi_head_attention.default: attention,
        aten._transformer_encoder_layer_fwd.default: encoder_layer,
    }


_EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}
"""The distance of 1 to the next number, which is the default of `rms_norm`."""


def _given(node: Node, name: str, value: float, dims: Sequence[Dim]) -> Expr:
    """An argument, or a tensor of one value."""
    found = node.optional(name)
    return op.full(list(dims), node.const(value, node.out_dtype())) if found is None else found


@converts("aten.layer_norm.default", "aten.native_layer_norm.default")
def layer_norm(node: Node) -> Result:
    """Over the last dimensions; and mean and inverse deviation, for which only training has a use."""
    dims = node.dims("normalized_shape")
    axes = list(range(-len(dims), 0))
    made = op.nn.layer_norm(
        node.tensor("input"),
        _given(node, "weight", 1.0, dims),
        _given(node, "bias", 0.0, dims),
        axes,
        node.number("eps"),
        center=node.has("bias"),
        scale=node.has("weight"),
    )
    return made if node.name == "layer_norm" else [made, *_mean_and_inverse_deviation(node, node.tensor("input"), axes)]


def _mean_and_inverse_deviation(node: Node, x: Expr, axes: Sequence[int]) -> list[Expr | None]:
    """Results 1 and 2 of a normalisation over some axes of `x`, those that are used."""

    def as_result(index: int, value: Expr) -> Expr:
        return op.reshape(node.matched(value, node.out_dtype(index)), node.out_dims(index))

    found: list[Expr | None] = [None, None]
    if node.wants(1):
        found[0] = as_result(1, op.mean(x, list(axes)))
    if node.wants(2):
        variance = op.variance(x, list(axes))
        found[1] = as_result(2, op.rsqrt(op.add(variance, node.like(node.number("eps"), variance))))
    return found


@converts("aten.rms_norm.default")
def rms_norm(node: Node) -> Result:
    """By the root of the mean square of the last dimensions."""
    dims = node.dims("normalized_shape")
    epsilon = node.number("eps", _EPSILON[str(node.dtype("input"))])
    return op.nn.rms_norm(node.tensor("input"), _given(node, "weight", 1.0, dims), list(range(-len(dims), 0)), epsilon)


@converts("aten.group_norm.default")
def group_norm(node: Node) -> Result:
    """Groups of channels, each with all that is in them."""
    return _in_groups(node, node.integer("num_groups"))


@converts("aten.native_group_norm.default")
def native_group_norm(node: Node) -> Result:
    """Groups of channels; and mean and inverse deviation, for which only training has a use."""
    items, channels, *spatial = node.shape("input")
    groups = node.integer("group")
    size = product([channels // groups, *spatial])
    x = op.reshape(node.tensor("input"), [items, groups, size])
    return [_in_groups(node, groups), *_mean_and_inverse_deviation(node, x, [2])]


def _in_groups(node: Node, groups: int) -> Expr:
    channels = node.shape("input")[1:2]
    gamma, beta = _given(node, "weight", 1.0, channels), _given(node, "bias", 0.0, channels)
    axes = list(range(2, node.rank("input")))
    return op.nn.group_norm(node.tensor("input"), gamma, beta, groups, 1, axes, node.number("eps"))


@converts("aten._native_batch_norm_legit_no_training.default")
def batch_norm(node: Node) -> Result:
    """Each channel with a mean and variance that are known."""
    return [_batch_norm(node, node.tensor("running_mean"), node.tensor("running_var")), *_no_statistics(node)]


@converts("aten._native_batch_norm_legit.no_stats")
def batch_norm_of_batch(node: Node) -> Result:
    """Each channel with the mean and variance of the batch."""
    mean, variance = _statistics(node)
    return [_batch_norm(node, mean, variance), *_statistics_of_batch(node)]


@converts("aten._native_batch_norm_legit_functional.default")
def batch_norm_in_training(node: Node) -> Result:
    """With the mean and variance of the batch, which also move those that are kept."""
    old = node.tensor("running_mean"), node.tensor("running_var")
    if not node.flag("training"):
        return [_batch_norm(node, *old), *_no_statistics(node), *old]
    mean, variance = _statistics(node)
    dims = node.shape("input")
    count = node.graph.dimension(product([dims[0], *dims[2:]]), node.out_dtype())
    unbiased = op.multiply(variance, op.divide(count, op.subtract(count, node.like(1, count))))
    rate = node.number("momentum")
    moved = [
        op.add(op.multiply(kept, node.like(1 - rate, kept)), op.multiply(new, node.like(rate, kept)))
        for kept, new in zip(old, (mean, unbiased), strict=True)
    ]
    return [_batch_norm(node, mean, variance), *_statistics_of_batch(node), *moved]


def _statistics_of_batch(node: Node) -> list[Expr | None]:
    """The mean and the inverse deviation of each channel, those that are used."""
    return _mean_and_inverse_deviation(node, node.tensor("input"), [0, *range(2, node.rank("input"))])


def _no_statistics(node: Node) -> list[Expr]:
    """What stands for them where none are made."""
    return [op.zeros(node.out_dims(index), node.out_dtype(index)) for index in (1, 2)]


def _statistics(node: Node) -> tuple[Expr, Expr]:
    """The mean and variance of each channel."""
    axes = [0, *range(2, node.rank("input"))]
    return op.mean(node.tensor("input"), axes), op.variance(node.tensor("input"), axes)


def _batch_norm(node: Node, mean: Expr, variance: Expr) -> Expr:
    channels = node.shape("input")[1:2]
    gamma, beta = _given(node, "weight", 1.0, channels), _given(node, "bias", 0.0, channels)
    return op.nn.batch_norm(node.tensor("input"), gamma, beta, mean, variance, 1, node.number("eps"))


@converts("aten.instance_norm.default")
def instance_norm(node: Node) -> Result:
    """Each channel of each item by itself, or with a mean and variance that are known."""
    if not node.flag("use_input_stats"):
        return _batch_norm(node, node.tensor("running_mean"), node.tensor("running_var"))
    channels = node.shape("input")[1:2]
    gamma, beta = _given(node, "weight", 1.0, channels), _given(node, "bias", 0.0, channels)
    axes = list(range(2, node.rank("input")))
    return op.nn.instance_norm(node.tensor("input"), gamma, beta, 1, axes, node.number("eps"))


@converts("aten.embedding.default")
def embedding(node: Node) -> Result:
    """Rows of a table."""
    return op.take(node.tensor("weight"), indices(node, "indices", 0, "weight"), 0)


@converts("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def embedding_bag(node: Node) -> Result:
    """Sums, means or greatest elements of the rows of a table that are in one bag; `offsets` says where each begins."""
    if any(node.wants(index) for index in (1, 2, 3)):
        raise Refusal("only the first result is supported: the others are for training")
    positions, (bags, width) = node.tensor("indices", i64), node.out_dims()
    (count,) = node.shape("indices")
    starts, last = node.tensor("offsets", i64), node.graph.dimension(bags - 1, i64)
    bag = op.subtract(op.bucketize(op.arange(0, count, 1, dtype=i64), starts, right=True), node.const(1, i64))
    rows = op.take(node.tensor("weight"), positions, 0)
    seen = op.less_equal(bag, last)  # the last offset may be the end of the last bag
    if node.integer("padding_idx", -1) >= 0:
        seen = op.logical_and(seen, op.not_equal(positions, node.const(node.integer("padding_idx"), i64)))
    seen, bag = op.expand_dims(seen, [1]), op.minimum(bag, last)
    if node.has("per_sample_weights"):
        rows = op.multiply(rows, op.expand_dims(node.tensor("per_sample_weights"), [1]))
    mode, none, zero = node.integer("mode"), node.like(-math.inf, rows), node.like(0, rows)
    if mode == 2:
        rows, base = op.where(seen, rows, none), op.full([bags, width], none)
        made = op.scatter_nd(base, op.expand_dims(bag, [1]), rows, "max")
        return [op.where(op.equal(made, none), zero, made), None, None, None]
    made = op.index_put(op.full([bags, width], zero), op.where(seen, rows, zero), [bag], accumulate=True)
    if mode == 1:
        members = op.index_put(op.full([bags, 1], zero), op.astype(seen, node.dtype("weight")), [bag], accumulate=True)
        made = op.divide(made, op.maximum(members, node.like(1, rows)))
    return [made, None, None, None]


@converts("aten.pixel_shuffle.default")
def pixel_shuffle(node: Node) -> Result:
    """Channels laid out in space."""
    return op.nn.pixel_shuffle(node.tensor("self"), node.integer("upscale_factor"))


@converts("aten.pixel_unshuffle.default")
def pixel_unshuffle(node: Node) -> Result:
    """Blocks of space as channels."""
    x, r = node.tensor("self"), node.integer("downscale_factor")
    *lead, c, h, w = node.shape()
    rank = len(lead)
    split = op.reshape(x, [*lead, c, h // r, r, w // r, r])
    order = [*range(rank), rank, rank + 2, rank + 4, rank + 1, rank + 3]
    return op.reshape(op.permute_dims(split, order), node.out_dims())


@converts("aten.channel_shuffle.default")
def channel_shuffle(node: Node) -> Result:
    """Channels of several groups in turn."""
    groups, (n, c, *rest) = node.integer("groups"), node.shape()
    split = op.reshape(node.tensor("self"), [n, groups, c // groups, *rest])
    order = [0, 2, 1, *range(3, len(rest) + 3)]
    return op.reshape(op.permute_dims(split, order), node.out_dims())
