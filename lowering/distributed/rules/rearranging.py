"""How what rearranges and pads may be shared.

E1: `reverse_sequence` along every dimension but that of the sequence; that of the batch is that of the lengths, too.
E2: `meshgrid` along every dimension of the results, of which each vector has one.
E3: `layout_transform` along the dimensions that both layouts have and neither cuts into blocks.
E4: `multinomial_from_uniform` along the samples; all workers have the probabilities.

PD1: along every dimension that is not padded.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, Labels, dims, named, shards
from relax_dialect.ops.layouts import Layout
from relax_dialect.ops.rearranging import (
    LayoutTransformOp,
    MeshgridOp,
    MultinomialFromUniformOp,
    PadOp,
    ReverseSequenceOp,
)


@shards(ReverseSequenceOp)
def reverse_sequence(op: ReverseSequenceOp) -> Factors:
    """E1."""
    rank = len(dims(op.x))
    labels = named("d", rank, [op.seq_axis.value.data % rank])
    return Factors([labels, (labels[op.batch_axis.value.data % rank],)], [labels])


@shards(MeshgridOp)
def meshgrid(op: MeshgridOp) -> Factors:
    """E2."""
    labels = list(named("d", len(op.vectors)))
    operands: list[Labels] = [(label,) for label in labels]
    if op.indexing.data == "xy" and len(labels) > 1:
        labels[:2] = labels[1::-1]
    return Factors(operands, [tuple(labels) for _ in op.results])


@shards(LayoutTransformOp)
def layout_transform(op: LayoutTransformOp) -> Factors:
    """E3."""
    layouts = [Layout(text.data) for text in (op.source, op.target)]
    cut = {letter for layout in layouts for letter in layout.blocks}
    source, target = (
        tuple(letter if letter.isupper() and letter not in cut else None for letter in layout.letters)
        for layout in layouts
    )
    return Factors([source], [target])


@shards(MultinomialFromUniformOp)
def multinomial(op: MultinomialFromUniformOp) -> Factors:
    """E4."""
    return Factors([(None, None), ("n", None), ("n", None)], [("n", None)])


@shards(PadOp)
def pad(op: PadOp) -> Factors:
    """PD1."""
    rank, widths = len(dims(op.x)), op.pad_width.get_values()
    labels = named("d", rank, [at for at in range(rank) if widths[2 * at] or widths[2 * at + 1]])
    return Factors([labels], [labels])
