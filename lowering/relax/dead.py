"""Removal of ops that have lost their last use."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation
from xdsl.rewriter import Rewriter
from xdsl.transforms.dead_code_elimination import is_trivially_dead


def erase_dead(candidates: Iterable[Operation]) -> None:
    """Erases those of the ops that nothing uses and that have no effects, then what only they used, and so on."""
    pending = list(candidates)
    while pending:
        op = pending.pop()
        if op.parent is None or not is_trivially_dead(op):
            continue
        operands = [operand.owner for operand in op.operands]
        Rewriter.erase_op(op)
        pending += [owner for owner in operands if isinstance(owner, Operation)]
