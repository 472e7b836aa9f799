"""Simplification of the bindings and predicates of blocks, so that they do not grow with each primitive."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import enclosing_block
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.schedule.rewriting.edits import rebuild_block, set_condition
from tir_dialect.schedule.rewriting.materialize import Materializer
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.statements import blocks_in
from tir_dialect.schedule.structure import Less, conditions_of


def simplify_bindings(self: ScheduleState, root: Operation) -> None:
    """Computes the bindings and conditions of all blocks inside `root` anew where they have a simpler form."""
    for block in blocks_in(root):
        _simplify_block(self, block)


def _space_of(self: ScheduleState, block: BlockOp) -> IndexSpace:
    """What the bindings of a block may refer to: of a block around it only the iterators, not the loops outside."""
    around = enclosing_block(block)
    return self.space if around is None else IndexSpace(around)


def _simplify_block(self: ScheduleState, block: BlockOp) -> None:
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
