"""Copies of the ops that compute a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.structure import is_inside
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.statements import is_index_op


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


@dataclass(frozen=True)
class Redirect:
    """Copies ops with their accesses of some buffers sent to others, which have one dimension more."""

    targets: Mapping[SSAValue, SSAValue]
    axis: int
    """Where the new dimension is."""

    index: SSAValue
    """The index in it."""

    def clone_into(
        self, source: IRBlock, target: IRBlock, mapping: Mapping[SSAValue, SSAValue], skip_init: bool = False
    ) -> None:
        """Appends the copies to a block; `mapping` has what stands for values from outside."""
        values = dict(mapping)
        for op in source.ops:
            if skip_init and isinstance(op, InitOp):
                continue
            if isinstance(op, LoadOp) and op.buffer in self.targets:
                load = LoadOp(self.targets[op.buffer], self._indices(op, values))
                load.result.name_hint = op.result.name_hint
                values[op.result] = load.result
                target.add_op(load)
            elif isinstance(op, StoreOp) and op.buffer in self.targets:
                value = values.get(op.value, op.value)
                target.add_op(StoreOp(value, self.targets[op.buffer], self._indices(op, values)))
            else:
                target.add_op(op.clone(values))

    def _indices(self, op: LoadOp | StoreOp, values: Mapping[SSAValue, SSAValue]) -> list[SSAValue]:
        found = [values.get(index, index) for index in op.indices]
        found.insert(self.axis, self.index)
        return found
