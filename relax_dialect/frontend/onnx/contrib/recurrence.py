"""Layers of language models whose state has one size whatever the length: linear attention, causal convolutions."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects.builtin import f32

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.contrib.attention import dims_of
from relax_dialect.frontend.onnx.dtypes import Refusal
from relax_dialect.frontend.onnx.model import MICROSOFT
from relax_dialect.frontend.onnx.node import Node, fixed
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect import te

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
