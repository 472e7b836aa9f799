"""Sums of products of integers: where the weights are known, it may be that no sum leaves the integers of `f32`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Attribute

from relax_dialect.frontend.onnx.dtypes import integer_limits
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.values import Array

FIRST_INEXACT = 1 << 24
"""`f32` has all integers below."""


def dtype_of_sums(
    node: Node, data: tuple[int, int], weights: tuple[int, int], axes: Sequence[int], bias: int | None = None
) -> Attribute:
    """`f32` if all sums of products of data and weights over axes of the weights, and of a bias, are exact in it,
    whatever the data are; else `i32`.

    Data and weights are operands with their zero points. Of these there is one, or several for the filters of a
    convolution, which are the places of the first axis, or for the columns of a matrix.
    """
    known, start = _elements(node, weights[0]), 0 if bias is None else _greatest(node, bias)
    zero = _elements(node, weights[1]) if node.has(weights[1]) else np.zeros((), np.int64)
    if known is None or zero is None or start is None:
        return i32
    spread = zero.reshape(-1, *[1] * (known.ndim - 1)) if len(axes) > 1 else zero
    total = np.abs(known - spread).sum(tuple(axes)).max(initial=0)
    return f32 if int(total) * _reach(node, *data) + start < FIRST_INEXACT else i32


def _elements(node: Node, index: int) -> Array | None:
    """The integers of an operand, if they are known."""
    found = node.value(index).known
    return None if found is None or found.dtype == object else found.astype(np.int64)


def _greatest(node: Node, index: int) -> int | None:
    """The greatest magnitude in an operand, 0 if it is absent; `None` if its elements are not known."""
    found = _elements(node, index) if node.has(index) else np.zeros((), np.int64)
    return None if found is None else int(np.abs(found).max(initial=0))


def _reach(node: Node, index: int, zero: int) -> int:
    """How far data may be from their zero point."""
    low, high = integer_limits(node.dtype(index))
    points = _elements(node, zero) if node.has(zero) else np.zeros((), np.int64)
    if points is None or not points.size:
        return high - low
    return max(high - int(points.min()), int(points.max()) - low)
