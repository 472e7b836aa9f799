"""Removal of ops that have lost their last use; xDSL removes those of a whole module only."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.ir import Operation
from xdsl.rewriter import Rewriter
from xdsl.transforms.dead_code_elimination import is_trivially_dead


def erase_dead(
    candidates: Iterable[Operation],
    *,
    among: Callable[[Operation], bool] = lambda op: True,
    erase: Callable[[Operation], None] = Rewriter.erase_op,
) -> None:
    """Erases those of the ops that nothing uses and that have no effects, then what only they used, and so on.

    The last candidate is looked at first. Only ops `among` some are erased, each by a call of `erase`.
    """
    pending = list(candidates)
    while pending:
        op = pending.pop()
        if op.parent is None or not among(op) or not is_trivially_dead(op):
            continue
        operands = [operand.owner for operand in op.operands]
        erase(op)
        pending += [owner for owner in operands if isinstance(owner, Operation)]
