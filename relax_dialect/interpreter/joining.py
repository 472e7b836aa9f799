"""Operators that join, cut and repeat tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from relax_dialect.interpreter.operators import DimValues, computes, computes_in, integer, integers
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.joining import ConcatOp, RepeatOp, SplitOp, StackOp, TileOp


@computes(ConcatOp)
def concat(op: ConcatOp, *inputs: Array) -> Array:
    """One after the other."""
    return np.concatenate(inputs, op.axis.value.data)


@computes(StackOp)
def stack(op: StackOp, *inputs: Array) -> Array:
    """Along a new axis."""
    return np.stack(inputs, op.axis.value.data)


@computes_in(SplitOp)
def split(dims: DimValues, op: SplitOp, x: Array) -> Sequence[Array]:
    """Parts along an axis."""
    axis = op.axis.value.data
    edges = _edges(dims, op, x.shape[axis])
    return [np.take(x, range(start, end), axis) for start, end in pairwise(edges)]


def _edges(dims: DimValues, op: SplitOp, length: int) -> Sequence[int]:
    if op.indices is not None:
        return [0, *map(dims, op.indices), length]
    sections = len(op.res)
    part = -(-length // sections)
    return [min(index * part, length) for index in range(sections + 1)]


@computes(RepeatOp)
def repeat(op: RepeatOp, x: Array) -> Array:
    """Each element several times."""
    return np.repeat(x, op.repeats.value.data, integer(op.axis))


@computes(TileOp)
def tile(op: TileOp, x: Array) -> Array:
    """The tensor several times."""
    return np.tile(x, integers(op.repeats) or ())
