"""Operators that move elements and change shapes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase

from relax_dialect.interpreter.machine import Frame, runs
from relax_dialect.interpreter.operators import computes, make_checks
from relax_dialect.interpreter.runtime_values import Shape
from relax_dialect.ops.joining import ConcatOp, RepeatOp, SplitOp, StackOp, TileOp
from relax_dialect.ops.manipulation import (
    BroadcastToOp,
    ExpandDimsOp,
    FlattenOp,
    FlipOp,
    PermuteDimsOp,
    ReshapeOp,
    SqueezeOp,
)

Array: TypeAlias = np.ndarray[Any, Any]


def integers(values: DenseArrayBase | None) -> tuple[int, ...] | None:
    """The elements of an integer list property, `None` if it is absent."""
    return None if values is None else tuple(int(value) for value in values.get_values())


@computes(ReshapeOp)
def reshape(op: ReshapeOp, x: Array, shape: Shape) -> Array:
    """The same elements under another shape."""
    return x.reshape(shape)


@computes(FlattenOp)
def flatten(op: FlattenOp, x: Array) -> Array:
    """The same elements in one dimension."""
    return x.reshape(-1)


@computes(PermuteDimsOp)
def permute_dims(op: PermuteDimsOp, x: Array) -> Array:
    """The dimensions in another order."""
    return np.ascontiguousarray(np.transpose(x, integers(op.axes)))


@computes(ConcatOp)
def concat(op: ConcatOp, *inputs: Array) -> Array:
    """One after the other."""
    return np.concatenate(inputs, op.axis.value.data)


@computes(StackOp)
def stack(op: StackOp, *inputs: Array) -> Array:
    """Along a new axis."""
    return np.stack(inputs, op.axis.value.data)


@runs(SplitOp)
def split(frame: Frame, op: SplitOp) -> None:
    """Parts along an axis."""
    make_checks(frame, op)
    x: Array = frame.get(op.x)
    axis = op.axis.value.data
    edges = _edges(frame, op, x.shape[axis])
    for result, (start, end) in zip(op.res, pairwise(edges), strict=True):
        part = np.ascontiguousarray(np.take(x, range(start, end), axis))
        frame.check(part, result.type, "result of 'relax.split'")
        frame.set(result, part)


def _edges(frame: Frame, op: SplitOp, length: int) -> Sequence[int]:
    if op.indices is not None:
        return [0, *(dim.data.evaluate(frame.symbols) for dim in op.indices), length]
    sections = len(op.res)
    part = -(-length // sections)
    return [*(min(index * part, length) for index in range(sections)), length]


@computes(ExpandDimsOp)
def expand_dims(op: ExpandDimsOp, x: Array) -> Array:
    """More dimensions of 1."""
    return np.expand_dims(x, integers(op.axes) or ())


@computes(SqueezeOp)
def squeeze(op: SqueezeOp, x: Array) -> Array:
    """Fewer dimensions of 1."""
    return np.squeeze(x, integers(op.axes))


@computes(BroadcastToOp)
def broadcast_to(op: BroadcastToOp, x: Array, shape: Shape) -> Array:
    """Repeated along dimensions of 1."""
    return np.ascontiguousarray(np.broadcast_to(x, shape))


@computes(RepeatOp)
def repeat(op: RepeatOp, x: Array) -> Array:
    """Each element several times."""
    return np.repeat(x, op.repeats.value.data, None if op.axis is None else op.axis.value.data)


@computes(TileOp)
def tile(op: TileOp, x: Array) -> Array:
    """The tensor several times."""
    return np.tile(x, integers(op.repeats) or ())


@computes(FlipOp)
def flip(op: FlipOp, x: Array) -> Array:
    """In reverse order."""
    return np.ascontiguousarray(np.flip(x, op.axis.value.data))
