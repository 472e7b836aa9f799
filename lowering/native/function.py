"""Lowers one `vm.func` to an LLVM function that only native code calls.

It takes the address of the slot for its result, then the parameters: numbers in registers, everything else as the
address of a `TVMFFIAny` that the caller keeps. It returns a status, 0 or -1 with an error raised. All ways out lead
through one block, which empties the frame and gives the arenas back.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, SSAValue

from lowering.locations import names, place
from lowering.native.abi import (
    ANY,
    ANY_BYTES,
    BODY_PREFIX,
    BOOL,
    BYTE_OFFSET,
    DATA,
    FLOAT,
    I1,
    I32,
    I64,
    INT,
    PAYLOAD,
    PTR,
    RUNTIME,
    TENSOR_OFFSET,
)
from lowering.native.emitter import Emitter
from lowering.native.frame import Frame
from lowering.native.globals import OBJECTS, PLACES, ModuleGlobals
from lowering.native.module_facts import ModuleFacts
from lowering.native.plan import FunctionPlan, is_number, plan_function
from lowering.native.values import Boxed, Number, Storage, Unboxed, Value
from vm_dialect.ops.structure import FuncOp
from vm_dialect.types import F64, TensorType

_KINDS: dict[Attribute, int] = {I64: INT, I1: BOOL, F64: FLOAT}


class FunctionLowering:
    """The state of the lowering of one function; the functions in `lowering.native.ops` emit code through it."""

    def __init__(self, func: FuncOp, shared: ModuleGlobals, facts: ModuleFacts) -> None:
        self.func = func
        self.name = func.sym_name.data
        self.shared = shared
        self.facts = facts
        self.plan: FunctionPlan = plan_function(func)
        self.by_value = self.name in facts.tail_targets
        """Whether objects are passed to this function by value, and belong to it."""
        self.function = body_function(func, self.by_value)
        self.function.location = func.location
        self.emit = Emitter(self.function)
        self.emit.location = func.location
        self.values: dict[SSAValue, Value] = {}
        self.cells = self.emit.stack(ANY)
        """Values on their way to a call."""
        self.words = self.emit.stack(I64)
        """Sizes on their way to a call."""
        self.scratch = self.emit.stack(ANY)
        """A result that is looked at and forgotten."""
        self.exit = Block(arg_types=[I64])
        """The one way out; it takes the place of an error in the table of places, or -1."""
        self._placed: tuple[LocationAttr, SSAValue] | None = None
        self.blocks = {block: self._block(block) for block in self.plan.order[1:]}
        self.frame = Frame(self.emit, shared, self.plan.kept)

    def lower(self) -> llvm.FuncOp:
        """The LLVM function."""
        from lowering.native.ops import LOWERINGS

        body = self.emit.new_block()
        self.emit.start(body)
        self._enter()
        self._bind_parameters()
        for block in self.plan.order:
            if block is not self.plan.order[0]:
                self.emit.start(self.blocks[block])
                self._bind_block_arguments(block)
            for op in block.ops:
                self.emit.location = op.location
                LOWERINGS[type(op)](self, op)
                for result in op.results:
                    self._name(result)
        self._leave()
        self.frame.finish()
        self.emit.branch(body)
        return self.function

    def result_slot(self, result: SSAValue | None) -> SSAValue:
        """The slot for the result of an op, or one for a result that nobody uses."""
        return self.frame.temporary_slots(1) if result is None else self.frame.slot(result)

    def _enter(self) -> None:
        """The stack guard, for functions that may be inside themselves."""
        if self.name not in self.facts.guarded:
            return
        emit = self.emit
        deep = emit.status(self.runtime("vmrt_stack_enter"), [self.text(self.name)])
        allowed, refused = emit.new_block(), emit.new_block()
        emit.branch_if(deep, refused, allowed)
        emit.start(refused)
        emit.return_(emit.integer(-1, I32))
        emit.start(allowed)

    def _leave(self) -> None:
        """The one way out."""
        emit = self.emit
        self.function.body.add_block(self.exit)
        emit.start(self.exit)
        emit.location = self.func.location
        self.give_back()
        (place,) = self.exit.args
        failed, done = emit.new_block(), emit.new_block()
        emit.branch_if(emit.compare("sge", place, emit.integer(0)), failed, done)
        emit.start(failed)
        line = emit.displaced(emit.address(PLACES), place)
        emit.call(self.runtime("vmrt_trace"), [line], None)
        emit.return_(emit.integer(-1, I32))
        emit.start(done)
        emit.return_(emit.integer(0, I32))

    def give_back(self) -> None:
        """Releases the frame and leaves the stack guard."""
        self.frame.release()
        if self.name in self.facts.guarded:
            self.emit.call(self.runtime("vmrt_stack_leave"), [], None)

    # Parameters and block arguments.

    def _bind_parameters(self) -> None:
        self.emit.arguments[0].name_hint = "ret"
        incoming = iter(self.emit.arguments[1:])
        for parameter in self.plan.order[0].args:
            if is_number(parameter):
                self.values[parameter] = Number(next(incoming))
                self._name(parameter)
            elif self.by_value:
                address = self.frame.new_slot()
                self.emit.store(next(incoming), address)
                self.emit.store(next(incoming), address, PAYLOAD)
                self.values[parameter] = self.object_at(address, parameter, owned=False, is_argument=True)
            else:
                address = next(incoming)
                address.name_hint = parameter.name_hint
                self.values[parameter] = self.object_at(address, parameter, owned=False, is_argument=True)

    def _block(self, block: Block) -> Block:
        return self.emit.new_block([argument.type for argument in block.args if is_number(argument)])

    def _bind_block_arguments(self, block: Block) -> None:
        numbers = iter(self.blocks[block].args)
        for argument in block.args:
            if is_number(argument):
                self.values[argument] = Number(next(numbers))
                self._name(argument)
            else:
                address = self.result_slot(argument)
                self.values[argument] = self.object_at(address, argument, owned=True)

    # Values.

    def _name(self, value: SSAValue) -> None:
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
        found = self.values[value]
        if not isinstance(found, Number):
            raise ValueError(f"expected a number, got a value of type {value.type}")
        return found.ssa

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
        payload = emit.value(llvm.ZExtOp(number, I64)) if number.type == I1 else number
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

    def object_address(self, place: str | int) -> SSAValue:
        """The address of a literal, or of an object that is made at load."""
        if isinstance(place, str):
            return self.emit.address(place)
        return self.emit.offset(self.emit.address(OBJECTS), place * ANY_BYTES)

    # Errors.

    def place(self) -> SSAValue:
        """The place of the op that is being lowered, for the backtrace of an error; it is an operand of the way out."""
        location = self.emit.location
        if self._placed is None or self._placed[0] is not location:
            self._placed = location, self.emit.integer(self.shared.place(backtrace_line(location, self.name)))
        return self._placed[1]

    def check(self, failed: SSAValue) -> None:
        """Leaves the function with status -1 if `failed`; an error has been raised."""
        emit = self.emit
        following = emit.new_block()
        emit.add(llvm.CondBrOp(failed, self.exit, [self.place()], following, []))
        emit.start(following)

    def call(self, name: str, arguments: Sequence[SSAValue]) -> None:
        """Calls a function of the run-time support that returns a status, and checks it."""
        self.check(self.emit.status(self.runtime(name), arguments))

    def raise_error(self, kind: str, message: SSAValue, values: Sequence[SSAValue]) -> None:
        """Calls the function that formats a message and raises it as an error of the class `kind`."""
        emit_error(self.emit, self.shared, kind, message, values)

    def runtime_value(self, name: str, arguments: Sequence[SSAValue], type_: Attribute) -> SSAValue:
        """The result of a function of the run-time support."""
        return self.emit.value(llvm.CallOp(self.runtime(name), *arguments, return_type=type_))

    def fail_if(self, condition: SSAValue, callee: str, arguments: Sequence[SSAValue]) -> None:
        """On the condition calls a function that raises an error, and leaves."""
        emit = self.emit
        failing, following = emit.new_block(), emit.new_block()
        emit.branch_if(condition, failing, following)
        emit.start(failing)
        emit.call(self.runtime(callee), arguments, None)
        emit.branch(self.exit, self.place())
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


def backtrace_line(location: LocationAttr, function: str) -> str:
    """A line as in Python's tracebacks, which tvm-ffi makes frames of; empty if the location is unknown.

    The imported name of an op stands behind that of the function.
    """
    where, imported = place(location), names(location)
    caller = f"{function} ({', '.join(imported)})" if imported else function
    if where.filename is not None:
        return f'  File "{where.filename}", line {where.line}, in {caller}\n'
    return f'  File "<{function}>", line 0, in {caller}\n' if imported else ""


def emit_error(emit: Emitter, shared: ModuleGlobals, kind: str, message: SSAValue, values: Sequence[SSAValue]) -> None:
    """Raises an error of the class `kind`; `message` is a format string of C for the values."""
    name = shared.runtime("vmrt_raise")
    class_name = emit.address(shared.text(kind.encode()))
    emit.add(llvm.CallOp(name, class_name, message, *values, var_callee_type=RUNTIME[name]))


def body_function(func: FuncOp, by_value: bool) -> llvm.FuncOp:
    """The LLVM function of a `vm.func`, without a body."""
    parameters: list[Attribute] = [PTR]
    for kind in func.function_type.inputs:
        if kind in _KINDS:
            parameters.append(kind)
        else:
            parameters += [I64, I64] if by_value else [PTR]
    convention = llvm.CallingConventionAttr("tailcc" if by_value else "ccc")
    name = BODY_PREFIX + func.sym_name.data
    return llvm.FuncOp(name, llvm.LLVMFunctionType(parameters, I32), llvm.LinkageAttr("internal"), convention)
