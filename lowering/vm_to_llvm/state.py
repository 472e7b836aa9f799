"""The state of lowering one function, its frame, and code sequences that many ops need.

The frame has slots that own objects, and arena blocks; every exit releases them.
Errors that generated code raises mention locations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowering.llvm.function_builder import INTERNAL, call_op, function_op
from lowering.locations import names, source_position
from lowering.rewriting import ConversionRewriter, PatternIndex
from lowering.vm_to_llvm.abi import (
    ANY,
    ANY_BYTES,
    BOOL,
    BYTE_OFFSET,
    DATA,
    FLOAT,
    I1,
    I8,
    I32,
    I64,
    INT,
    PAYLOAD,
    PTR,
    RUNTIME,
    TENSOR_OFFSET,
)
from lowering.vm_to_llvm.globals import ARENAS, OBJECTS, ModuleGlobals
from lowering.vm_to_llvm.plan import (
    Boxed,
    FunctionPlan,
    ModuleFacts,
    Number,
    Storage,
    Unboxed,
    Value,
    is_number,
    plan_function,
)
from lowering.vm_to_llvm.runtime_builder import RuntimeBuilder
from lowering.vm_to_llvm.symbols import body_symbol
from tir_dialect.fast_ops import new_op
from vm_dialect.ops.structure import FuncOp
from vm_dialect.types import F64, TensorType


def raise_error(
    emit: RuntimeBuilder, shared: ModuleGlobals, kind: str, message: SSAValue, values: Sequence[SSAValue]
) -> None:
    """Raises an error of the class `kind`; `message` is a format string of C for the values."""
    name = shared.runtime("vmrt_raise")
    class_name = emit.address(shared.text(kind.encode()))
    emit.insert(call_op(name, (class_name, message, *values), None, RUNTIME[name]))


def backtrace_line(location: LocationAttr, function: str) -> str:
    """A line as in Python's tracebacks, which tvm-ffi makes frames of; empty if the location is unknown.

    The imported name of an op follows that of the function.
    """
    where, imported = source_position(location), names(location)
    caller = f"{function} ({', '.join(imported)})" if imported else function
    if where.filename is not None:
        return f'  File "{where.filename}", line {where.line}, in {caller}\n'
    return f'  File "<{function}>", line 0, in {caller}\n' if imported else ""


@dataclass(frozen=True)
class ArenaSlot:
    """Where a function keeps the block of one `vm.alloc_storage`."""

    pointer: SSAValue
    """Stack slot with the block's address, null before it is taken."""

    cache: SSAValue
    """Address of the cache that the block comes from."""


class Frame:
    """Slots are handed out while the function is lowered; `finish` makes the code that depends on their number."""

    def __init__(self, emit: RuntimeBuilder, shared: ModuleGlobals, kept: Iterable[SSAValue]) -> None:
        self._emit = emit
        self._shared = shared
        self._slots = emit.stack(ANY)
        self._count = 0
        self._numbers = {value: self._allocate(1) for value in kept}
        self._temporary = 0
        self._temporary_count = 0
        self._arenas: list[ArenaSlot] = []
        self._releases: list[Operation] = []

    def holds(self, value: SSAValue) -> bool:
        """Whether a value has a slot."""
        return value in self._numbers

    def slot(self, value: SSAValue) -> SSAValue:
        """The address of a value's slot."""
        return self._address(self._numbers[value])

    def new_slot(self) -> SSAValue:
        """The address of a slot that belongs to no value."""
        return self._address(self._allocate(1))

    def temporary_slots(self, count: int) -> SSAValue:
        """The address of `count` slots that all ops share; each leaves them empty, or with what nobody uses."""
        if count > self._temporary_count:
            self._temporary, self._temporary_count = self._allocate(count), count
        return self._address(self._temporary)

    def new_arena(self) -> ArenaSlot:
        """A cache in the module, and a stack slot that is null at the start of a call."""
        emit = self._emit
        pointer = emit.stack(PTR).at_least(1)
        null = new_op(llvm.ZeroOp, (), (PTR,))
        cache = llvm.GEPOp(emit.address(ARENAS), [self._shared.new_arena() * 8], I8, inbounds=True)
        emit.entry.add_ops([null, llvm.StoreOp(null.res, pointer), cache])
        self._arenas.append(ArenaSlot(pointer, cache.result))
        return self._arenas[-1]

    def release(self) -> None:
        """Emits the code that empties the slots and gives the arenas back.

        All arenas of the function have to be known.
        """
        emit, shared = self._emit, self._shared
        call = call_op(shared.runtime("vmrt_release"), (self._slots.at_least(1), emit.integer(0)), None)
        self._releases.append(emit.insert(call))
        for arena in self._arenas:
            emit.call(shared.runtime("vmrt_arena_give"), [arena.cache, emit.load(arena.pointer, PTR)], None)

    def finish(self) -> None:
        """Emits the code that empties every slot, at the end of the prologue, where emission goes on."""
        emit = self._emit
        emit.block = emit.entry
        if self._count == 0:
            for release in self._releases:
                release.detach()
                release.erase()
            self._slots.drop()
            return
        for release in self._releases:
            release.operands[1] = emit.integer(self._count)
        size = emit.integer(self._count * ANY_BYTES)
        operands = [self._slots.at_least(1), emit.integer(0, I8), size, emit.integer(0, I1)]
        emit.insert(llvm.CallIntrinsicOp("llvm.memset.p0.i64", operands, []))

    def _allocate(self, count: int) -> int:
        """The number of the first of `count` new slots."""
        self._count += count
        self._slots.at_least(self._count)
        return self._count - count

    def _address(self, number: int) -> SSAValue:
        return self._emit.offset(self._slots.at_least(1), number * ANY_BYTES)


