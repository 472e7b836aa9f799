"""How tensors may be joined and split on several workers.

J1: `concat` and `split` along every dimension but their axis.
J2: `stack` along every dimension of its operands.
J3: `repeat` along every dimension but its axis, and `tile` along those that it does not repeat.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, dims, named, shards
from relax_dialect.ops.joining import ConcatOp, RepeatOp, SplitOp, StackOp, TileOp


@shards(ConcatOp, SplitOp)
def along_axis(op: ConcatOp | SplitOp) -> Factors:
    """J1."""
    rank = len(dims(op.operands[0]))
    labels = named("d", rank, [op.axis.value.data % rank])
    return Factors([labels for _ in op.operands], [labels for _ in op.results])


@shards(StackOp)
def stack(op: StackOp) -> Factors:
    """J2."""
    rank = len(dims(op.operands[0]))
    labels, axis = named("d", rank), op.axis.value.data % (rank + 1)
    return Factors([labels for _ in op.operands], [(*labels[:axis], None, *labels[axis:])])


@shards(RepeatOp)
def repeat(op: RepeatOp) -> Factors | None:
    """J3."""
    if op.axis is None:
        return None
    rank = len(dims(op.x))
    labels = named("d", rank, [op.axis.value.data % rank])
    return Factors([labels], [labels])


@shards(TileOp)
def tile(op: TileOp) -> Factors:
    """J3; the shorter one of shape and repeats is extended at the front."""
    rank, repeats = len(dims(op.x)), op.repeats.get_values()
    total = len(dims(op.result))
    times = (*(1,) * (total - len(repeats)), *repeats)
    result = tuple(f"d{at}" if times[at] == 1 and at >= total - rank else None for at in range(total))
    return Factors([result[total - rank :]], [result])
