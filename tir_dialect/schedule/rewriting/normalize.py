"""Simplification of the bindings and predicates of blocks, so that they do not grow with each primitive; and copies
of the ops that compute a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import enclosing_block, is_defined_inside
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.schedule.edits import blocks_in, is_index_op, rebuild_block, set_condition
from tir_dialect.schedule.materialize import Materializer
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure import Less, conditions_of


def simplify_bindings(self: ScheduleState, root: Operation) -> None:
    """Computes the bindings and conditions of all blocks inside `root` anew where they have a simpler form."""
    for block in blocks_in(root):
        space = _space_of(self, block)
        emitter = Materializer(self.func, space, InsertPoint.before(block))
        iterators = [(iterator.kind, iterator.binding, iterator.extent) for iterator in block.iterators]
        for position, (kind, binding, extent) in enumerate(iterators):
            dim = space.dim_of(binding)
            if dim is None:
                continue
            if (simpler := space.prover.simplify(dim)) is dim:
                emitter.remember(dim, binding)
                continue
            value = emitter.emit(simpler)
            value.name_hint = value.name_hint or binding.name_hint
            iterators[position] = (kind, value, extent)
        conditions = conditions_of(space, block)
        simplified = simplify_conditions(space, conditions)
        condition = block.condition if simplified == conditions else emit_conditions(emitter, simplified)
        rebuild_block(block, iterators, condition)


def _space_of(self: ScheduleState, block: BlockOp) -> IndexSpace:
    """What the bindings of a block may refer to: of a block around it only the iterators, not the loops outside."""
    around = enclosing_block(block)
    return self.space if around is None else IndexSpace(around)


def prove_conditions(self: ScheduleState, root: Operation) -> None:
    """Drops the conditions of blocks inside `root` that can be shown to always hold there."""
    for block in blocks_in(root):
        space = _space_of(self, block)
        conditions = conditions_of(space, block)
        # the loops outside of the block around say more than its iterators
        known = conditions_of(self.space, block)
        left = [c for c, each in zip(conditions, known, strict=True) if not _holds(self, each)]
        if len(left) < len(conditions):
            emitter = Materializer(self.func, space, InsertPoint.before(block))
            set_condition(block, emit_conditions(emitter, left))


def _holds(self: ScheduleState, condition: Less | SSAValue) -> bool:
    return isinstance(condition, Less) and self.space.prover.less(condition.lhs, condition.rhs) is True


def simplify_conditions(space: IndexSpace, conditions: list[Less | SSAValue]) -> list[Less | SSAValue]:
    """The conditions in simplest form, without those that always hold and repetitions."""
    found: list[Less | SSAValue] = []
    for condition in conditions:
        if isinstance(condition, Less):
            simpler = Less(space.prover.simplify(condition.lhs), condition.rhs)
            # what was not known to hold is not known now, unless it has another form
            if simpler != condition and space.prover.less(simpler.lhs, simpler.rhs) is True:
                continue
            condition = simpler
        if condition not in found:
            found.append(condition)
    return found


def emit_conditions(emitter: Materializer, conditions: list[Less | SSAValue]) -> SSAValue | None:
    """A value that tells whether all conditions hold; `None` if there are none."""
    result: SSAValue | None = None
    for condition in conditions:
        value = emit_less(emitter, condition) if isinstance(condition, Less) else condition
        result = value if result is None else emitter.insert(arith.AndIOp(result, value))
    return result


def emit_less(emitter: Materializer, condition: Less) -> SSAValue:
    """The value of a comparison."""
    return emitter.insert(arith.CmpiOp(emitter.emit(condition.lhs), emitter.emit(condition.rhs), "slt"))


def check_cloneable(self: ScheduleState, block: BlockOp, value: SSAValue) -> None:
    """Refuses a value of a block that is not computed from iterators and values from outside by pure ops."""
    pending = [value]
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, Operation) or not is_defined_inside(owner.results[0], block):
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
