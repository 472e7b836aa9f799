"""Jumps and returns."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.rewriting import op_rewrite_pattern
from lowering.vm_to_llvm.abi import ANY_BYTES
from lowering.vm_to_llvm.plan import is_number
from lowering.vm_to_llvm.state import FunctionState
from lowering.vm_to_llvm.values import Boxed, Number
from vm_dialect.ops.structure import GotoOp, IfOp, ReturnOp


class LowerGoto(RewritePattern):
    """The edge's copies, then a branch."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: GotoOp, state: FunctionState) -> None:
        _take_edge(state, op.target, op.arguments)


class LowerIf(RewritePattern):
    """A branch; an edge that moves objects gets a block of its own for that."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: IfOp, state: FunctionState) -> None:
        emit = state.emit
        condition = state.number(op.condition)
        then, otherwise = emit.new_block(), emit.new_block()
        emit.branch_if(condition, then, otherwise)
        emit.start(then)
        _take_edge(state, op.then_block, op.then_arguments)
        emit.start(otherwise)
        _take_edge(state, op.else_block, op.else_arguments)


def _take_edge(state: FunctionState, target: Block, values: Sequence[SSAValue]) -> None:
    """Copies objects to the slots of the block's arguments and passes numbers on."""
    moves: list[tuple[SSAValue, SSAValue]] = []
    passed: list[SSAValue] = []
    for argument, value in zip(target.args, values, strict=True):
        if is_number(argument):
            passed.append(state.number(value))
        elif argument is not value:
            moves.append((argument, value))
    _move_objects(state, moves)
    state.emit.branch(state.blocks[target], *passed)


def _move_objects(state: FunctionState, moves: Sequence[tuple[SSAValue, SSAValue]]) -> None:
    """All at once: if one of the sources is among the targets, every value goes through a slot in between."""
    emit = state.emit
    targets = {argument for argument, _ in moves}
    if not any(value in targets for _, value in moves):
        for cell, (argument, value) in enumerate(moves):
            state.call("vmrt_assign", [state.result_slot(argument), state.any_at(value, cell)])
        return
    between = state.frame.temporary_slots(len(moves))
    slots = [emit.offset(between, cell * ANY_BYTES) for cell in range(len(moves))]
    for cell, (slot, (_, value)) in enumerate(zip(slots, moves, strict=True)):
        state.call("vmrt_assign", [slot, state.any_at(value, cell)])
    for slot, (argument, _) in zip(slots, moves, strict=True):
        emit.call(state.runtime("vmrt_move"), [state.result_slot(argument), slot], None)


class LowerReturn(RewritePattern):
    """Moves or copies the value to the caller's slot."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ReturnOp, state: FunctionState) -> None:
        if op.value is not None:
            _return_value(state, op.value)
        state.emit.branch(state.exit, state.emit.integer(-1))


def _return_value(state: FunctionState, value: SSAValue) -> None:
    emit, found = state.emit, state.values[value]
    result = emit.arguments[0]
    match found:
        case Boxed(owned=True):
            emit.call(state.runtime("vmrt_move"), [result, found.address], None)
        case Number():
            scratch = state.scratch.at_least(1)
            state.write_number(found.ssa, scratch)
            emit.call(state.runtime("vmrt_move"), [result, scratch], None)
        case _:
            state.call("vmrt_assign", [result, state.any_at(value, 0)])
