"""How recurrences may be shared.

RC1: along the batch, which data, lengths, states and results have. A quantised recurrence has one scale for the states
of the whole batch, and is computed by all workers alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.distributed.factors import Factors, Labels, dims, shards
from relax_dialect.ops.recurrent import GRUOp, LSTMOp, RecurrenceOp, RecurrentLayerOp, RNNOp


@shards(RNNOp, GRUOp, LSTMOp, RecurrenceOp)
def recurrence(op: RecurrentLayerOp | RecurrenceOp) -> Factors:
    """RC1."""
    first = isinstance(op, RecurrentLayerOp) and op.batch_first is not None
    data: Labels = ("n", None, None) if first else (None, "n", None)
    states: Labels = ("n", None, None) if first else (None, "n", None)
    outputs: Labels = ("n", None, None, None) if first else (None, None, "n", None)
    operands: list[Labels] = []
    for operand in op.operands:
        whole: Labels = (None,) * len(dims(operand))
        batches: Sequence[tuple[object, Labels]] = [
            (op.x, data),
            (op.lengths, ("n",)),
            *((state, states) for state in op.states),
        ]
        operands.append(next((labels for value, labels in batches if value == operand), whole))
    return Factors(operands, [outputs, *(states for _ in op.res[1:])])
