"""Calls of functions, kernels, packed functions and closures; jumps and returns.

`build(..., instrument=True)` adds calls that tell whoever watches: before a call of a kernel, a packed function or a
function value, and after it, the packed function `OBSERVE` gets `(phase, site, start, nanoseconds, arguments...)`, in
phase 1 with the result at the end. It answers phase 0 with whether the call is left out. Times are taken next to the
call, so that they do not have the observer's own in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, IntegerType, ReducedPrecisionFloatType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.pattern_rewriter import RewritePattern
from xdsl.utils.hints import isa

from lowering.diagnostics import fail
from lowering.llvm.function_builder import call_op
from lowering.locations import described
from lowering.rewriting import op_rewrite_pattern
from lowering.vm_to_llvm.abi import ANY_BYTES, F64, I1, I8, I16, I32, I64, PAYLOAD, PTR
from lowering.vm_to_llvm.plan import Boxed, Number, Storage, Unboxed, is_number
from lowering.vm_to_llvm.state import FunctionState
from lowering.vm_to_llvm.symbols import body_symbol, entry_symbol
from lowering.vm_to_llvm.values import dtype_word
from tir_dialect.fast_ops import new_op
from vm_dialect.executable.model import OBSERVE
from vm_dialect.ops.calls import CallClosureOp, CallKernelOp, CallOp, CallPackedOp, MakeClosureOp
from vm_dialect.ops.structure import GotoOp, IfOp, ReturnOp
from vm_dialect.types import TensorType

_HEADER = 4
"""Values before the arguments."""


def observed(
    state: FunctionState,
    op: Operation,
    callee: str,
    arguments: Sequence[SSAValue],
    call: Callable[[], None],
    slot: SSAValue | None = None,
) -> None:
    """Emits a call, which `call` does; with the observer around it if the module is built so.

    `slot` is where its result is; it is empty if the call is left out.
    """
    if not state.shared.is_observed:
        call()
        return
    emit = state.emit
    site = state.shared.site(state.name, callee, described(op.location))
    if slot is not None:
        emit.call(state.runtime("vmrt_clear"), [slot], None)
    lent = {value: state.frame.new_slot() for value in arguments if isinstance(state.values[value], Unboxed)}
    base = _told(state, site, arguments, lent)
    count = _HEADER + len(arguments)
    is_skipped = emit.compare("ne", _tell(state, base, count), emit.integer(0))
    running, following = emit.new_block(), emit.new_block()
    emit.branch_if(is_skipped, following, running)
    emit.start(running)
    start = state.runtime_value("vmrt_clock", [], I64)
    call()
    end = state.runtime_value("vmrt_clock", [], I64)
    _put(state, base, 0, emit.integer(1))
    _put(state, base, 2, start)
    _put(state, base, 3, emit.subtract(end, start))
    if slot is not None:
        _copy(state, slot, emit.offset(base, count * ANY_BYTES))
        count += 1
    _tell(state, base, count)
    emit.branch(following)
    emit.start(following)
    for address in lent.values():
        emit.call(state.runtime("vmrt_clear"), [address], None)


def _told(
    state: FunctionState, site: int, arguments: Sequence[SSAValue], lent: Mapping[SSAValue, SSAValue]
) -> SSAValue:
    """The array of values that the observer gets, with room for a result. `lent` has slots for tensors that are no
    objects, which become some as long as the call takes.
    """
    emit = state.emit
    base = state.told.at_least(_HEADER + len(arguments) + 1)
    for index, value in enumerate((0, site, 0, 0)):
        _put(state, base, index, emit.integer(value))
    for index, value in enumerate(arguments, _HEADER):
        element, found = emit.offset(base, index * ANY_BYTES), state.values[value]
        match found:
            case Number():
                state.write_number(found.ssa, element)
            case Boxed():
                _copy(state, found.address, element)
            case Unboxed():
                _lend(state, value, found, lent[value])
                _copy(state, lent[value], element)
            case Storage():
                raise ValueError("a storage is no argument")
    return base


def _lend(state: FunctionState, value: SSAValue, found: Unboxed, slot: SSAValue) -> None:
    kind = value.type
    if not isinstance(kind, TensorType) or kind.element is None:
        raise ValueError("expected a tensor of a known dtype")
    emit = state.emit
    rank, dtype = emit.integer(len(found.sizes)), emit.integer(dtype_word(kind.element), I32)
    state.call("vmrt_lend", [slot, rank, state.word_array(found.sizes), dtype, found.data])


def _put(state: FunctionState, base: SSAValue, index: int, number: SSAValue) -> None:
    state.write_number(number, state.emit.offset(base, index * ANY_BYTES))


def _copy(state: FunctionState, source: SSAValue, target: SSAValue) -> None:
    emit = state.emit
    emit.store(emit.load(source, I64), target)
    emit.store(emit.load(source, I64, PAYLOAD), target, PAYLOAD)


def _tell(state: FunctionState, base: SSAValue, count: int) -> SSAValue:
    """Calls the observer; gives its answer, a number."""
    emit = state.emit
    answer = state.scratch.at_least(1)
    emit.store(emit.integer(0), answer)
    observer = state.object_address(state.shared.packed_function(OBSERVE))
    state.call("vmrt_call", [answer, observer, base, emit.integer(count, I32)])
    return emit.load(answer, I64, PAYLOAD)


FUNCTION_VALUE = "vm.builtin.invoke_closure"
"""What a call of a function value is called, as in bytecode."""


class LowerCall(RewritePattern):
    """A direct call; objects are borrowed by the callee, or moved if it takes them by value."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallOp, state: FunctionState) -> None:
        callee = op.callee.root_reference.data
        if callee in state.facts.by_value:
            _call_by_value(state, op, callee)
            return
        arguments = [
            state.number(value) if kind in (I64, I1, F64) else state.any_at(value, cell)
            for cell, (value, kind) in enumerate(zip(op.arguments, state.facts.parameters[callee], strict=True))
        ]
        target = _result_address(state, op.result)
        _enter(state, callee, [target, *arguments])
        _bind_result(state, op.result, target)


