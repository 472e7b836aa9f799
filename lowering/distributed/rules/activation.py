"""How activations may be shared.

A1: elementwise ones along every dimension.
A2: `prelu` along every dimension, of which the one of its axis is that of the slopes, too.
A3: softmax along every dimension but its axis.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, broadcast, dims, named, shards
from lowering.distributed.rules.unary import elementwise
from relax_dialect.ops import activation
from relax_dialect.ops.activation import (
    ClipOp,
    LeakyReluOp,
    LogSoftmaxOp,
    PreluOp,
    SoftmaxBase,
    SoftmaxOp,
    SoftplusOp,
)
from relax_dialect.ops.unary import UnaryOp

for _op in vars(activation).values():
    if isinstance(_op, type) and issubclass(_op, UnaryOp) and _op is not UnaryOp:
        shards(_op)(elementwise)  # A1
for _op in (ClipOp, LeakyReluOp, SoftplusOp):
    shards(_op)(elementwise)  # A1


@shards(PreluOp)
def prelu(op: PreluOp) -> Factors:
    """A2."""
    shape = dims(op.x)
    axis = op.axis.value.data % len(shape)
    (slope,), (along,) = broadcast([dims(op.slope)], shape[axis : axis + 1])
    labels = (*named("b", axis), along, *named("a", len(shape) - axis - 1))
    return Factors([labels, slope], [labels])


def softmax(op: SoftmaxBase) -> Factors:
    """A3."""
    rank = len(dims(op.x))
    labels = named("d", rank, [op.axis.value.data % rank] if rank else [])
    return Factors([labels], [labels])


for _op in (SoftmaxOp, LogSoftmaxOp):
    shards(_op)(softmax)
