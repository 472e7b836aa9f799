"""Jumps and returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from lowering.native.abi import ANY_BYTES
from lowering.native.function import FunctionLowering
from lowering.native.module_facts import is_in_tail_position
from lowering.native.plan import is_number
from lowering.native.values import Boxed, Number
from vm_dialect.ops.calls import CallOp
from vm_dialect.ops.structure import GotoOp, IfOp, ReturnOp


def lower_goto(lowering: FunctionLowering, op: GotoOp) -> None:
    """The edge's copies, then a branch."""
    _take_edge(lowering, op.target, op.arguments)


def lower_if(lowering: FunctionLowering, op: IfOp) -> None:
    """A branch; an edge that moves objects gets a block of its own for that."""
    emit = lowering.emit
    condition = lowering.number(op.condition)
    then, otherwise = emit.new_block(), emit.new_block()
    emit.branch_if(condition, then, otherwise)
    emit.start(then)
    _take_edge(lowering, op.then_block, op.then_arguments)
    emit.start(otherwise)
    _take_edge(lowering, op.else_block, op.else_arguments)


def _take_edge(lowering: FunctionLowering, target: Block, values: Sequence[SSAValue]) -> None:
    """Copies objects to the slots of the block's arguments and passes numbers on."""
    moves: list[tuple[SSAValue, SSAValue]] = []
    passed: list[SSAValue] = []
    for argument, value in zip(target.args, values, strict=True):
        if is_number(argument):
            passed.append(lowering.number(value))
        elif argument is not value:
            moves.append((argument, value))
    _move_objects(lowering, moves)
    lowering.emit.branch(lowering.blocks[target], *passed)


def _move_objects(lowering: FunctionLowering, moves: Sequence[tuple[SSAValue, SSAValue]]) -> None:
    """All at once: if one of the sources is among the targets, every value goes through a slot in between."""
    emit = lowering.emit
    targets = {argument for argument, _ in moves}
    if not any(value in targets for _, value in moves):
        for cell, (argument, value) in enumerate(moves):
            lowering.call("vmrt_assign", [lowering.result_slot(argument), lowering.any_at(value, cell)])
        return
    between = lowering.frame.temporary_slots(len(moves))
    places = [emit.offset(between, cell * ANY_BYTES) for cell in range(len(moves))]
    for cell, (place, (_, value)) in enumerate(zip(places, moves, strict=True)):
        lowering.call("vmrt_assign", [place, lowering.any_at(value, cell)])
    for place, (argument, _) in zip(places, moves, strict=True):
        emit.call(lowering.runtime("vmrt_move"), [lowering.result_slot(argument), place], None)


def lower_return(lowering: FunctionLowering, op: ReturnOp) -> None:
    """Moves or copies the value to the caller's slot."""
    emit = lowering.emit
    previous = op.prev_op
    if isinstance(previous, CallOp) and previous in lowering.facts.tail_calls and is_in_tail_position(previous):
        return
    if op.value is not None:
        _return_value(lowering, op.value)
    emit.branch(lowering.exit, emit.integer(-1))


def _return_value(lowering: FunctionLowering, value: SSAValue) -> None:
    emit, found = lowering.emit, lowering.values[value]
    result = emit.arguments[0]
    match found:
        case Boxed(owned=True):
            emit.call(lowering.runtime("vmrt_move"), [result, found.address], None)
        case Number():
            scratch = lowering.scratch.at_least(1)
            lowering.write_number(found.ssa, scratch)
            emit.call(lowering.runtime("vmrt_move"), [result, scratch], None)
        case _:
            lowering.call("vmrt_assign", [result, lowering.any_at(value, 0)])


LOWERINGS: dict[type[Operation], Callable[[FunctionLowering, Any], None]] = {
    GotoOp: lower_goto,
    IfOp: lower_if,
    ReturnOp: lower_return,
}
"""Of the terminators."""
