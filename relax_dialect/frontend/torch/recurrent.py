"""Recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import i32

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.random import kept
from relax_dialect.frontend.torch.registry import Result, converts

_LAYERS: dict[str, Any] = {"lstm": op.nn.lstm, "gru": op.nn.gru, "rnn_tanh": op.nn.rnn, "rnn_relu": op.nn.rnn}
_GATES = {"lstm": [0, 3, 1, 2], "gru": [1, 0, 2], "rnn_tanh": [0], "rnn_relu": [0]}
"""Where the gates of the operators are in PyTorch's weights."""


@converts(*(f"aten.{name}.input" for name in _LAYERS))
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
        x, *ends = _layer(node, x, layer * directions, directions, states)
        last.append(ends)
    ends = [op.concat(each, 0) if layers > 1 else each[0] for each in zip(*last, strict=True)]
    return [x, *ends]


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
    y, *ends = _LAYERS[node.name](x, w, r, b, _lengths(node), states, batch_first=batch_first, **options)
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


def _lengths(node: Node) -> Expr:
    """All sequences are whole."""
    outer, inner, _ = node.shape("input")
    batch, length = (outer, inner) if node.flag("batch_first") else (inner, outer)
    return op.full([batch], node.graph.dimension(length, i32))
