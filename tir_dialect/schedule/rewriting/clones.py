"""Copies of the ops that compute a value."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.structure import is_inside
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.schedule.rewriting.edits import is_index_op
from tir_dialect.schedule.state import ScheduleState


def check_cloneable(self: ScheduleState, block: BlockOp, value: SSAValue) -> None:
    """Refuses a value of a block that is not computed from iterators and values from outside by pure ops."""
    pending = [value]
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, Operation) or not is_inside(owner.results[0], block):
            continue
        if not is_index_op(owner):
            name, found = block.block_name.data, f"'{owner.name}'"
            raise self.error(f'an index in block "{name}" comes from {found}, expected iterators and sizes only')
        pending += owner.operands


class Cloner:
    """Appends copies of the ops that compute values to a block; `mapping` has what is there already."""

    def __init__(self, target: IRBlock, mapping: dict[SSAValue, SSAValue]):
        self._target = target
        self.mapping = mapping

    def values(self, wanted: Sequence[SSAValue]) -> list[SSAValue]:
        """The copies of values of a block that is being copied; others are used as they are."""
        return [self._value(value) for value in wanted]

    def _value(self, value: SSAValue) -> SSAValue:
        owner = value.owner
        if (
            value in self.mapping
            or not isinstance(owner, Operation)
            or not isinstance(owner.parent_op(), BlockOp | InitOp)
        ):
            return self.mapping.get(value, value)
        for operand in owner.operands:
            self._value(operand)
        clone = owner.clone(self.mapping)
        self._target.add_op(clone)
        return self.mapping[value]
