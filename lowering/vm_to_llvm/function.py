"""Lowers one `vm.func` to an LLVM function that only native code calls.

It takes the address of the slot for its result, then the parameters: numbers in registers, everything else as the
address of a `TVMFFIAny` that the caller keeps. It returns a status, 0 or -1 with an error raised, or 1 if it leaves a
call to its caller (`runtime/deferred.ll`). All ways out but calls in tail position lead through one block, which
empties the frame and gives the arenas back.
"""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.ir import Block, SSAValue

from lowering.diagnostics import fail
from lowering.vm_to_llvm.abi import ANY_BYTES, I32, I64, PAYLOAD
from lowering.vm_to_llvm.globals import LOCATIONS, ModuleGlobals
from lowering.vm_to_llvm.module_facts import ModuleFacts
from lowering.vm_to_llvm.patterns import PATTERNS
from lowering.vm_to_llvm.plan import is_number
from lowering.vm_to_llvm.state import FunctionState
from lowering.vm_to_llvm.values import Number
from vm_dialect.ops.structure import FuncOp


def lower_function(func: FuncOp, shared: ModuleGlobals, facts: ModuleFacts) -> llvm.FuncOp:
    """The LLVM function."""
    state = FunctionState(func, shared, facts, PATTERNS)
    body = state.emit.new_block()
    state.emit.start(body)
    _enter(state)
    _bind_parameters(state)
    for block in state.plan.order:
        if block is not state.plan.order[0]:
            state.emit.start(state.blocks[block])
            _bind_block_arguments(state, block)
        for op in block.ops:
            state.emit.location = op.location
            if not state.apply_pattern(op):
                fail(op, "has no lowering to llvm")
            for result in op.results:
                state.name_register(result)
            if state.facts.is_last(op):
                break
    _leave(state)
    state.frame.finish()
    return state.emit.finished(body)


def _enter(state: FunctionState) -> None:
    """The stack guard, for functions that may be inside themselves."""
    if state.name not in state.facts.guarded:
        return
    emit = state.emit
    deep = emit.status(state.runtime("vmrt_stack_enter"), [state.text(state.name)])
    allowed, refused = emit.new_block(), emit.new_block()
    emit.branch_if(deep, refused, allowed)
    emit.start(refused)
    emit.return_(emit.integer(-1, I32))
    emit.start(allowed)


def _leave(state: FunctionState) -> None:
    """The one way out, if the function ever ends."""
    emit = state.emit
    if not any(state.exit in block.last_op.successors for block in emit.blocks if block.last_op):
        return
    emit.start(state.exit)
    emit.location = state.func.location
    state.give_back()
    if not state.may_fail:
        emit.return_(emit.integer(0, I32))
        return
    (source,) = state.exit.args
    failed, done = emit.new_block(), emit.new_block()
    emit.branch_if(emit.compare("sge", source, emit.integer(0)), failed, done)
    emit.start(failed)
    line = emit.displaced(emit.address(LOCATIONS), source)
    emit.call(state.runtime("vmrt_trace"), [line], None)
    emit.return_(emit.integer(-1, I32))
    emit.start(done)
    emit.return_(emit.integer(0, I32))


def _bind_parameters(state: FunctionState) -> None:
    state.emit.arguments[0].name_hint = "ret"
    for index, parameter in enumerate(state.plan.order[0].args):
        if state.by_value:
            _take_parameter(state, state.emit.offset(state.emit.arguments[1], index * ANY_BYTES), parameter)
            continue
        given = state.emit.arguments[1 + index]
        if is_number(parameter):
            state.values[parameter] = Number(given)
            state.name_register(parameter)
        else:
            given.name_hint = parameter.name_hint
            state.values[parameter] = state.object_at(given, parameter, owned=False, is_argument=True)


def _take_parameter(state: FunctionState, source: SSAValue, parameter: SSAValue) -> None:
    """Out of the array of arguments, which a tail call of this function fills anew, into the frame."""
    emit = state.emit
    if is_number(parameter):
        state.values[parameter] = Number(emit.number(source, parameter.type))
        state.name_register(parameter)
        return
    slot = state.frame.new_slot()
    emit.store(emit.load(source, I64), slot)
    emit.store(emit.load(source, I64, PAYLOAD), slot, PAYLOAD)
    state.values[parameter] = state.object_at(slot, parameter, owned=False, is_argument=True)


def _bind_block_arguments(state: FunctionState, block: Block) -> None:
    numbers = iter(state.blocks[block].args)
    for argument in block.args:
        if is_number(argument):
            state.values[argument] = Number(next(numbers))
            state.name_register(argument)
        else:
            address = state.result_slot(argument)
            state.values[argument] = state.object_at(address, argument, owned=True)
