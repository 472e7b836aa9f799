"""How activations may be shared.

A1: elementwise ones along every dimension.
A2: `prelu` along every dimension, of which the one of its axis is that of the slopes, too.
A3: softmax along every dimension but its axis.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, dims, named, shards
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
    rank = len(dims(op.x))
    labels, axis = named("d", rank), op.axis.value.data % rank
    return Factors([labels, (f"d{axis}" if dims(op.slope) == (dims(op.x)[axis],) else None,)], [labels])


def softmax(op: SoftmaxBase) -> Factors:
    """A3."""
    rank = len(dims(op.x))
    labels = named("d", rank, [op.axis.value.data % rank] if rank else [])
    return Factors([labels], [labels])


for _op in (SoftmaxOp, LogSoftmaxOp):
    shards(_op)(softmax)
