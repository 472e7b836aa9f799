"""Operators that put elements into another order or number of dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relax_dialect.interpreter.operators import computes, computes_all, wide
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.layouts import BlockedLayout, parse_layout
from relax_dialect.ops.rearranging import (
    LayoutTransformOp,
    MeshgridOp,
    MultinomialFromUniformOp,
    ReverseSequenceOp,
)
from tir_dialect.dtypes import numpy_dtype


@computes(ReverseSequenceOp)
def reverse_sequence(op: ReverseSequenceOp, x: Array, lengths: Array) -> Array:
    """Every batch element by itself."""
    moved = np.moveaxis(x, (op.batch_axis.value.data, op.seq_axis.value.data), (0, 1))
    result = moved.copy()
    for batch, length in enumerate(np.clip(lengths, 0, moved.shape[1])):
        result[batch, : int(length)] = moved[batch, : int(length)][::-1]
    return np.moveaxis(result, (0, 1), (op.batch_axis.value.data, op.seq_axis.value.data))


@computes_all(MeshgridOp)
def meshgrid(op: MeshgridOp, *vectors: Array) -> Sequence[Array]:
    """NumPy's function."""
    indexing = "xy" if op.indexing.data == "xy" else "ij"
    return np.meshgrid(*vectors, indexing=indexing)


@computes(LayoutTransformOp)
def layout_transform(op: LayoutTransformOp, x: Array) -> Array:
    """Blocks put together, then others cut."""
    source, target = (parse_layout(text.data) or () for text in (op.source, op.target))
    return relaid(x, source, target)


def relaid(x: Array, source: BlockedLayout, target: BlockedLayout) -> Array:
    """A tensor in another layout of the same dimensions."""
    capitals = [letter for letter, _ in target if letter.isupper()]
    return _cut(_joined(x, source, capitals), capitals, target)


def _joined(x: Array, layout: BlockedLayout, capitals: Sequence[str]) -> Array:
    letters = [letter for letter, _ in layout]
    order = [
        at for c in capitals for at in (letters.index(c), *([letters.index(c.lower())] if c.lower() in letters else []))
    ]
    sizes = [
        x.shape[letters.index(c)] * (x.shape[letters.index(c.lower())] if c.lower() in letters else 1) for c in capitals
    ]
    return x.transpose(order).reshape(sizes)


def _cut(x: Array, capitals: Sequence[str], layout: BlockedLayout) -> Array:
    blocks = dict(layout)
    sizes = [blocks.get(capital.lower(), 1) for capital in capitals]
    padded = np.pad(x, [(0, -length % size) for length, size in zip(x.shape, sizes, strict=True)])
    shape = [part for length, size in zip(padded.shape, sizes, strict=True) for part in (length // size, size)]
    names = [name for capital in capitals for name in (capital, capital.lower())]
    kept = [names.index(letter) for letter, _ in layout]
    rest = [at for at in range(len(names)) if at not in kept]
    return padded.reshape(shape).transpose([*kept, *rest]).reshape([shape[at] for at in kept])


@computes(MultinomialFromUniformOp)
def multinomial(op: MultinomialFromUniformOp, probabilities: Array, uniform: Array, rows: Array) -> Array:
    """How many sums are not greater than the number."""
    sums = np.take(np.cumsum(wide(probabilities), axis=1), rows[:, 0], axis=0, mode="clip")
    positions = np.minimum((sums <= wide(uniform)).sum(1, keepdims=True), probabilities.shape[1] - 1)
    return positions.astype(numpy_dtype(op.dtype))
