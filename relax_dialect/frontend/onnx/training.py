"""Operators outside of the standard's main domain: optimizers, and those that it once had on trial.

An optimizer (`ai.onnx.preview.training`) is one step of training, from gradients that the model is given. Operands are
the learning rate, the number of steps so far, and lists of tensors of equal length: parameters, gradients, and what the
optimizer keeps from step to step. Results are the new parameters, then what is kept.

Operators on trial ONNX Runtime still has: older converters, of CoreML for one, write them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.model import TRAINING
from relax_dialect.frontend.onnx.node import Node, Result, converts
from relax_dialect.frontend.onnx.values import Refusal


@converts("Affine", "ParametricSoftplus", "Scale", "ScaledTanh")
def with_factors(node: Node) -> Result:
    """Functions of elements with factors that are attributes."""
    x, (alpha, beta, scale) = node[0], (node.like(node.number(name, 1.0)) for name in ("alpha", "beta", "scale"))
    if node.op_type == "Affine":
        return op.add(op.multiply(x, alpha), node.like(node.number("beta")))
    if node.op_type == "Scale":
        return op.multiply(x, scale)
    function = op.tanh if node.op_type == "ScaledTanh" else op.nn.softplus
    return op.multiply(alpha, function(op.multiply(x, beta)))


@converts("ImageScaler")
def image_scaler(node: Node) -> Result:
    """Images times a factor, with a bias for each channel."""
    bias = np.asarray(node.attribute("bias", ()), np.float32).reshape(-1, 1, 1)
    return op.add(op.multiply(node[0], node.like(node.number("scale", 1.0))), node.const(bias, node.dtype()))


@converts("Crop")
def crop(node: Node) -> Result:
    """Images without a border on the left, top, right and bottom; or of a size, from its left and top."""
    border, size = node.integers("border") or (), node.integers("scale")
    if node.rank() != 4 or len(border) != 4 or (size is not None and len(size) != 2):
        raise Refusal("expected images, four widths of the border, and a height and a width if there is a scale")
    left, top, right, bottom = border
    height, width = node.shape()[2:]
    ends = [height - bottom, width - right] if size is None else [top + size[0], left + size[1]]
    return op.strided_slice(node[0], [2, 3], [top, left], ends)


FIRST_TENSOR = 2
"""The operands before the lists are the learning rate and the step."""

Step: TypeAlias = Callable[[Expr, Expr, list[Expr]], list[Expr]]
"""From a parameter, its regularized gradient and what is kept for it: the new parameter and what is kept."""


@converts("Adagrad", domain=TRAINING)
def adagrad(node: Node) -> Result:
    """Gradients are divided by the root of the sum of their squares so far."""
    rate = _as(node, 0) / (_as(node, 1) * node.number("decay_factor") + 1.0)

    def step(x: Expr, gradient: Expr, kept: list[Expr]) -> list[Expr]:
        squares = kept[0] + gradient * gradient
        dtype = _dtype(x)
        return [x - op.astype(rate, dtype) * gradient / (op.sqrt(squares) + node.number("epsilon")), squares]

    return _each(node, 1, step)


@converts("Adam", domain=TRAINING)
def adam(node: Node) -> Result:
    """Means of gradients and of their squares that fade, each divided by the weight that it has gathered so far."""
    alpha, beta = node.number("alpha", 0.9), node.number("beta", 0.999)
    rate, time = _as(node, 0), _as(node, 1)
    gathered = op.sqrt(1.0 - op.power(node.const(beta, _dtype(time)), time)) / (
        1.0 - op.power(node.const(alpha, _dtype(time)), time)
    )
    rate = op.where(op.greater(time, node.const(0, _dtype(time))), rate * gathered, rate)

    def step(x: Expr, gradient: Expr, kept: list[Expr]) -> list[Expr]:
        mean = kept[0] * alpha + gradient * (1.0 - alpha)
        square = kept[1] * beta + gradient * gradient * (1.0 - beta)
        change = op.astype(rate, _dtype(x)) * mean / (op.sqrt(square) + node.number("epsilon"))
        return [(x - change) * (1.0 - node.number("norm_coefficient_post")), mean, square]

    return _each(node, 2, step)


@converts("Momentum", domain=TRAINING)
def momentum(node: Node) -> Result:
    """A velocity that gradients change; Nesterov's looks a step ahead."""
    mode = node.text("mode")
    if mode not in ("standard", "nesterov"):
        raise Refusal(f'expected the mode "standard" or "nesterov", got "{mode}"')
    alpha, rate, time = node.number("alpha"), _as(node, 0), _as(node, 1)
    one = node.const(1, _dtype(rate))
    beta = op.where(op.greater(time, node.const(0, _dtype(time))), one * node.number("beta"), one)

    def step(x: Expr, gradient: Expr, kept: list[Expr]) -> list[Expr]:
        dtype = _dtype(x)
        velocity = kept[0] * alpha + op.astype(beta, dtype) * gradient
        change = gradient + velocity * alpha if mode == "nesterov" else velocity
        return [x - op.astype(rate, dtype) * change, velocity]

    return _each(node, 1, step)


def _as(node: Node, index: int) -> Expr:
    """The learning rate or the step as a number of the rate's dtype."""
    if node.rank(index):
        raise Refusal(f"expected operand #{index} to be a scalar, got rank {node.rank(index)}")
    return op.astype(node[index], node.dtype(0))


def _dtype(x: Expr) -> Attribute:
    dtype = x.dtype
    assert dtype is not None
    return dtype


def _each(node: Node, kept: int, step: Step) -> list[Expr]:
    """One step of each parameter: `kept` lists follow those of parameters and gradients."""
    lists = 2 + kept
    count, rest = divmod(len(node.inputs) - FIRST_TENSOR, lists)
    if rest or not count:
        raise Refusal(f"expected a learning rate, a step and {lists} lists of tensors, got {len(node.inputs)} operands")
    norm = node.number("norm_coefficient")
    results = list[list[Expr]]()
    for number in range(count):
        x, gradient, *old = (node[FIRST_TENSOR + number + count * each] for each in range(lists))
        results.append(step(x, x * norm + gradient, old))
    return [result[which] for which in range(1 + kept) for result in results]
