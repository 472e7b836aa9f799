"""Equivalence of values of two stages."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from xdsl.ir import BlockArgument, Operation, SSAValue

from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.ops.memory import LoadOp


def are_twins(
    stage: Stage, value: SSAValue, other: Stage, twin: SSAValue, changed: AbstractSet[SSAValue] = frozenset()
) -> bool:
    """Whether a value of a stage is one of another stage at equal axes; buffers that are `changed` may differ."""
    op, second = value.owner, twin.owner
    if value is twin:
        return True
    if isinstance(value, BlockArgument) or not isinstance(op, Operation) or not isinstance(second, Operation):
        return False
    if type(op) is not type(second) or op.properties != second.properties or op.regions:
        return False
    if isinstance(op, LoadOp) and isinstance(second, LoadOp):
        indices = stage.accesses.get(op), other.accesses.get(second)
        return op.buffer is second.buffer and indices[0] == indices[1] is not None and op.buffer not in changed
    pairs = zip(op.operands, second.operands, strict=False)
    same = len(op.operands) == len(second.operands)
    return same and all(are_twins(stage, a, other, b, changed) for a, b in pairs)
