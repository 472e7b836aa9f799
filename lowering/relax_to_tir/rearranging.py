"""Operators that put elements into another order or number of dimensions, padding among them."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.relax_to_tir.elementwise import element, wide_dtype, widen
from lowering.relax_to_tir.indices import axes, axis_of, clamped
from lowering.relax_to_tir.kernel import Kernel, legalizes
from relax_dialect.formulas import filled, surrounded
from relax_dialect.inference import DEFAULT_PROVER
from relax_dialect.ops.layouts import parse_layout, whole_dims
from relax_dialect.ops.rearranging import (
    LayoutTransformOp,
    MapIndicesOp,
    MeshgridOp,
    MultinomialFromUniformOp,
    PadOp,
    ReverseSequenceOp,
    mapped,
)
from tir_dialect import te
from tir_dialect.dims import Dim, ceildiv, constant, product


@legalizes(ReverseSequenceOp)
def reverse_sequence(kernel: Kernel, op: ReverseSequenceOp) -> te.Tensor:
    """The element as far from the end of the sequence as the position is from its start."""
    x, lengths = kernel.tensor(op.x), kernel.tensor(op.lengths)
    sequence, batch = axis_of(op.seq_axis, x.ndim), axis_of(op.batch_axis, x.ndim)

    def element(*i: te.Expr) -> te.Expr:
        length = te.minimum(te.cast(lengths[i[batch]], "index"), x.shape[sequence])
        position = te.select(i[sequence] < length, length - 1 - i[sequence], i[sequence])
        return x[(*i[:sequence], clamped(position, x.shape[sequence]), *i[sequence + 1 :])]

    return te.compute(x.shape, element, name="reverse_sequence")


@legalizes(MeshgridOp)
def meshgrid(kernel: Kernel, op: MeshgridOp) -> Sequence[te.Tensor]:
    """Each vector along its dimension."""
    vectors, shape = [kernel.tensor(vector) for vector in op.vectors], kernel.shape(op.res[0])
    pairs = zip(vectors, op.vectorized_axes, strict=True)
    return [_along(vector, shape, at) for vector, at in pairs]


def _along(vector: te.Tensor, shape: Sequence[Dim], index: int) -> te.Tensor:
    return te.compute(shape, lambda *i: vector[i[index]], name="meshgrid")


@legalizes(LayoutTransformOp)
def layout_transform(kernel: Kernel, op: LayoutTransformOp) -> te.Tensor:
    """The element whose whole coordinates are those of the position; zero beyond the end."""
    x, shape = kernel.tensor(op.x), kernel.shape(op.result)
    source, target = (parse_layout(text.data) or () for text in (op.source, op.target))
    blocks, inner = dict(source), dict(target)
    lengths: dict[str, Dim | None] = whole_dims(source, x.shape)

    def is_whole(length: Dim, block: int) -> bool:
        return length == ceildiv(length, constant(block)) * block

    def element(*i: te.Expr) -> te.Expr:
        at = dict(zip((letter for letter, _ in target), i, strict=True))
        whole: dict[str, te.Expr] = {}
        inside: list[te.Expr] = []
        for letter in lengths:
            small = letter.lower()
            whole[letter] = at[letter] * inner[small] + at[small] if small in inner else at[letter]
            length = lengths[letter]
            if small in inner and length is not None and not is_whole(length, inner[small]):
                inside.append(whole[letter] < length)
        index: list[te.Expr] = []
        for letter, size in source:
            block = blocks.get(letter.lower(), 0)
            position = whole[letter.upper()]
            index.append(position % size if letter.islower() else position // block if block else position)
        value = x[tuple(index)]
        return te.if_then_else(te.logical_and(*inside), value, te.const(0, x.dtype)) if inside else value

    return te.compute(shape, element, name="layout_transform")


@legalizes(MultinomialFromUniformOp)
def multinomial(kernel: Kernel, op: MultinomialFromUniformOp) -> te.Tensor:
    """A running sum for each sample, which counts how often it is not greater than the number."""
    probabilities, uniform, rows = (kernel.tensor(operand) for operand in op.operands)
    dtype, wide = str(kernel.dtype(op.result)), wide_dtype(probabilities.dtype)
    positions = probabilities.shape[1]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("multinomial", *axes((uniform.shape[0],))) as (i,):
            total, found = b.alloc((), wide, "total"), b.alloc((), "i64", "found")
            b.store(total, (), 0)
            b.store(found, (), 0)
            row = b.let(clamped(te.cast(rows[i, 0], "index"), probabilities.shape[0]), "row")
            with b.for_range(0, positions, "place") as position:
                b.store(total, (), total[()] + widen(probabilities[row, position]))
                below = te.cast(total[()], "f64") <= te.cast(widen(uniform[i, 0]), "f64")
                b.store(found, (), found[()] + te.cast(below, "i64"))
            last = te.cast(te.cast(positions - 1, "index"), "i64")
            b.store(outs[0], (i, 0), te.cast(te.minimum(found[()], last), dtype))

    inputs = list(dict.fromkeys((probabilities, uniform, rows)))
    return te.extern([(kernel.shape(op.result), dtype)], inputs, body, name="multinomial")[0]


@legalizes(PadOp)
def pad(kernel: Kernel, op: PadOp) -> te.Tensor:
    """The element that each position comes from, or the value."""
    x, mode = kernel.tensor(op.x), op.mode.data
    before = op.pad_width.get_values()[::2]
    shape = kernel.shape(op.result)
    if mode != "constant":
        return surrounded(x, shape, before, mode)
    # A constant, by which schedules know what this is.
    return filled(x, shape, before, element(op.pad_value.value.data, x.dtype))


@legalizes(MapIndicesOp)
def map_indices(kernel: Kernel, op: MapIndicesOp) -> te.Tensor:
    """The value in all positions, unless each has an element; then every element to its own."""
    x, shape, dtype = kernel.tensor(op.x), kernel.shape(op.result), str(kernel.dtype(op.result))
    is_full = DEFAULT_PROVER.equal(product(x.shape), product(shape)) is True

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        if not is_full:
            with b.block("pad_value", *axes(shape)) as position:
                b.store(outs[0], position, element(op.pad_value.value.data, x.dtype))
        with b.block("map_indices", *axes(x.shape)) as index:
            b.store(outs[0], mapped(op.index_map.data, index), x[index])

    return te.extern([(shape, dtype)], [x], body, name="map_indices")[0]
