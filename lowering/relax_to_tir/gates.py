"""Functions of the gates of recurrent layers as tensor expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from lowering.relax_to_tir.scalars import number
from tir_dialect import te

Function: TypeAlias = Callable[[te.Expr], te.Expr]


def function(name: str, a: float, b: float, clip: float | None) -> Function:
    """A function of gates, after clipping."""
    found = _FUNCTIONS[name]

    def apply(x: te.Expr) -> te.Expr:
        bounded = x if clip is None else te.maximum(te.minimum(x, number(clip, x)), number(-clip, x))
        return found(bounded, number(a, x), number(b, x))

    return apply


def _hard_sigmoid(x: te.Expr, a: te.Expr, b: te.Expr) -> te.Expr:
    return te.maximum(te.minimum(a * x + b, 1), 0)


_FUNCTIONS: dict[str, Callable[[te.Expr, te.Expr, te.Expr], te.Expr]] = {
    "sigmoid": lambda x, a, b: te.sigmoid(x),
    "tanh": lambda x, a, b: te.tanh(x),
    "relu": lambda x, a, b: te.maximum(x, 0),
    "affine": lambda x, a, b: a * x + b,
    "leaky_relu": lambda x, a, b: te.select(x < 0, a * x, x),
    "thresholded_relu": lambda x, a, b: te.select(x > a, x, te.const(0, x.dtype)),
    "scaled_tanh": lambda x, a, b: a * te.tanh(b * x),
    "hard_sigmoid": _hard_sigmoid,
    "elu": lambda x, a, b: te.select(x < 0, a * te.expm1(te.minimum(x, 0)), x),
    "softsign": lambda x, a, b: x / (te.abs(x) + 1),
    "softplus": lambda x, a, b: te.maximum(x, 0) + te.log1p(te.exp(-te.abs(x))),
}
