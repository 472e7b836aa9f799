"""Recurrent layers of ONNX Runtime with quantised weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from xdsl.dialects.builtin import f32, i32

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.contrib.quantized import dynamically_quantized
from relax_dialect.frontend.onnx.integer_arithmetic import product_of_bytes, weights_with_sign
from relax_dialect.frontend.onnx.model import MICROSOFT
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.recurrent import (
    lengths_of,
    or_zeros,
    properties_of,
    recurrent,
    with_batch_of_states,
)
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.onnx.values import Value
from relax_dialect.ops.recurrent import DIRECTIONS

OPERANDS = 8
"""Those that the operator of the standard has; scales and zero points of the weights follow."""


@converts("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantize_lstm(node: Node) -> Result:
    """The layer on data and states that are quantised as it goes, so that products are of bytes.

    Weights that the model does not store become the numbers for which they stand, and nothing is quantised.
    """
    if node.stored(1) is not None and node.stored(2) is not None:
        return _layer_of_bytes(node)
    inputs = list(node.inputs[:OPERANDS])
    for index, scale in ((1, 8), (2, 10)):
        inputs[index] = Value(op.permute_dims(_weights(node, index, scale), [0, 2, 1]))
    return recurrent(replace(node, op_type="LSTM", inputs=inputs))


def _weights(node: Node, index: int, scale: int) -> Expr:
    """Weights by direction, input and unit; their scale is by direction, or by direction and unit."""
    by_unit = node.rank(scale) == 2
    spread = [1] if by_unit else [1, 2]
    zero = op.expand_dims(op.astype(node[scale + 1], i32), spread)
    integers = op.subtract(op.astype(node[index], i32), zero)
    return op.multiply(op.astype(integers, f32), op.expand_dims(node[scale], spread))


def _layer_of_bytes(node: Node) -> Result:
    """For each direction a product with the data of all steps, then a recurrence."""
    node = with_batch_of_states(node, batch_first=False)
    directions, units, width = node.shape(2)
    length, batch, features = node.shape()
    rows = op.reshape(node[0], (length * batch, features))
    # One row of zeros, so that there is a least element if there are no data.
    flat, step, point = dynamically_quantized(node, rows, op.nn.pad(rows, [0, 1, 0, 0]))
    zero = op.astype(point, i32)
    bias = or_zeros(node, 3, (directions, 2 * width))
    states = [or_zeros(node, index, (directions, batch, units)) for index in (5, 6)]
    states.append(or_zeros(node, 7, (directions, 3 * units)))
    weights, rest = _Bytes.of(node, 1, 8), _Bytes.of(node, 2, 10)
    found: list[tuple[Expr, ...]] = []
    for d, properties in enumerate(_by_direction(properties_of(node, "lstm"))):
        w, r, b = weights.at(d), rest.at(d), _at(bias, d)
        product = product_of_bytes(flat, op.reshape(w.integers, (features, width)), zero, w.zero)
        gates = op.multiply(op.astype(product, f32), op.multiply(step, w.scale))
        gates = op.add(gates, op.strided_slice(b, [1], [0], [width]))
        found.append(
            op.nn.quantized_recurrence(
                op.reshape(gates, (length, batch, width)),
                r.integers,
                r.scale,
                op.full_like(r.sums, 0) if r.zero is None else r.zero,
                r.sums,
                op.strided_slice(b, [1], [width], [2 * width]),
                lengths_of(node, batch, batch_first=False),
                [_at(state, d) for state in states],
                "lstm",
                **properties,
            )
        )
    if len(found) == 1:
        return found[0]
    return tuple(op.concat(list(each), axis) for each, axis in zip(zip(*found, strict=True), (1, 0, 0), strict=True))


def _by_direction(properties: dict[str, Any]) -> list[dict[str, Any]]:
    """The properties of a layer for each of its directions."""
    direction = properties["direction"]
    names = [direction] if DIRECTIONS[direction] == 1 else ["forward", "reverse"]
    found: list[dict[str, Any]] = []
    for d, name in enumerate(names):
        own = {**properties, "direction": name}
        if "activations" in own:
            functions = own["activations"].split()
            some = slice(d * len(functions) // len(names), (d + 1) * len(functions) // len(names))
            own["activations"] = " ".join(functions[some])
            own |= {key: own[key][some] for key in ("alphas", "betas") if key in own}
        found.append(own)
    return found


def _at(x: Expr, direction: int) -> Expr:
    """What belongs to a direction."""
    return op.strided_slice(x, [0], [direction], [direction + 1])


@dataclass(frozen=True)
class _Bytes:
    """Weights by direction, input, and gate times unit; by direction and gate times unit scales and zero points, `None`
    if these are 0, and sums of the weights less these.
    """

    integers: Expr
    scale: Expr
    zero: Expr | None
    sums: Expr

    @classmethod
    def of(cls, node: Node, index: int, scale: int) -> _Bytes:
        """An operand with its scale, which its zero point follows; of each there may be one for a direction."""
        integers, zero = weights_with_sign(node, index, scale + 1)
        directions, _, width = node.shape(index)

        def spread(x: Expr) -> Expr:
            column = op.expand_dims(x, [1]) if x.ndim == 1 else x
            return op.broadcast_to(column, (directions, width))

        zero = None if zero is None else spread(zero)
        sums = op.astype(integers, i32)
        sums = sums if zero is None else op.subtract(sums, op.expand_dims(zero, [1]))
        return cls(integers, spread(node[scale]), zero, op.sum(sums, [1]))

    def at(self, direction: int) -> _Bytes:
        """Those of a direction."""
        zero = None if self.zero is None else _at(self.zero, direction)
        return _Bytes(_at(self.integers, direction), _at(self.scale, direction), zero, _at(self.sums, direction))
