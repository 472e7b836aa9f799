"""Attention as ONNX Runtime has it, with masks, rotary embeddings and caches of keys and values; and layers whose state
has one size whatever the length: linear attention, causal convolutions.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import f32

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.model import MICROSOFT
from relax_dialect.frontend.onnx.node import Node, Result, converts, fixed
from relax_dialect.frontend.onnx.values import Array, Refusal
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import Dim

MASKED = -10000.0
"""What is added to the scores of keys that are masked, if a node says nothing else."""


def scores_bias(node: Node, mask: int, bias: int, keys: Expr) -> Expr | None:
    """What is added to the scores of keys, by the operands at `mask` and `bias`; `None` if nothing is.

    It broadcasts to batch, head, query and key.
    """
    given = node.optional(bias)
    if not node.has(mask):
        return given
    nothing, masked = (
        op.full([], node.const(each, keys.dtype or node.dtype()))
        for each in (0, node.number("mask_filter_value", MASKED))
    )
    chosen = op.where(_seen(node, mask, dims_of(keys, 4)[2]), nothing, masked)
    return chosen if given is None else op.add(given, chosen)


def _seen(node: Node, index: int, keys: Dim) -> Expr:
    """Which keys count: a mask by key, or by query and key, or the lengths of the sequences."""
    mask, batch = node[index], node.shape()[0]
    rank = node.rank(index)
    if rank in (2, 3):
        truth = op.greater(mask, op.full_like(mask, 0))
        return op.expand_dims(truth, [1, 2] if rank == 2 else [1])
    if rank != 1:
        raise Refusal(f"a mask of rank {rank} is not supported")
    has_starts = node.shape(index)[0] is batch * 2
    if not has_starts:
        mask = node.bb.match_cast(mask, TensorType([batch], node.dtype(index)))
    return node.te(lambda ends: _within(ends, batch, keys, has_starts=has_starts), mask, name="within_lengths")


def _within(ends: te.Tensor, batch: Dim, keys: Dim, *, has_starts: bool) -> te.Tensor:
    """Keys before the ends, which come first, and from the starts on, which follow them."""

    def element(b: te.Expr, _h: te.Expr, _q: te.Expr, key: te.Expr) -> te.Expr:
        before = key < te.cast(ends[b], "index")
        if not has_starts:
            return before
        return te.logical_and(before, key >= te.cast(ends[b + te.cast(batch, "index")], "index"))

    return te.compute((batch, 1, 1, keys), element, name="within_lengths")


def attend(
    node: Node,
    q: Expr,
    k: Expr,
    v: Expr,
    bias: Expr | None,
    *,
    causal: bool,
    softcap: float | None = None,
    sink: Expr | None = None,
) -> Expr:
    """Attention of operands by batch, head, position and feature; the result by batch and position, heads together."""
    scale, mask = node.number("scale") or None, "BottomRight" if causal else None
    order = dict.fromkeys(("q_layout", "k_layout", "v_layout", "out_layout"), "BHSD")
    sinks = [] if sink is None else [sink]
    if bias is None:
        made = op.nn.attention(q, k, v, sinks, scale=scale, softcap=softcap, causal_mask=mask, **order)
    else:
        made = op.nn.attention_bias(q, k, v, bias, sinks, scale=scale, softcap=softcap, causal_mask=mask, **order)
    return merged_heads_first(made)


def merged_heads_first(x: Expr) -> Expr:
    """Heads that are a dimension behind the batch, side by side."""
    return merged_heads(op.permute_dims(x, [0, 2, 1, 3]))


def split_heads(x: Expr, heads: int) -> Expr:
    """Heads that lie side by side, as a dimension behind the batch."""
    batch, length, features = dims_of(x, 3)
    return op.permute_dims(op.reshape(x, (batch, length, heads, features // heads)), [0, 2, 1, 3])


def merged_heads(x: Expr) -> Expr:
    """Heads after the positions, side by side."""
    batch, length, heads, features = dims_of(x, 4)
    return op.reshape(x, (batch, length, heads * features))


def dims_of(x: Expr, rank: int) -> tuple[Dim, ...]:
    """The dimensions of a tensor of a rank; `Refusal` if it has another one."""
    found = tuple(dim for dim in x.shape or () if dim is not None)
    if len(found) != rank:
        raise Refusal(f"expected an operand of rank {rank}, got {x.type}")
    return found


@converts("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(node: Node) -> Result:
    """Pairs of features turned by angles that grow with the position."""
    if node.integer("is_packed_batching"):
        raise Refusal("batches of different lengths side by side are not supported")
    interleaved, scale = bool(node.integer("interleaved")), node.number("scale", 1.0)
    half = fixed(node.shape(2)[1:], "the number of angles")[0]
    heads = _heads(node, half)
    x = node[0] if heads is None else split_heads(node[0], heads)
    batch, _, length, _ = dims_of(x, 4)
    positions = _positions(node, node[1], batch, length)
    turned = rotated(x, positions, node[2], node[3], interleaved=interleaved)
    if scale != 1.0:
        turned = op.multiply(turned, node.like(scale))
    return turned if heads is None else op.reshape(op.permute_dims(turned, [0, 2, 1, 3]), node.shape())


@converts("MRotaryEmbedding", domain=MICROSOFT)
def rotary_embedding_of_images(node: Node) -> Result:
    """The same with three positions for each token, in time, height and width: each turns some of the pairs."""
    if node.integer("is_packed_batching"):
        raise Refusal("batches of different lengths side by side are not supported")
    half = fixed(node.shape(2)[1:], "the number of angles")[0]
    sections = node.integers("mrope_section") or ()
    if len(sections) != 3 or sum(sections) != half:
        raise Refusal(f"the sections {sections} do not have {half} pairs together")
    which = np.repeat(np.arange(3), sections)
    if node.integer("mrope_layout"):
        which = np.zeros(half, np.int64)
        for stream in (1, 2):
            which[stream : 3 * sections[stream] : 3] = stream
    cos, sin = (_of_sections(node, table, which) for table in (2, 3))
    heads = _heads(node, half)
    x = node[0] if heads is None else split_heads(node[0], heads)
    turned = _turned(x, cos, sin, half, interleaved=bool(node.integer("interleaved")))
    scale = node.number("scale", 1.0)
    turned = turned if scale == 1.0 else op.multiply(turned, node.like(scale))
    return turned if heads is None else op.reshape(op.permute_dims(turned, [0, 2, 1, 3]), node.shape())


def _of_sections(node: Node, table: int, which: Array) -> Expr:
    """By token and pair, what a table has for the position that the pair belongs to."""
    found = [op.take(node[table], _item(node[1], 0, stream), 0) for stream in range(3)]
    chosen = found[0]
    for stream in (1, 2):
        chosen = op.where(node.bb.const(which == stream, "bool"), found[stream], chosen)
    return chosen


def _heads(node: Node, half: int) -> int | None:
    """The number of heads that lie side by side; `None` if they are a dimension."""
    if node.rank() == 4:
        return None
    given = node.integer("num_heads")
    return given if given else fixed(node.shape()[2:], "the number of features")[0] // (2 * half)


def _positions(node: Node, ids: Expr, batch: Dim, length: Dim) -> Expr:
    """The position of each token; one number is the position of the first."""
    if ids.ndim == 2:
        return ids

    def from_first(first: te.Tensor) -> te.Tensor:
        def position(_: te.Expr, i: te.Expr) -> te.Expr:
            return first[0] + te.cast(i, first.dtype)

        return te.compute((batch, length), position, name="positions")

    return node.te(from_first, op.reshape(ids, [1]), name="positions")


def rotated(x: Expr, positions: Expr, cos: Expr, sin: Expr, *, interleaved: bool) -> Expr:
    """`x` by batch, head, position and feature, with as many first features turned as twice the angles are.

    Pairs are neighbours if they are interleaved, else each of the first half with one of the second.
    """
    half = fixed([dims_of(cos, 2)[1]], "the number of angles")[0]
    return _turned(x, op.take(cos, positions, 0), op.take(sin, positions, 0), half, interleaved=interleaved)


def _turned(x: Expr, cos: Expr, sin: Expr, half: int, *, interleaved: bool) -> Expr:
    """The same with the cosines and sines of each token."""
    features = fixed([dims_of(x, 4)[3]], "the number of features")[0]
    turned = x if 2 * half == features else op.strided_slice(x, [3], [0], [2 * half])
    if interleaved:
        a, b = (op.strided_slice(turned, [3], [at], [2 * half], [2]) for at in range(2))
    else:
        a, b = op.split(turned, sections=2, axis=3)
    c, s = (op.expand_dims(each, [1]) for each in (cos, sin))
    real = op.subtract(op.multiply(a, c), op.multiply(b, s))
    imaginary = op.add(op.multiply(a, s), op.multiply(b, c))
    if interleaved:
        made = op.reshape(op.stack([real, imaginary], 4), dims_of(turned, 4))
    else:
        made = op.concat([real, imaginary], 3)
    return made if turned is x else op.concat([made, op.strided_slice(x, [3], [2 * half], [features])], 3)


CACHE_FLAGS = ("do_rotary", "past_present_share_buffer")


@converts("Attention", domain=MICROSOFT)
def attention(node: Node) -> Result:
    """The projection to queries, keys and values by one matrix, and attention; as second output the cache."""
    _refuse_operands(node, (6,))
    projected = op.matmul(node[0], node[1])
    return self_attention(node, op.add(projected, node[2]) if node.has(2) else projected, mask=3, past=4, bias=5)


def self_attention(node: Node, projected: Expr, *, mask: int, past: int, bias: int) -> list[Expr]:
    """Attention from queries, keys and values side by side; `past` is a cache of keys and values."""
    if any(node.integer(flag) for flag in CACHE_FLAGS):
        raise Refusal("rotation, and caches in the memory of older ones, are not supported here")
    sizes, heads = node.integers("qkv_hidden_sizes"), node.integer("num_heads")
    if sizes:
        parts = op.split(projected, indices=[sizes[0], sizes[0] + sizes[1]], axis=2)
    else:
        parts = op.split(projected, sections=3, axis=2)
    q, k, v = (split_heads(part, heads) for part in parts)
    if node.has(past):
        k, v = (op.concat([_item(node[past], 0, at), new], 2) for at, new in enumerate((k, v)))
    result = attend(node, q, k, v, scores_bias(node, mask, bias, k), causal=bool(node.integer("unidirectional")))
    has_cache = len(node.outputs) > 1 and node.outputs[1]
    return [result, *([op.stack([k, v], 0)] if has_cache else [])]


@converts("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(node: Node) -> Result:
    """Attention of queries, keys and values, each perhaps with a bias; further outputs are keys and values."""
    _refuse_operands(node, (8, 9))
    if "".join(node.outputs[3:]):
        raise Refusal("scores as an output are not supported")
    q, k, v = _with_heads(node)
    if node.has(6):
        k, v = op.concat([node[6], k], 2), op.concat([node[7], v], 2)
    bias, causal = scores_bias(node, 4, 5, k), bool(node.integer("unidirectional"))
    queries, keys = dims_of(q, 4)[2], dims_of(k, 4)[2]
    if causal and not node.has(6) and queries is not keys:
        unseen = _unseen(node, queries, keys)
        return [attend(node, q, k, v, unseen if bias is None else op.add(bias, unseen), causal=False), k, v]
    return [attend(node, q, k, v, bias, causal=causal), k, v]


def _unseen(node: Node, queries: Dim, keys: Dim) -> Expr:
    """What is added to the scores of later keys where no cache tells where the queries are: as ONNX Runtime has it, the
    first query is at the first key, and the last query sees all keys.
    """
    dtype = str(node.dtype())

    def element(_b: te.Expr, _h: te.Expr, query: te.Expr, key: te.Expr) -> te.Expr:
        is_seen = te.logical_or(key <= query, query == te.cast(queries, "index") - 1)
        return te.select(is_seen, te.const(0, dtype), te.const(-math.inf, dtype))

    return node.te(lambda: te.compute((1, 1, queries, keys), element, name="unseen"), name="unseen")


def _with_heads(node: Node) -> Sequence[Expr]:
    """Queries, keys and values by batch, head, position and feature: each by itself, or packed, or from a cache."""
    heads = node.integer("num_heads")
    if node.rank(0) == 5:
        return [op.permute_dims(_item(node[0], 3, at), [0, 2, 1, 3]) for at in range(3)]
    # The queries with their part of the bias, and the parts for keys and values.
    if not node.has(3):
        q, *biases = split_heads(node[0], heads), None, None
    else:
        features = node.shape()[2]
        first, second, third = op.split(node[3], indices=[features, features * 2], axis=0)
        q, *biases = split_heads(op.add(node[0], first), heads), second, third
    if node.rank(1) == 5:
        return [q, *(op.permute_dims(_item(node[1], 3, at), [0, 2, 1, 3]) for at in range(2))]
    if node.rank(1) == 4:
        return [q, node[1], node[2]]
    return [
        q,
        *(
            split_heads(node[at] if bias is None else op.add(node[at], bias), heads)
            for at, bias in enumerate(biases, 1)
        ),
    ]


def _item(x: Expr, axis: int, at: int) -> Expr:
    """One position of a dimension."""
    return op.squeeze(op.strided_slice(x, [axis], [at], [at + 1]), [axis])


def _refuse_operands(node: Node, indices: Sequence[int]) -> None:
    if any(node.has(index) for index in indices):
        raise Refusal("caches that share their memory with older ones are not supported")


RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}
"""By rule, whether the state decays, and whether what it has for a key is replaced."""

PAST, DECAY, RATE = 3, 4, 5


@converts("LinearAttention", since=27)
@converts("LinearAttention", domain=MICROSOFT)
def linear_attention(node: Node) -> Result:
    """What queries read of a state, a matrix for each head to which the outer products of keys and values are added;
    and the state after the last token.
    """
    _refuse(node, "state_window")
    rule = node.text("update_rule", "gated_delta")
    if rule not in RULES:
        raise Refusal(f"the rule {rule!r} is none of {', '.join(RULES)}")
    read, written = node.integer("q_num_heads"), node.integer("kv_num_heads")
    if max(read, written) % min(read, written):
        raise Refusal(f"{read} heads of queries and {written} of keys are not multiples of each other")
    (depth,) = fixed([node.shape()[2] // read], "the number of features of a head")
    (width,) = fixed([node.shape(2)[2] // written], "the number of features of a head")
    layer = State(read, written, depth, width, node.number("scale") or 1 / math.sqrt(depth))
    decays, replaces = RULES[rule]
    given = [PAST] * node.has(PAST) + [DECAY] * decays + [RATE] * replaces
    kind = node.dtype(PAST) if node.has(PAST) else node.dtype()

    def kernel(q: te.Tensor, k: te.Tensor, v: te.Tensor, *rest: te.Tensor) -> Sequence[te.Tensor]:
        batch, length, _ = q.shape
        outputs = [
            ((batch, length, max(read, written) * width), q.dtype),
            ((batch, written, depth, width), str(kind)),
        ]
        optional = dict(zip(given, rest, strict=True))
        return te.extern(
            outputs, [q, k, v, *rest], lambda b, ins, outs: layer.emit(b, ins[:3], optional, outs), name=node.op_type
        )

    return node.te_all(kernel, *(node[at] for at in (0, 1, 2, *given)), name="linear_attention")


@dataclass(frozen=True)
class State:
    """The state of each sequence and head, `depth` by `width`, which is kept in `f32`."""

    read: int
    """Heads of queries."""
    written: int
    """Heads of keys and values."""
    depth: int
    """Features of a key."""
    width: int
    """Features of a value."""
    scale: float
    """Of what is read."""

    def emit(
        self,
        b: te.ExternBuilder,
        data: Sequence[te.Tensor],
        optional: dict[int, te.Tensor],
        outs: Sequence[te.Tensor],
    ) -> None:
        """The statements for queries, keys and values, and by index the optional operands."""
        present, batch, length = outs[1], *data[0].shape[:2]
        with b.block("state", ("spatial", batch, "n"), ("spatial", self.written, "h")) as (n, h):
            state = b.alloc((self.depth, self.width), "f32", "state", scope="global")
            change = b.alloc((self.width,), "f32", "change", scope="global")
            with self._elements(b) as (i, j):
                past = optional.get(PAST)
                b.store(state, (i, j), te.const(0, "f32") if past is None else te.cast(past[n, h, i, j], "f32"))
            with b.for_range(0, length, "t") as t:
                self._write(b, state, change, (n, t, h), data, optional)
                self._read(b, state, data[0], outs[0], (n, t, h))
            with self._elements(b) as (i, j):
                b.store(present, (n, h, i, j), te.cast(state[i, j], present.dtype))

    @contextmanager
    def _elements(self, b: te.ExternBuilder) -> Generator[tuple[te.Expr, te.Expr]]:
        with b.for_range(0, self.depth, "i") as i, b.for_range(0, self.width, "j") as j:
            yield i, j

    def _write(
        self,
        b: te.ExternBuilder,
        state: te.Tensor,
        change: te.Tensor,
        at: tuple[te.Expr, te.Expr, te.Expr],
        data: Sequence[te.Tensor],
        optional: dict[int, te.Tensor],
    ) -> None:
        """Lets the state decay, and adds a key's outer product with its value, or with what the value differs by from
        what the state has for the key.
        """
        n, t, h = at
        _, k, v = data
        decay, rate = optional.get(DECAY), optional.get(RATE)
        if decay is not None:
            by_head = decay.shape[2].constant_value == self.written
            with self._elements(b) as (i, j):
                exponent = te.cast(decay[n, t, h if by_head else h * self.depth + i], "f32")
                b.store(state, (i, j), state[i, j] * te.exp(exponent))
        with b.for_range(0, self.width, "j") as j:
            b.store(change, j, te.cast(v[n, t, h * self.width + j], "f32"))
        if rate is not None:
            with self._elements(b) as (i, j):
                b.store(change, j, change[j] - state[i, j] * te.cast(k[n, t, h * self.depth + i], "f32"))
            with b.for_range(0, self.width, "j") as j:
                by_head = rate.shape[2].constant_value != 1
                b.store(change, j, change[j] * te.cast(rate[n, t, h if by_head else 0], "f32"))
        with self._elements(b) as (i, j):
            b.store(state, (i, j), state[i, j] + te.cast(k[n, t, h * self.depth + i], "f32") * change[j])

    def _read(
        self,
        b: te.ExternBuilder,
        state: te.Tensor,
        q: te.Tensor,
        made: te.Tensor,
        at: tuple[te.Expr, te.Expr, te.Expr],
    ) -> None:
        """What the queries that share this head read; or the one query that heads share, for this one."""
        n, t, h = at
        total = b.alloc((self.width,), "f32", "total", scope="global")
        with b.for_range(0, max(self.read // self.written, 1), "g") as g:
            query = (
                h * (self.read // self.written) + g if self.read >= self.written else h // (self.written // self.read)
            )
            result = h * max(self.read // self.written, 1) + g
            with b.for_range(0, self.width, "j") as j:
                b.store(total, j, te.const(0, "f32"))
            with self._elements(b) as (i, j):
                b.store(total, j, total[j] + te.cast(q[n, t, query * self.depth + i], "f32") * state[i, j])
            with b.for_range(0, self.width, "j") as j:
                b.store(made, (n, t, result * self.width + j), te.cast(total[j] * self.scale, made.dtype))


@converts("CausalConvWithState", since=27)
@converts("CausalConvWithState", domain=MICROSOFT)
def causal_convolution(node: Node) -> Result:
    """A convolution of each channel with its own kernel, of which the last position is at the element itself; and the
    elements that the next call needs before its own ones.
    """
    _refuse(node, "state_window", "state_update_capacity", "state_length", "input_channel_offset", "input_channels")
    is_last, dilation = node.integer("channels_last"), node.integer("dilation", 1)
    if node.integer("ndim", 1) != 1 or node.integer("state_channels_last", -1) not in (-1, is_last):
        raise Refusal("more than one dimension, and states in another order than data, are not supported")
    channels, _, taps = fixed(node.shape(1), "the kernel's shape")
    reach = (taps - 1) * dilation
    x = _channels_second(node[0], channels) if is_last else node[0]
    batch, _, length = dims_of(x, 3)
    if not node.has(PAST):
        past = op.full([batch, channels, reach], node.like(0))
    else:
        past = _channels_second(node[PAST], channels) if is_last else node[PAST]
    padded = op.concat([past, x], 2)
    made = op.nn.conv1d(padded, node[1], groups=channels, dilation=[dilation])
    if node.has(2):
        made = op.add(made, op.reshape(node[2], (channels, 1)))
    activation = node.text("activation", "none")
    if activation not in ("none", "silu", "swish"):
        raise Refusal(f"the activation {activation} is not supported")
    made = made if activation == "none" else op.nn.silu(made)
    state = op.strided_slice(padded, [2], [length], [length + reach])
    if not is_last:
        return [made, state]
    inner = node.shape()[2:]
    return [
        op.reshape(op.permute_dims(each, [0, 2, 1]), (batch, size, *inner))
        for each, size in ((made, length), (state, reach))
    ]


def _refuse(node: Node, *names: str) -> None:
    """Fails for attributes that ONNX Runtime knows on GPUs only."""
    for name in names:
        if node.integer(name):
            raise Refusal(f"the attribute {name} is not supported")


def _channels_second(x: Expr, channels: int) -> Expr:
    """Sequences whose channels, perhaps several dimensions, come last."""
    shape = [dim for dim in x.shape or () if dim is not None]
    return op.permute_dims(op.reshape(x, (*shape[:2], channels)), [0, 2, 1])


@converts("LinearAttentionGate", domain=MICROSOFT)
def linear_attention_gate(node: Node) -> Result:
    """The decay, `scale * softplus(x + bias)`, and the rate, the sigmoid of another operand."""
    sums = op.add(_wide(node[0]), node[1])
    decay = op.astype(op.multiply(node[2], op.nn.softplus(sums)), node.dtype())
    return [decay, op.astype(op.sigmoid(_wide(node[3])), node.dtype(3)) if node.has(3) else None]


def _wide(x: Expr) -> Expr:
    return x if x.dtype == f32 else op.astype(x, f32)
