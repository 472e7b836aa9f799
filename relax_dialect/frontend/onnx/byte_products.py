"""Products of bytes less their zero points: a product of the bytes themselves, which machines have instructions for.

`sum (a - p) * (b - q) = sum a * b - q * sum a - p * sum (b - q)`, exactly, as integers wrap around. The sums of known
weights are known too, so that zero points cost a number for each column, or nothing where they are 0.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i8, i32

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.node import Node

MIDDLE = 128
"""The zero point of weights without a sign that are as good as weights with one."""


def product_of_bytes(x: Expr, w: Expr, zero_x: Expr | None, zero_w: Expr | None) -> Expr:
    """The product of two matrices of bytes less their zero points, as `i32`.

    Zero points are `i32`: one number, or for `x` one for each row, as a column, and for `w` one for each column.
    """
    total = op.matmul(x, w, i32)
    if zero_w is not None:
        rows = op.sum(op.astype(x, i32), [-1], keepdims=True)
        total = op.subtract(total, op.multiply(rows, zero_w))
    if zero_x is not None:
        distance = op.astype(w, i32) if zero_w is None else op.subtract(op.astype(w, i32), zero_w)
        total = op.subtract(total, op.multiply(zero_x, op.sum(distance, [-2], keepdims=True)))
    return total


def weights_with_sign(node: Node, index: int, zero: int) -> tuple[Expr, Expr | None]:
    """The right operand of a product and its zero point as `i32`, `None` if that is 0.

    Known weights without a sign whose zero point is 128 become weights with one.
    """
    known, points = node.value(index).known, node.known(zero) if node.has(zero) else None
    if known is not None and points is not None and known.dtype == np.uint8 and bool((points == MIDDLE).all()):
        return node.const((known ^ MIDDLE).view(np.int8), i8), None
    return node[index], zero_point(node, zero)


def zero_point(node: Node, index: int) -> Expr | None:
    """A zero point as `i32`; `None` if it is absent or known to be 0."""
    points = node.known(index) if node.has(index) else np.zeros(())
    return op.astype(node[index], i32) if points is None or bool(points.any()) else None
