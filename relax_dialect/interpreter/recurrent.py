"""Recurrent layers, step by step; 16-bit floats are computed in `f32`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from relax_dialect.interpreter.operators import computes_all, wide
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.recurrent import (
    CELLS,
    HIGHEST,
    GRUOp,
    LSTMOp,
    QuantizedRecurrenceOp,
    RecurrenceOp,
    RecurrentLayerOp,
    RecurrentOp,
    RNNOp,
)

Function: TypeAlias = Callable[[Array], Array]
Cell: TypeAlias = Callable[[Array, Sequence[Array]], Sequence[Array]]
"""The next states from the products of the data and the states."""


def function(name: str, a: float, b: float, clip: float | None) -> Function:
    """A function of gates on arrays, after clipping."""
    functions: dict[str, Function] = {
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "tanh": np.tanh,
        "relu": lambda x: np.maximum(x, 0),
        "affine": lambda x: a * x + b,
        "leaky_relu": lambda x: np.where(x < 0, a * x, x),
        "thresholded_relu": lambda x: np.where(x > a, x, 0),
        "scaled_tanh": lambda x: a * np.tanh(b * x),
        "hard_sigmoid": lambda x: np.clip(a * x + b, 0, 1),
        "elu": lambda x: np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x),
        "softsign": lambda x: x / (1 + np.abs(x)),
        "softplus": lambda x: np.logaddexp(x, 0),
    }
    found = functions[name]
    return lambda x: found(x if clip is None else np.clip(x, -clip, clip)).astype(x.dtype)


@computes_all(RNNOp, GRUOp, LSTMOp)
def layer(op: RecurrentLayerOp, x: Array, w: Array, r: Array, b: Array, lengths: Array, *states: Array) -> list[Array]:
    """The products of the data, then the recurrence."""
    first = op.batch_first is not None
    x = x.swapaxes(0, 1) if first else x
    states = tuple(s.swapaxes(0, 1) if first and s.ndim == 3 else s for s in states)
    half = b.shape[1] // 2
    products = [wide(x) @ wide(w[d]).T + wide(b[d, :half]) for d in range(len(op.directions))]
    gates = np.concatenate(products, axis=2)
    y, *last = run(op, op.CELL, gates, _products(r.swapaxes(1, 2)), b[:, half:], lengths, states)
    moved = [y.transpose(2, 0, 1, 3), *(s.swapaxes(0, 1) for s in last)] if first else [y, *last]
    return [each.astype(x.dtype) for each in moved]


@computes_all(RecurrenceOp)
def recurrence(op: RecurrenceOp, x: Array, r: Array, b: Array, lengths: Array, *states: Array) -> list[Array]:
    """The recurrence over products that are made already."""
    return [each.astype(x.dtype) for each in run(op, op.cell.data, wide(x), _products(r), b, lengths, states)]


def _products(r: Array) -> list[Function]:
    """Multiplies states with the weights of each direction."""

    def product(weights: Array) -> Function:
        return lambda h: h @ weights

    return [product(wide(each)) for each in r]


@computes_all(QuantizedRecurrenceOp)
def quantized_recurrence(op: QuantizedRecurrenceOp, x: Array, r: Array, *operands: Array) -> list[Array]:
    """The recurrence with products of bytes."""
    _, _, _, b, lengths, *states = operands
    multiply = [_product_of_bytes(*each) for each in zip(r.astype(np.int32), *operands[:3], strict=True)]
    return run(op, op.cell.data, x, multiply, b, lengths, states)


def _product_of_bytes(weights: Array, scale: Array, zero: Array, sums: Array) -> Function:
    """Multiplies states, which it quantises by their least and greatest element, with integers."""

    def multiply(h: Array) -> Array:
        integers, point, step = _quantized(h)
        total = integers @ weights - integers.sum(1, keepdims=True, dtype=np.int32) * zero - point * sums
        return total.astype(np.float32) * (step * scale)

    return multiply


def _quantized(h: Array) -> tuple[Array, Array, Array]:
    """Integers from 0 to 255, the one that stands for 0, and the distance of two of them."""
    low, high = np.minimum(h.min(initial=0), 0), np.maximum(h.max(initial=0), 0)
    spread = (high - low) / np.float32(HIGHEST)
    step = spread if spread > 0 else np.float32(1)
    point = np.rint(np.clip(-low / step, 0, np.float32(HIGHEST)))
    bounded = np.clip(np.rint(h / step) + point, 0, np.float32(HIGHEST))
    return np.nan_to_num(bounded).astype(np.int32), np.nan_to_num(point).astype(np.int32), np.asarray(step)


def run(
    op: RecurrentOp,
    kind: str,
    x: Array,
    multiply: Sequence[Function],
    b: Array,
    lengths: Array,
    states: Sequence[Array],
) -> list[Array]:
    """The outputs and last states of all directions, wide; `multiply` gives products with the weights of each."""
    parts = [_direction(op, kind, d, x, each, b, lengths, states) for d, each in enumerate(multiply)]
    return [np.stack(each, axis) for each, axis in zip(zip(*parts, strict=True), (1, 0, 0), strict=False)]


def _direction(
    op: RecurrentOp,
    kind: str,
    d: int,
    x: Array,
    multiply: Function,
    b: Array,
    lengths: Array,
    states: Sequence[Array],
) -> list[Array]:
    width, units = b.shape[1], states[0].shape[2]
    gates, current = x[:, :, d * width : (d + 1) * width], [wide(s[d]) for s in states[:2]]
    cell = cell_of(op, kind, d, multiply, wide(b[d]), wide(states[2][d]) if kind == "lstm" else None)
    y = np.zeros((x.shape[0], x.shape[1], units), x.dtype)
    for t in reversed(range(x.shape[0])) if op.directions[d] else range(x.shape[0]):
        alive = (t < lengths)[:, None]
        following = cell(gates[t], current)
        y[t] = np.where(alive, following[0], 0)
        current = [np.where(alive, new, old) for new, old in zip(following, current, strict=True)]
    return [y, *current]


def cell_of(op: RecurrentOp, kind: str, d: int, multiply: Function, b: Array, peephole: Array | None) -> Cell:
    """One step of a direction; `multiply` gives the product of states with its weights."""
    functions = op.functions(kind)
    count = len(functions) // len(op.directions)
    f = [function(*each) for each in functions[d * count : (d + 1) * count]]
    units = len(b) // CELLS[kind][0]
    if kind == "rnn":
        return lambda x, s: [f[0](x + multiply(s[0]) + b)]
    if kind == "gru" or peephole is None:
        return lambda x, s: _gru(f, x, s[0], multiply, b, op.linear_before_reset is not None)
    pi, po, pf = (peephole[at * units : (at + 1) * units] for at in range(3))

    def lstm(x: Array, s: Sequence[Array]) -> Sequence[Array]:
        i, o, forget, c = np.split(x + multiply(s[0]) + b, 4, axis=1)
        i = f[0](i + pi * s[1])
        forget = 1 - i if op.input_forget is not None else f[0](forget + pf * s[1])
        cell = forget * s[1] + i * f[1](c)
        return [f[0](o + po * cell) * f[2](cell), cell]

    return lstm


def _gru(f: Sequence[Function], x: Array, h: Array, multiply: Function, b: Array, before: bool) -> Sequence[Array]:
    first = 2 * (len(b) // 3)
    products = multiply(h) + b
    update, reset = np.split(f[0](x[:, :first] + products[:, :first]), 2, axis=1)
    inner = reset * products[:, first:] if before else multiply(reset * h)[:, first:] + b[first:]
    new = f[1](x[:, first:] + inner)
    return [(1 - update) * new + update * h]
