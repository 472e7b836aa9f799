"""How elementwise operators and what makes tensors may be shared.

B1: elementwise operators along every dimension of the result; an operand that is broadcast along it is needed as a
whole there. So `astype`, too.
A2: `prelu` along every dimension, of which the one of its axis is that of the slopes, too.
A3: softmax along every dimension but its axis.
Q1: `quantize` and `dequantize` along every dimension; the one of the axis is that of scales and zero points, too.
Q2: `dequantize_blocks` along every dimension; along the last one if workers divide the number of blocks, which stay in
one piece.
C1: `full`, `zeros` and `ones` along every dimension, and so the ones that are like another tensor.
C2: `tril` and `triu` along every dimension but the last two.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, Labels, broadcast, dims, named, shards
from relax_dialect.ops.activation import ClipOp, LeakyReluOp, LogSoftmaxOp, PreluOp, SoftmaxBase, SoftmaxOp, SoftplusOp
from relax_dialect.ops.creation import FullLikeOp, FullOp, OnesLikeOp, OnesOp, TrilOp, TriuOp, ZerosLikeOp, ZerosOp
from relax_dialect.ops.datatype import AstypeOp, DequantizeBlocksOp, DequantizeOp, QuantizeOp
from relax_dialect.ops.operator import ElementwiseOp, Operator
from tir_dialect.dims import constant, floordiv


def elementwise(op: Operator) -> Factors:
    """B1, for any operator whose elements do not depend on each other."""
    operands, result = broadcast([dims(operand) for operand in op.operands], dims(op.results[0]))
    return Factors(operands, [result])


shards(ElementwiseOp, AstypeOp, ClipOp, LeakyReluOp, SoftplusOp)(elementwise)


@shards(PreluOp)
def prelu(op: PreluOp) -> Factors:
    """A2."""
    shape = dims(op.x)
    axis = op.axis.value.data % len(shape)
    (slope,), (along,) = broadcast([dims(op.slope)], shape[axis : axis + 1])
    labels = (*named("b", axis), along, *named("a", len(shape) - axis - 1))
    return Factors([labels, slope], [labels])


@shards(SoftmaxOp, LogSoftmaxOp)
def softmax(op: SoftmaxBase) -> Factors:
    """A3."""
    rank = len(dims(op.x))
    labels = named("d", rank, [op.axis.value.data % rank] if rank else [])
    return Factors([labels], [labels])


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
    labels = named("d", len(dims(op.packed)))
    row = dims(op.packed)[-1]
    count = {} if row is None else {str(labels[-1]): floordiv(row, constant(op.block_format.bytes))}
    return Factors([labels], [labels], blocks=count)


@shards(FullOp, ZerosOp, OnesOp)
def of_shape(op: FullOp | ZerosOp | OnesOp) -> Factors:
    """C1; a value is a tensor of rank 0, or none."""
    return Factors([() for _ in op.operands], [named("d", len(dims(op.result)))])


@shards(FullLikeOp, ZerosLikeOp, OnesLikeOp)
def like(op: FullLikeOp | ZerosLikeOp | OnesLikeOp) -> Factors:
    """C1."""
    labels = named("d", len(dims(op.operands[0])))
    return Factors([labels, *(() for _ in op.operands[1:])], [labels])


@shards(TrilOp, TriuOp)
def triangle(op: TrilOp | TriuOp) -> Factors:
    """C2."""
    rank = len(dims(op.x))
    labels = named("d", rank, [rank - 2, rank - 1])
    return Factors([labels], [labels])
