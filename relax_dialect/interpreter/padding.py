"""Padding."""

from __future__ import annotations

import numpy as np

from relax_dialect.interpreter.operators import computes, element
from relax_dialect.interpreter.properties import integers
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.padding import PadOp


@computes(PadOp)
def pad(op: PadOp, x: Array) -> Array:
    """The element that each index of the result comes from, or the value."""
    widths = integers(op.pad_width) or ()
    if op.mode.data != "constant":
        for axis, (before, after) in enumerate(zip(widths[::2], widths[1::2], strict=True)):
            x = x[(slice(None),) * axis + (slice(max(-before, 0), x.shape[axis] - max(-after, 0)),)]
        widths = [max(width, 0) for width in widths]
    inside = np.ones((1,) * x.ndim, bool)
    for axis, (before, after) in enumerate(zip(widths[::2], widths[1::2], strict=True)):
        length = x.shape[axis]
        positions = np.array(range(-before, length + after), np.int64)
        within = (positions >= 0) & (positions < length)
        inside = inside & within.reshape([-1 if at == axis else 1 for at in range(x.ndim)])
        if length == 0 and positions.size:
            x = np.concatenate([x, np.zeros([1 if at == axis else n for at, n in enumerate(x.shape)], x.dtype)], axis)
        x = np.take(x, mapped(op.mode.data, positions, length), axis)
    return np.where(inside, x, element(op.pad_value.value.data, op, x)) if op.mode.data == "constant" else x


def mapped(mode: str, positions: Array, length: int) -> Array:
    """The positions of an axis that positions outside of it stand for."""
    match mode:
        case "reflect":
            period = max(2 * (length - 1), 1)
            return length - 1 - np.abs(positions % period - (length - 1)) if length > 1 else positions * 0
        case "circular":
            return positions % length if length else positions * 0
        case _:
            return np.clip(positions, 0, max(length - 1, 0))
