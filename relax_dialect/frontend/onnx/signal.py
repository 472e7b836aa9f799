"""Signals: Fourier transforms, filters, and counts of n-grams."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.kernels.fourier import Transform, frames, mel_weights, transform
from relax_dialect.frontend.onnx.kernels.ngrams import Grams, count_grams
from relax_dialect.frontend.onnx.node import Node, fixed, from_front
from relax_dialect.frontend.onnx.reduction import switch
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect.dims import Dim, constant, floordiv


@converts("DFT")
def dft(node: Node) -> Result:
    """The discrete Fourier transform along an axis."""
    if node.version < 20:
        return _transformed(node, from_front(node.integer("axis", 1), node.rank()))
    known = node.ints(2) if node.has(2) else (-2,)
    if known is not None:
        return _transformed(node, from_front(known[0], node.rank()))
    axis = op.astype(op.reshape(node[2], []), "i64")
    return switch(node, axis, lambda at: _transformed(node, min(at, node.rank() - 2)))


def _transformed(node: Node, axis: int) -> Expr:
    fixed(node.shape()[-1:], "the number of parts of a number")
    length = node.shape()[axis]
    inverse, onesided = bool(node.integer("inverse")), bool(node.integer("onesided"))
    count = 2 * (length - 1) if inverse and onesided else length
    if node.has(1):
        count = _dim(node, 1)
    kind = Transform(axis, count, inverse, onesided)
    return node.te(lambda x: transform(x, kind), node[0], name="dft")


def _dim(node: Node, index: int, hint: Dim | None = None) -> Dim:
    """A scalar operand as a dimension."""
    known = node.dims(index)
    return known[0] if known is not None else node.run_time_dims(op.reshape(node[index], [1]), [hint])[0]


@converts("STFT")
def stft(node: Node) -> Result:
    """Fourier transforms of windows that slide over a signal."""
    length, step = node.shape()[1], _dim(node, 1)
    fixed(node.shape()[2:], "the number of parts of a number")
    window = node.optional(2)
    whole = length if window is None else node.shape(2)[0]
    size = _dim(node, 3) if node.has(3) else whole
    onesided = bool(node.integer("onesided", 1))
    count = floordiv(length - size, step) + 1
    (count,) = node.named([count], node.hinted_dims(4)[1:2])
    arguments = [node[0], *([] if window is None else [window])]
    cut = node.te(lambda *tensors: frames(tensors, count, size, step), *arguments, name="frames")
    kind = Transform(2, size, False, onesided)
    return node.te(lambda x: transform(x, kind), cut, name="stft")


@converts("MelWeightMatrix")
def mel_weight_matrix(node: Node) -> Result:
    """Triangular filters that turn the bins of a spectrum into mel bands."""
    hints = node.hinted_dims(2)
    bands = _dim(node, 0, hints[1])
    bins = floordiv(_dim(node, 1), constant(2)) + 1
    (bins,) = node.named([bins], hints[:1])
    dtype = node.element_type("output_datatype") or node.dtype(3)
    numbers = [op.astype(op.reshape(node[at], []), "f64") for at in range(1, 5)]
    return node.te(lambda *tensors: mel_weights(tensors, bins, bands, str(dtype)), *numbers, name="mel_weights")


@converts("TfIdfVectorizer")
def tf_idf(node: Node) -> Result:
    """How often n-grams of a pool occur, weighed."""
    pool = node.integers("pool_int64s")
    if pool is None:
        raise Refusal("strings are not supported")
    least, most = node.integer("min_gram_length", 1), node.integer("max_gram_length", 1)
    grams = _grams(pool, node.integers("ngram_counts") or (), least, most)
    columns = node.integers("ngram_indexes") or ()
    longest = max((len(gram) for _, gram in grams), default=1)
    table = np.zeros((max(len(grams), 1), longest + 2), np.int64)
    for row, (number, gram) in enumerate(grams):
        table[row, : len(gram) + 2] = [columns[number], len(gram), *gram]
    kind = Grams(max(columns) + 1, node.integer("max_skip_count"), len(grams))
    x, is_row = op.astype(node[0], "i64"), node.rank() < 2
    rows = op.expand_dims(x if node.rank() else op.reshape(x, [1]), [0]) if is_row else x
    counts = node.te(lambda x, table: count_grams(x, table, kind), rows, node.bb.const(table), name="count_grams")
    made = _weighed(node, counts)
    return op.squeeze(made, [0]) if is_row else made


def _grams(pool: Sequence[int], starts: Sequence[int], least: int, most: int) -> list[tuple[int, Sequence[int]]]:
    """The n-grams of the lengths that count, with their numbers in the pool."""
    found: list[tuple[int, Sequence[int]]] = []
    number = 0
    for at, start in enumerate(starts):
        end, size = starts[at + 1] if at + 1 < len(starts) else len(pool), at + 1
        for place in range(start, end - size + 1, size):
            if least <= size <= most:
                found.append((number, pool[place : place + size]))
            number += 1
    return found


def _weighed(node: Node, counts: Expr) -> Expr:
    weights, mode = node.attributes.get("weights"), node.text("mode")
    if mode == "IDF":
        counts = op.minimum(counts, node.bb.const(1.0, "f32"))
    elif mode not in ("TF", "TFIDF"):
        raise Refusal(f"the mode {mode} does not exist")
    if mode == "TF" or not weights:
        return counts
    return op.multiply(counts, node.bb.const(np.array(weights, np.float32)))