def _enter(state: FunctionState, callee: str, arguments: Sequence[SSAValue]) -> None:
    """The call itself, and what the function leaves to its caller."""
    emit = state.emit
    status = emit.called(body_symbol(callee), arguments, I32)
    if callee in state.facts.deferring:
        status = state.runtime_value("vmrt_finish", [status, arguments[0]], I32)
    state.check(emit.compare("ne", status, emit.integer(0, I32)))


def _call_by_value(state: FunctionState, op: CallOp, callee: str) -> None:
    """Copies of the arguments go along in an array; a tail call leaves the frame before, and uses the array it got."""
    emit = state.emit
    copies = state.frame.temporary_slots(len(op.arguments))
    pointers = [emit.offset(copies, index * ANY_BYTES) for index in range(len(op.arguments))]
    for index, (pointer, value) in enumerate(zip(pointers, op.arguments, strict=True)):
        state.call("vmrt_assign", [pointer, state.any_at(value, index)])
    words = [(emit.load(pointer, I64), emit.load(pointer, I64, PAYLOAD)) for pointer in pointers]
    for pointer in pointers:
        emit.store(emit.integer(0), pointer)
    if op in state.facts.tail_calls:
        state.give_back()
        _fill(state, emit.arguments[1], words)
        call = call_op(body_symbol(callee), emit.arguments, I32)
        call.TailCallKind = llvm.TailCallKindAttr(llvm.TailCallKind.MUST_TAIL)
        emit.return_(emit.value(call))
        return
    array = state.outgoing.at_least(max(1, state.facts.array_length))
    _fill(state, array, words)
    target = _result_address(state, op.result)
    _enter(state, callee, [target, array])
    _bind_result(state, op.result, target)


def _fill(state: FunctionState, array: SSAValue, words: Sequence[tuple[SSAValue, SSAValue]]) -> None:
    for index, (head, payload) in enumerate(words):
        state.emit.store(head, array, index * ANY_BYTES)
        state.emit.store(payload, array, index * ANY_BYTES + PAYLOAD)


def _result_address(state: FunctionState, result: SSAValue | None) -> SSAValue:
    """Where the callee puts its result; a number is taken from there at once."""
    if result is not None and is_number(result):
        scratch = state.scratch.at_least(1)
        state.emit.store(state.emit.integer(0), scratch)
        return scratch
    return state.result_slot(result)


def _bind_result(state: FunctionState, result: SSAValue | None, address: SSAValue) -> None:
    if result is None:
        return
    emit = state.emit
    if not is_number(result):
        state.values[result] = state.object_at(address, result, owned=True)
    else:
        state.values[result] = Number(emit.number(address, result.type))


