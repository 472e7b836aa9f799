"""Recurrent layers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.node import Node, Result, converts
from relax_dialect.frontend.onnx.values import Refusal, Value
from relax_dialect.ops.recurrent import ACTIVATIONS, CELLS, DIRECTIONS
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim

_LAYERS = {"RNN": op.nn.rnn, "GRU": op.nn.gru, "LSTM": op.nn.lstm}


@converts("RNN", "GRU", "LSTM")
def recurrent(node: Node) -> Result:
    """A layer over sequences: all outputs, and the last states."""
    kind = node.op_type.lower()
    batch_first = bool(node.integer("layout"))
    directions, units = node.shape(2)[0], node.shape(2)[2]
    said = node.attributes.get("hidden_size")
    if said is not None and units.constant_value not in (None, said):
        raise Refusal(f"the weights have {units} units, but hidden_size says {said}")
    node = with_batch_of_states(node, batch_first)
    batch = node.shape()[0 if batch_first else 1]
    state = (batch, directions, units) if batch_first else (directions, batch, units)
    optional = [(5, state)] if kind != "lstm" else [(5, state), (6, state), (7, (directions, 3 * units))]
    states = [or_zeros(node, index, shape) for index, shape in optional]
    bias = or_zeros(node, 3, (directions, 2 * CELLS[kind][0] * units))
    return _LAYERS[node.op_type](
        node[0], node[1], node[2], bias, lengths_of(node, batch, batch_first), states, **properties_of(node, kind)
    )


def with_batch_of_states(node: Node, batch_first: bool) -> Node:
    """The node with data of the batch that a state has, or the lengths, if only these say it."""
    at = 0 if batch_first else 1
    sizes = [node.shape(index)[at if index > 4 else 0] for index in (4, 5, 6) if node.has(index)]
    known = next((size for size in sizes if size.is_constant), None)
    if known is None or node.shape()[at].is_constant:
        return node
    wanted = [known if axis == at else dim for axis, dim in enumerate(node.shape())]
    data = Value(node.bb.match_cast(node[0], TensorType(wanted, node.dtype())))
    return replace(node, inputs=[data, *node.inputs[1:]])


def or_zeros(node: Node, index: int, shape: Sequence[Dim]) -> Expr:
    """An operand, or zeros of a shape if it is absent."""
    return node[index] if node.has(index) else op.full(list(shape), node.like(0))


def lengths_of(node: Node, batch: Dim, batch_first: bool) -> Expr:
    """The lengths of the sequences: those given, or all of them whole."""
    if node.has(4):
        return node[4]
    length = node.shape()[1 if batch_first else 0]
    if length.constant_value is not None:
        return op.full([batch], node.bb.const(length.constant_value, "i32"))
    return op.full([batch], op.reshape(op.astype(op.shape_to_tensor([length]), "i32"), []))


def properties_of(node: Node, kind: str) -> dict[str, Any]:
    """The keyword arguments of a layer with the cell `kind`."""
    names = [
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", each.decode() if isinstance(each, bytes) else each).lower()
        for each in node.attribute("activations", [])
    ]
    direction = node.text("direction", "forward")
    if direction not in DIRECTIONS:
        raise Refusal(f"the direction {direction!r} is none of {', '.join(DIRECTIONS)}")
    names = names[: len(CELLS[kind][1].split()) * DIRECTIONS[direction]]
    found: dict[str, Any] = {"direction": direction}
    if names:
        found |= {"activations": " ".join(names)}
        found |= _numbers(node, names, "activation_alpha", "alphas", 0)
        found |= _numbers(node, names, "activation_beta", "betas", 1)
    if "clip" in node.attributes:
        found["clip"] = node.number("clip")
    if node.integer("input_forget"):
        found["input_forget"] = True
    if node.integer("linear_before_reset"):
        found["linear_before_reset"] = True
    if node.integer("layout"):
        found["batch_first"] = True
    return found


def _numbers(node: Node, names: Sequence[str], source: str, target: str, which: int) -> dict[str, Any]:
    """Parameters of activations; ONNX lists them for those that have one, in order."""
    given = [float(each) for each in node.attribute(source, [])]
    if not given:
        return {}
    rest, made = iter(given), list[float]()
    for name in names:
        default = ACTIVATIONS.get(name, (0.0, 0.0))[which]
        takes = name in _TAKES[which]
        made.append(next(rest, default) if takes or len(given) == len(names) else default)
    return {target: made}


_TAKES = (
    frozenset({"affine", "leaky_relu", "thresholded_relu", "scaled_tanh", "hard_sigmoid", "elu"}),
    frozenset({"affine", "scaled_tanh", "hard_sigmoid"}),
)
"""The activations that have an alpha, and those that have a beta."""