_KINDS: dict[Attribute, int] = {I64: INT, I1: BOOL, F64: FLOAT}


class FunctionState(ConversionRewriter):
    """The rewriter that lowers ops of one function; the patterns in `lowering.vm_to_llvm` emit code through it."""

    def __init__(self, func: FuncOp, shared: ModuleGlobals, facts: ModuleFacts, patterns: PatternIndex) -> None:
        self.func = func
        self.name = func.sym_name.data
        self.shared = shared
        self.facts = facts
        self.plan: FunctionPlan = plan_function(func)
        self.by_value = self.name in facts.by_value
        """Whether arguments are passed to this function in an array, out of which it takes them."""
        self.function = body_function(func, self.by_value)
        self.emit = RuntimeBuilder(self.function)
        super().__init__(patterns, self.emit.entry)
        self.emit.location = func.location
        self.values: dict[SSAValue, Value] = {}
        self.cells = self.emit.stack(ANY)
        """Values on their way to a call."""
        self.outgoing = self.emit.stack(ANY)
        """The array of arguments of a function that takes them out of it."""
        self.words = self.emit.stack(I64)
        """Sizes on their way to a call."""
        self.scratch = self.emit.stack(ANY)
        """A result that is looked at and forgotten."""
        self.told = self.emit.stack(ANY)
        """What an observer gets."""
        self.exit = Block(arg_types=[I64])
        """The one way out; it takes the offset of an error in the table of locations, or -1."""
        self._placed: tuple[LocationAttr, SSAValue] | None = None
        self.blocks = {
            block: self.emit.new_block([argument.type for argument in block.args if is_number(argument)])
            for block in self.plan.order[1:]
        }
        self.frame = Frame(self.emit, shared, self.plan.kept)

    def result_slot(self, result: SSAValue | None) -> SSAValue:
        """The slot for the result of an op, or one for a result that nobody uses."""
        return self.frame.temporary_slots(1) if result is None else self.frame.slot(result)

    def give_back(self) -> None:
        """Releases the frame and leaves the stack guard."""
        self.frame.release()
        if self.name in self.facts.guarded:
            self.emit.call(self.runtime("vmrt_stack_leave"), [], None)

    # Values.

    def name_register(self, value: SSAValue) -> None:
        """Calls the register of a value as the value is called."""
        found = self.values.get(value)
        register = found.ssa if isinstance(found, Number) else None if found is None else _main_register(found)
        if register is not None and register.name_hint is None:
            register.name_hint = value.name_hint

    def object_at(self, address: SSAValue, value: SSAValue, *, owned: bool, is_argument: bool = False) -> Boxed:
        """The object at `address`, as the vm value `value`; the data pointer of a tensor is loaded at once.

        A tensor that is an argument may be a bare `DLTensor`; any other is a tensor object.
        """
        if not isinstance(value.type, TensorType):
            return Boxed(address, owned)
        if is_argument:
            tensor = self.runtime_value("vmrt_dltensor", [address], PTR)
        else:
            tensor = self.emit.offset(self.emit.load(address, PTR, PAYLOAD), TENSOR_OFFSET)
        return self.tensor_at(address, tensor, owned=owned)

    def tensor_at(self, address: SSAValue, tensor: SSAValue, *, owned: bool) -> Boxed:
        """The tensor at `address` whose `DLTensor` is known."""
        emit = self.emit
        data = emit.displaced(emit.load(tensor, PTR, DATA), emit.load(tensor, I64, BYTE_OFFSET))
        return Boxed(address, owned, tensor, data)

    def number(self, value: SSAValue) -> SSAValue:
        """The register of a number."""
        return self.known_number(value).ssa

    def known_number(self, value: SSAValue) -> Number:
        """A number, with what is known about it."""
        found = self.values[value]
        if not isinstance(found, Number):
            raise ValueError(f"expected a number, got a value of type {value.type}")
        return found

    def numbers(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """The registers of several numbers."""
        return [self.number(value) for value in values]

    def tensor(self, value: SSAValue) -> Boxed | Unboxed:
        """A tensor."""
        found = self.values[value]
        if isinstance(found, Number | Storage):
            raise ValueError(f"expected a tensor, got a value of type {value.type}")
        return found

    def data(self, value: SSAValue) -> SSAValue:
        """The address of the first element of a tensor."""
        found = self.tensor(value)
        if found.data is None:
            raise ValueError(f"expected a tensor, got a value of type {value.type}")
        return found.data

    def any_at(self, value: SSAValue, cell: int) -> SSAValue:
        """The address of a `TVMFFIAny` that holds `value`, borrowed; a number is written into a cell."""
        found = self.values[value]
        match found:
            case Boxed():
                return found.address
            case Number():
                address = self.emit.offset(self.cells.at_least(cell + 1), cell * ANY_BYTES)
                self.write_number(found.ssa, address)
                return address
            case Unboxed() | Storage():
                raise ValueError(f"a value of type {value.type} cannot leave its call")

    def write_number(self, number: SSAValue, address: SSAValue) -> None:
        """Makes a `TVMFFIAny` of a number."""
        emit = self.emit
        emit.store(emit.integer(_KINDS[number.type]), address)
        payload = emit.convert(llvm.ZExtOp, number, I64) if number.type == I1 else number
        emit.store(payload, address, PAYLOAD)

    def cell_array(self, values: Sequence[SSAValue]) -> SSAValue:
        """The address of an array of borrowed `TVMFFIAny`, one for each value."""
        emit = self.emit
        base = self.cells.at_least(max(1, len(values)))
        for index, value in enumerate(values):
            found = self.values[value]
            target = emit.offset(base, index * ANY_BYTES)
            if isinstance(found, Number):
                self.write_number(found.ssa, target)
            else:
                source = self.any_at(value, index)
                emit.store(emit.load(source, I64), target)
                emit.store(emit.load(source, I64, PAYLOAD), target, PAYLOAD)
        return base

    def word_array(self, numbers: Sequence[SSAValue]) -> SSAValue:
        """The address of an array of integers."""
        base = self.words.at_least(max(1, len(numbers)))
        for index, number in enumerate(numbers):
            self.emit.store(number, base, 8 * index)
        return base

    # Symbols.

    def runtime(self, name: str) -> str:
        """A function of the run-time support."""
        return self.shared.runtime(name)

    def text(self, text: str) -> SSAValue:
        """The address of a C string."""
        return self.emit.address(self.shared.text(text.encode()))

    def object_address(self, location_offset: str | int) -> SSAValue:
        """The address of a literal, or of an object that is made at load."""
        if isinstance(location_offset, str):
            return self.emit.address(location_offset)
        return self.emit.offset(self.emit.address(OBJECTS), location_offset * ANY_BYTES)

    # Errors.

    @property
    def may_fail(self) -> bool:
        """Whether an error may be raised in the function, as far as it has been lowered."""
        return self._placed is not None

    def location_offset(self) -> SSAValue:
        """The location of the op that is being lowered, for the backtrace of an error; an operand of the exit."""
        location = self.emit.location
        if self._placed is None or self._placed[0] is not location:
            self._placed = location, self.emit.integer(self.shared.location_offset(backtrace_line(location, self.name)))
        return self._placed[1]

    def check(self, failed: SSAValue) -> None:
        """Leaves the function with status -1 if `failed`; an error has been raised."""
        emit = self.emit
        following = emit.new_block()
        emit.branch_if(failed, self.exit, following, self.location_offset())
        emit.start(following)

    def call(self, name: str, arguments: Sequence[SSAValue]) -> None:
        """Calls a function of the run-time support that returns a status, and checks it."""
        self.check(self.emit.status(self.runtime(name), arguments))

    def raise_error(self, kind: str, message: SSAValue, values: Sequence[SSAValue]) -> None:
        """Calls the function that formats a message and raises it as an error of the class `kind`."""
        raise_error(self.emit, self.shared, kind, message, values)

    def runtime_value(self, name: str, arguments: Sequence[SSAValue], type_: Attribute) -> SSAValue:
        """The result of a function of the run-time support."""
        return self.emit.called(self.runtime(name), arguments, type_)

    def fail_if(self, condition: SSAValue, callee: str, arguments: Sequence[SSAValue]) -> None:
        """On the condition calls a function that raises an error, and leaves."""
        emit = self.emit
        failing, following = emit.new_block(), emit.new_block()
        emit.branch_if(condition, failing, following)
        emit.start(failing)
        emit.call(self.runtime(callee), arguments, None)
        emit.branch(self.exit, self.location_offset())
        emit.start(following)


def _main_register(value: Boxed | Unboxed | Storage) -> SSAValue | None:
    """What a person looks for in the code: where the elements are, or the value."""
    match value:
        case Storage():
            return value.block
        case Boxed(data=None):
            return value.address
        case Boxed() | Unboxed():
            return value.data


def body_function(func: FuncOp, by_value: bool) -> llvm.FuncOp:
    """The LLVM function of a `vm.func`, without a body."""
    kinds = func.function_type.inputs
    parameters = [PTR] if by_value else [kind if kind in _KINDS else PTR for kind in kinds]
    function_type = llvm.LLVMFunctionType([PTR, *parameters], I32)
    return function_op(body_symbol(func.sym_name.data), function_type, INTERNAL, {}, location=func.location)
