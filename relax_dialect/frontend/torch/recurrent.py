"""Recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from xdsl.dialects.builtin import i32, i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.creation import kept
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.program import FxNode, Refusal, name_of
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.frontend.torch.tracing import LAYERS, NAMESPACE
from tir_dialect.dims import to_dim

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
