"""The condition of a block, as comparisons of dimensions."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp


@dataclass(frozen=True)
class Less:
    """The condition `lhs < rhs`."""

    lhs: Dim
    rhs: Dim


def conditions_of(space: IndexSpace, block: BlockOp) -> list[Less | SSAValue]:
    """The conditions that together are the condition of a block; a value is one that is no comparison of dimensions."""
    return [] if block.condition is None else conjuncts(space, block.condition)


def conjuncts(space: IndexSpace, condition: SSAValue) -> list[Less | SSAValue]:
    """The conditions that all hold where one does; a value is one that is no comparison of dimensions."""
    found: list[Less | SSAValue] = []
    pending = [condition]
    while pending:
        value = pending.pop()
        owner = value.owner
        if isinstance(owner, arith.AndIOp):
            pending += (owner.rhs, owner.lhs)
            continue
        less = _less(space, owner) if isinstance(owner, arith.CmpiOp) else None
        found.append(value if less is None else less)
    return found


def _less(space: IndexSpace, op: arith.CmpiOp) -> Less | None:
    lhs, rhs = space.dim_of(op.lhs), space.dim_of(op.rhs)
    if lhs is None or rhs is None:
        return None
    match arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]:
        case "slt":
            return Less(lhs, rhs)
        case "sgt":
            return Less(rhs, lhs)
        case "sle":
            return Less(lhs, rhs + 1)
        case "sge":
            return Less(rhs - 1, lhs)
        case _:
            return None