class LowerCallKernel(RewritePattern):
    """A direct call on sizes, data pointers and scalars."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallKernelOp, state: FunctionState) -> None:
        arguments = state.numbers(op.sizes)
        for value in op.arguments:
            arguments.append(state.data(value) if isinstance(value.type, TensorType) else state.number(value))
        name = op.callee.root_reference.data
        kernel = state.facts.kernels.get(name) or state.shared.kernel(name, [value.type for value in arguments])
        if len(kernel.parameters) != len(arguments):
            message = f"@{name} expects {len(kernel.parameters)} arguments, got {len(arguments)}"
            fail(op, message, "pass the kernel's sizes, then its tensors and scalars")
        converted = [_convert(state, op, *pair) for pair in zip(arguments, kernel.parameters, strict=True)]
        symbol = state.shared.declare(kernel.symbol, kernel.function_type)

        def call() -> None:
            state.check(state.emit.status(symbol, converted))

        observed(state, op, name, [*op.sizes, *op.arguments], call)


def _convert(state: FunctionState, op: CallKernelOp, argument: SSAValue, kind: Attribute) -> SSAValue:
    """A scalar as the kernel takes it: integers are cut off, floats rounded."""
    emit, given = state.emit, argument.type
    if given == kind:
        return argument
    if isa(kind, IntegerType) and given == I64:
        width = IntegerType(kind.width.data)
        return argument if width == I64 else emit.value(llvm.TruncOp(argument, width))
    if isa(kind, IntegerType) and given == I1:
        return emit.value(llvm.ZExtOp(argument, IntegerType(kind.width.data)))
    if isinstance(kind, Float16Type | Float32Type) and given == F64:
        return emit.value(llvm.FPTruncOp(argument, kind))
    if isinstance(kind, BFloat16Type) and given == F64:
        return state.runtime_value("vmrt_bf16", [argument], I16)
    if isinstance(kind, ReducedPrecisionFloatType) and given == F64:
        return emit.called(state.shared.rounding(kind), (argument,), I8)
    fail(op, f"@{op.callee.root_reference.data} expects an argument of type {kind}, got {given}")


class LowerCallPacked(RewritePattern):
    """A call through tvm-ffi of a function that was found at load."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallPackedOp, state: FunctionState) -> None:
        callee = state.object_address(state.shared.packed_function(op.function.data))
        _call_function(state, op, op.function.data, callee, op.arguments)


class LowerCallClosure(RewritePattern):
    """A call through tvm-ffi of a value, here or by whoever called this function."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallClosureOp, state: FunctionState) -> None:
        rest = state.facts.deferred.get(op)
        if rest is not None:
            # Leaves the frame, and the call to the caller.
            emit = state.emit
            check = (
                emit.value(new_op(llvm.ZeroOp, (), (PTR,)))
                if rest.check is None
                else emit.address(entry_symbol(rest.check.sym_name.data))
            )
            values = state.cell_array([op.closure, *op.arguments, *rest.captured])
            count, captured = emit.integer(len(op.arguments)), emit.integer(len(rest.captured))
            state.call("vmrt_defer", [emit.arguments[0], values, count, check, captured])
            state.give_back()
            emit.return_(emit.integer(1, I32))
            return
        _call_function(state, op, FUNCTION_VALUE, state.any_at(op.closure, len(op.arguments)), op.arguments)


def _call_function(
    state: FunctionState,
    op: CallPackedOp | CallClosureOp,
    name: str,
    callee: SSAValue,
    values: Sequence[SSAValue],
) -> None:
    slot = state.result_slot(op.result)

    def call() -> None:
        arguments = state.cell_array(values)
        state.call("vmrt_call", [slot, callee, arguments, state.emit.integer(len(values), I32)])

    observed(state, op, name, values, call, slot)
    if op.result is not None:
        state.values[op.result] = Boxed(slot, owned=True)


class LowerMakeClosure(RewritePattern):
    """A function object that holds the captured values and enters the function from outside."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MakeClosureOp, state: FunctionState) -> None:
        emit, slot = state.emit, state.result_slot(op.result)
        entry = emit.address(entry_symbol(op.callee.root_reference.data, len(op.captured)))
        captured = state.cell_array(op.captured)
        state.call("vmrt_make_closure", [slot, entry, captured, emit.integer(len(op.captured))])
        state.values[op.result] = Boxed(slot, owned=True)


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
    # All at once: if one of the sources is among the targets, every value goes through a slot in between.
    emit = state.emit
    targets = {argument for argument, _ in moves}
    if not any(value in targets for _, value in moves):
        for cell, (argument, value) in enumerate(moves):
            state.call("vmrt_assign", [state.result_slot(argument), state.any_at(value, cell)])
    else:
        between = state.frame.temporary_slots(len(moves))
        slots = [emit.offset(between, cell * ANY_BYTES) for cell in range(len(moves))]
        for cell, (slot, (_, value)) in enumerate(zip(slots, moves, strict=True)):
            state.call("vmrt_assign", [slot, state.any_at(value, cell)])
        for slot, (argument, _) in zip(slots, moves, strict=True):
            emit.call(state.runtime("vmrt_move"), [state.result_slot(argument), slot], None)
    state.emit.branch(state.blocks[target], *passed)


class LowerReturn(RewritePattern):
    """Moves or copies the value to the caller's slot."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ReturnOp, state: FunctionState) -> None:
        if op.value is not None:
            emit, found = state.emit, state.values[op.value]
            result = emit.arguments[0]
            match found:
                case Boxed(owned=True):
                    emit.call(state.runtime("vmrt_move"), [result, found.address], None)
                case Number():
                    scratch = state.scratch.at_least(1)
                    state.write_number(found.ssa, scratch)
                    emit.call(state.runtime("vmrt_move"), [result, scratch], None)
                case _:
                    state.call("vmrt_assign", [result, state.any_at(op.value, 0)])
        state.emit.branch(state.exit, state.emit.integer(-1))
