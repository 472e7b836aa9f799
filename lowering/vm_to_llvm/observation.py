"""Calls that tell whoever watches: what `build(..., instrument=True)` adds to native code, and to nothing else.

Before a call of a kernel, a packed function or a function value, and after it, the packed function `OBSERVE` gets
`(phase, site, start, nanoseconds, arguments...)`, in phase 1 with the result at the end. It answers phase 0 with
whether the call is left out. Times are taken next to the call, so that they do not have the observer's own in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from lowering.locations import described
from lowering.vm_to_llvm.abi import ANY_BYTES, I32, I64, PAYLOAD
from lowering.vm_to_llvm.plan import Boxed, Number, Storage, Unboxed
from lowering.vm_to_llvm.state import FunctionState
from lowering.vm_to_llvm.values import dtype_word
from vm_dialect.executable.model import OBSERVE
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
