"""How conversions between element types, scaled integers among them, may be shared.

D1: `astype` along every dimension.

Q1: `quantize` and `dequantize` along every dimension; the one of the axis is that of scales and zero points, too.
Q2: `dequantize_blocks` along every dimension but the last one, whose blocks stay in one piece.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, Labels, dims, named, shards
from lowering.distributed.rules.unary import elementwise
from relax_dialect.ops.datatype import AstypeOp, DequantizeBlocksOp, DequantizeOp, QuantizeOp

shards(AstypeOp)(elementwise)  # D1


@shards(QuantizeOp, DequantizeOp)
def by_axis(op: QuantizeOp | DequantizeOp) -> Factors:
    """Q1."""
    rank = len(dims(op.x))
    labels: Labels = named("d", rank)
    axis = op.axis.value.data % rank if rank else 0
    others: list[Labels] = [(labels[axis],) if dims(value) else () for value in (op.scale, op.zero_point)]
    return Factors([labels, *others], [labels])


@shards(DequantizeBlocksOp)
def blocks(op: DequantizeBlocksOp) -> Factors:
    """Q2."""
    rank = len(dims(op.packed))
    labels = named("d", rank, [rank - 1])
    return Factors([labels], [labels])
