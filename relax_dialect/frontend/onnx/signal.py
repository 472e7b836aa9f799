"""Signals: Fourier transforms, filters, and counts of n-grams."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.node import Node, Result, converts, fixed, from_front
from relax_dialect.frontend.onnx.reduction import switch
from relax_dialect.frontend.onnx.values import Refusal, Strings
from tir_dialect import te
from tir_dialect.dims import Dim, constant, floordiv


@dataclass(frozen=True)
class Transform:
    """A transform along an axis: of how many points, in which direction, and whether one side says it all."""

    axis: int
    length: Dim
    inverse: bool
    onesided: bool


def _integer(value: te.Expr | Dim) -> te.Expr:
    return te.cast(te.cast(value, "index"), "i64")


def _angle(at: te.Expr, length: Dim) -> te.Expr:
    return te.cast(_integer(at), "f64") * (2 * math.pi) / te.cast(_integer(length), "f64")


def transform(x: te.Tensor, kind: Transform) -> te.Tensor:
    """The transform of numbers whose real and imaginary parts are the last dimension, which is 1 for real ones."""
    axis, length = kind.axis, kind.length
    whole_result = kind.inverse and kind.onesided
    bins = floordiv(length, constant(2)) + 1 if kind.onesided and not kind.inverse else length
    parts = constant(1) if whole_result else constant(2)
    cosines = te.compute((length,), lambda *i: te.cos(_angle(i[0], length)), name="cosines")
    sines = te.compute((length,), lambda *i: te.sin(_angle(i[0], length)), name="sines")
    r = te.reduce_axis(length, "r")

    def element(*i: te.Expr) -> te.Expr:
        at = te.floormod(i[axis] * r, length)
        real, imaginary = (_part(x, kind, i, r, which) for which in (0, 1))
        cosine, sine = cosines[at], sines[at]
        if kind.inverse:
            first, second = real * cosine - imaginary * sine, real * sine + imaginary * cosine
        else:
            first, second = real * cosine + imaginary * sine, imaginary * cosine - real * sine
        value = first if whole_result else te.select(_integer(i[-1]) == 0, first, second)
        return te.sum(value, r)

    shape = (*x.shape[:axis], bins, *x.shape[axis + 1 : -1], parts)
    sums = te.compute(shape, element, name="sums")
    scale = te.cast(_integer(length), "f64") if kind.inverse else te.const(1.0, "f64")
    return te.compute(shape, lambda *i: te.cast(sums[i] / scale, x.dtype), name="dft")


def _part(x: te.Tensor, kind: Transform, i: Sequence[te.Expr], r: te.Expr, which: int) -> te.Expr:
    """The real or imaginary part of an element; behind the data there are zeros, or what symmetry says."""
    axis, size = kind.axis, x.shape[kind.axis]
    if which and x.shape[-1].constant_value == 1:
        return te.const(0.0, "f64")
    half = te.cast(_integer(floordiv(kind.length, constant(2)) + 1), "index")
    mirrored = te.select(r < half, r, te.cast(kind.length, "index") - r) if kind.inverse and kind.onesided else r
    position = te.maximum(te.minimum(mirrored, size - 1), 0)
    value = te.cast(x[(*i[:axis], position, *i[axis + 1 : -1], which)], "f64")
    if kind.inverse and kind.onesided and which:
        turned = te.select(r < half, value, te.const(0.0, "f64") - value)
        edge = te.logical_or(_integer(r) == 0, _integer(r) * 2 == _integer(kind.length))
        value = te.select(edge, te.const(0.0, "f64"), turned)
    return te.select(mirrored < size, value, te.const(0.0, "f64"))


def frames(tensors: Sequence[te.Tensor], count: Dim, size: Dim, step: Dim) -> te.Tensor:
    """Pieces of a signal, `[batch, frame, position, part]`, multiplied by a window if there is one."""
    x, window = tensors[0], tensors[1] if len(tensors) > 1 else None
    parts = x.shape[2] if x.ndim == 3 else constant(1)

    def element(n: te.Expr, frame: te.Expr, position: te.Expr, part: te.Expr) -> te.Expr:
        at = te.minimum(frame * step + position, x.shape[1] - 1)
        value = x[n, at, part] if x.ndim == 3 else x[n, at]
        return value if window is None else value * window[position]

    return te.compute((x.shape[0], count, size, parts), element, name="frames")


def mel_weights(numbers: Sequence[te.Tensor], bins: Dim, bands: Dim, dtype: str) -> te.Tensor:
    """The weight of each bin of a spectrum in each band; numbers: length, sample rate, lowest and highest frequency."""
    length, rate, lowest, highest = (each[()] for each in numbers)
    low, high = (2595 * te.log1p(each / 700) / math.log(10) for each in (lowest, highest))
    count = te.cast(_integer(bands), "f64") + 2

    def edge(i: te.Expr) -> te.Expr:
        mel = te.cast(_integer(i), "f64") * ((high - low) / count) + low
        return te.floor((length + 1) * (700 * te.expm1(mel / 2595 * math.log(10))) / rate)

    edges = te.compute((bands + 2,), edge, name="edges")

    def weight(j: te.Expr, i: te.Expr) -> te.Expr:
        at = te.cast(_integer(j), "f64")
        left, center, right = edges[i], edges[i + 1], edges[i + 2]
        rising = te.logical_and(at >= left, at <= center)
        up = te.select(center > left, (at - left) / te.maximum(center - left, 1.0), te.const(1.0, "f64"))
        falling = te.logical_and(at >= center, at < right)
        down = (right - at) / te.maximum(right - center, 1.0)
        value = te.select(falling, down, te.select(rising, up, te.const(0.0, "f64")))
        return te.cast(value, dtype)

    return te.compute((bins, bands), weight, name="mel_weights")


@dataclass(frozen=True)
class Grams:
    """How n-grams are counted: in how many columns, with how many positions skipped between items, and how many."""

    columns: int
    skips: int
    count: int


def count_grams(x: te.Tensor, table: te.Tensor, kind: Grams) -> te.Tensor:
    """How often each n-gram occurs in each row; rows of the table are column, length, and items of an n-gram."""

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        data, grams = ins
        with b.block("count_grams", ("spatial", x.shape[0], "row")) as (row,):
            found = b.alloc((), "i64", "found")
            with b.for_range(0, kind.columns, "c") as c:
                b.store(outs[0], (row, c), te.const(0.0, "f32"))
            with (
                b.for_range(0, kind.count, "g") as g,
                b.for_range(1, kind.skips + 2, "skip") as skip,
                b.for_range(0, x.shape[1], "start") as start,
            ):
                size = b.let(te.cast(grams[g, 1], "index"), "size")
                fits = start + skip * (size - 1) < x.shape[1]
                counts = te.logical_or(size > 1, skip < 2)
                with b.if_(te.logical_and(fits, counts)):
                    b.store(found, (), 1)
                    with b.for_range(0, size, "j") as j, b.if_(data[row, start + j * skip] != grams[g, j + 2]):
                        b.store(found, (), 0)
                    column = b.let(te.cast(grams[g, 0], "index"), "column")
                    b.store(outs[0], (row, column), outs[0][row, column] + te.cast(found[()], "f32"))

    return te.extern([((x.shape[0], kind.columns), "f32")], [x, table], body, name="count_grams")[0]


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
    pool, x, operand = node.integers("pool_int64s"), None, node.value(0)
    if isinstance(operand, Strings):
        names = list(dict.fromkeys(node.strings("pool_strings")))
        pool = [names.index(each) for each in node.strings("pool_strings")]
        numbers = [names.index(each) if each in names else len(names) for each in operand.vocabulary]
        x = op.take(node.bb.const(np.array(numbers, np.int64)), operand.at, 0)
    if pool is None:
        raise Refusal("the n-grams of the pool are strings, but the input has numbers")
    least, most = node.integer("min_gram_length", 1), node.integer("max_gram_length", 1)
    # The n-grams of the lengths that count, with their numbers in the pool.
    starts = node.integers("ngram_counts") or ()
    grams: list[tuple[int, Sequence[int]]] = []
    number = 0
    for at, start in enumerate(starts):
        end, size = starts[at + 1] if at + 1 < len(starts) else len(pool), at + 1
        for position in range(start, end - size + 1, size):
            if least <= size <= most:
                grams.append((number, pool[position : position + size]))
            number += 1
    columns = node.integers("ngram_indexes") or ()
    longest = max((len(gram) for _, gram in grams), default=1)
    table = np.zeros((max(len(grams), 1), longest + 2), np.int64)
    for row, (number, gram) in enumerate(grams):
        table[row, : len(gram) + 2] = [columns[number], len(gram), *gram]
    kind = Grams(max(columns) + 1, node.integer("max_skip_count"), len(grams))
    x = op.astype(node[0], "i64") if x is None else x
    rank = len(operand.shape)
    is_row = rank < 2
    rows = op.expand_dims(x if rank else op.reshape(x, [1]), [0]) if is_row else x
    counts = node.te(lambda x, table: count_grams(x, table, kind), rows, node.bb.const(table), name="count_grams")
    made = _weighed(node, counts)
    return op.squeeze(made, [0]) if is_row else made


def _weighed(node: Node, counts: Expr) -> Expr:
    weights, mode = node.attributes.get("weights"), node.text("mode")
    if mode == "IDF":
        counts = op.minimum(counts, node.bb.const(1.0, "f32"))
    elif mode not in ("TF", "TFIDF"):
        raise Refusal(f"the mode {mode} does not exist")
    if mode == "TF" or not weights:
        return counts
    return op.multiply(counts, node.bb.const(np.array(weights, np.float32)))
