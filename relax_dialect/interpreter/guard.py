"""Guards."""

from __future__ import annotations

from relax_dialect.interpreter.frame import Frame, runs, where
from relax_dialect.interpreter.sizes import evaluate
from relax_dialect.ops.guard import GuardOp, Relation


@runs(GuardOp)
def guard(frame: Frame, op: GuardOp) -> None:
    """Checks two dimensions."""
    left, right = evaluate(op.lhs.data, frame.symbols), evaluate(op.rhs.data, frame.symbols)
    relation = op.relation.data
    holds = left <= right if relation is Relation.AT_MOST else left == right
    if relation is Relation.BROADCAST:
        holds = holds or 1 in (left, right)
    if not holds:
        text, dims = op.check.facts
        facts = text.format(*(evaluate(dim, frame.symbols) for dim in dims))
        raise ValueError(f"{frame.function}: {op.message.data}{where(op)}: {facts}")
    frame.set(op.result, frame.get(op.value))
