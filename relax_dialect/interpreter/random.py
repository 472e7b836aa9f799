"""Random numbers: each element by its position in row-major order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relax_dialect.interpreter.operators import computes
from relax_dialect.interpreter.runtime_values import Array, Shape
from relax_dialect.ops.random import RandomNormalOp, RandomOp, RandomUniformOp, fraction, words
from tir_dialect.dtypes import numpy_dtype

WordContraction = tuple[Any, Any, Any, Any]


@computes(RandomUniformOp)
def uniform(op: RandomUniformOp, seed: int, shape: Shape) -> Array:
    """`low + fraction * (high - low)`."""
    low, high = op.low.value.data, op.high.value.data
    random, wide = _words(op, seed, shape), _wide(op)
    if wide is np.float64:
        part = fraction(random[0], random[1]).astype(wide) * wide(2.0**-53)
    else:
        part = (random[0] >> 8).astype(wide) * wide(2.0**-24)
    return (part * wide(high - low) + wide(low)).astype(numpy_dtype(op.dtype))


@computes(RandomNormalOp)
def normal(op: RandomNormalOp, seed: int, shape: Shape) -> Array:
    """A point of the plane by its distance and angle, of which one coordinate is taken."""
    mean, scale = op.mean.value.data, op.scale.value.data
    random, wide = _words(op, seed, shape), _wide(op)
    if wide is np.float64:
        part = (fraction(random[0], random[1]) + 1).astype(wide) * wide(2.0**-53)
        turn = fraction(random[2], random[3]).astype(wide) * wide(2.0**-53)
    else:
        part, turn = (random[0] + 1).astype(wide) * wide(2.0**-32), (random[1] >> 8).astype(wide) * wide(2.0**-24)
    distance = np.sqrt(np.log(part) * wide(-2.0))
    return (distance * np.cos(turn * wide(2 * math.pi)) * wide(scale) + wide(mean)).astype(numpy_dtype(op.dtype))


def _words(op: RandomOp, seed: int, shape: Shape) -> WordContraction:
    positions = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
    return words(np.asarray(seed, np.int64).view(np.uint64), op.stream.value.data, positions)


def _wide(op: RandomOp) -> type[np.float32 | np.float64]:
    """The type in which elements are computed."""
    return np.float64 if numpy_dtype(op.dtype) == np.float64 else np.float32
