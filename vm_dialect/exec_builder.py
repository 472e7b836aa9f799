"""Executables by hand: emit instructions, get a verified `Executable`.

```python
ib = ExecBuilder()
with ib.function("main", num_inputs=1):
    ib.emit_call("custom_add", args=[ib.r(0), ib.imm(10)], dst=ib.r(1))
    ib.emit_ret(ib.r(1))
executable = ib.get()
```
"""

from __future__ import annotations

import base64
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import tvm_ffi

from vm_dialect.dtypes import ElementType, element_type
from vm_dialect.executable import Executable, FunctionInfo, FunctionKind, Metadata, NativeObject, SignatureTypes
from vm_dialect.executable.contents import check_written, is_register, reads, successors, writes
from vm_dialect.executable.model import (
    IMMEDIATE_MAX,
    IMMEDIATE_MIN,
    STATE,
    UNTYPED,
    VOID,
    VOID_REGISTER,
    Call,
    Constant,
    Goto,
    If,
    Instruction,
    Operand,
    OperandKind,
    Ret,
    Value,
)
from vm_dialect.tensors import Array, exchange_dtype, from_numpy, tensor_on


class FunctionScope:
    """Instructions of a function that is being emitted."""

    def __init__(self, name: str, inputs: int):
        self.name = name
        self.inputs = inputs
        self.instructions: list[Instruction] = []
        self.locations: dict[int, str] = {}
        """What instructions were made from, by their position in the function."""

    def emit(self, instruction: Instruction, location: str) -> None:
        """Adds an instruction."""
        if location:
            self.locations[len(self.instructions)] = location
        self.instructions.append(instruction)

    def finish(self, frame_size: int | None) -> int:
        """Checks the function and returns its number of registers.

        Without a `frame_size`, the registers are numbered anew: arguments first, then in the order of their use.
        `ValueError` names the instruction that is wrong.
        """
        if not self.instructions:
            raise ValueError(f"function {self.name} is empty")
        for index in range(len(self.instructions)):
            for target in successors(self.instructions[index], index):
                if not 0 <= target < len(self.instructions):
                    problem = "the end can be reached" if target == len(self.instructions) else "jump out of it"
                    raise ValueError(f"function {self.name}, instruction {index}: {problem}")
        try:
            check_written(self.instructions, self.inputs)
        except ValueError as error:
            raise ValueError(f"function {self.name}, {error}") from None
        if frame_size is not None:
            return frame_size
        numbers = {register: register for register in range(self.inputs)}
        for instruction in self.instructions:
            for register in (*reads(instruction), *writes(instruction)):
                numbers.setdefault(register, len(numbers))
        self.instructions = [_renumbered(instruction, numbers) for instruction in self.instructions]
        return len(numbers)


def _renumbered(instruction: Instruction, numbers: dict[int, int]) -> Instruction:
    def operand(old: Operand) -> Operand:
        return Operand(old.kind, numbers[old.value]) if is_register(old) else old

    match instruction:
        case Call(destination, _, arguments):
            target = numbers.get(destination, VOID_REGISTER)
            return replace(instruction, destination=target, arguments=tuple(map(operand, arguments)))
        case Ret(value):
            return Ret(operand(value))
        case If(condition, false_offset):
            return If(operand(condition), false_offset)
        case Goto():
            return instruction


Argument: TypeAlias = Operand | Value | Array | None
"""An operand, or a Python value that becomes an immediate or a constant; `None` is null."""


class ExecBuilder:
    """Collects functions, constants and instructions of an executable."""

    def __init__(self) -> None:
        self._functions: list[FunctionInfo] = []
        self._index: dict[str, int] = {}
        self._constants: list[Constant] = []
        self._constant_index: dict[object, int] = {}
        self._bodies: dict[int, FunctionScope] = {}
        self._native: list[NativeObject] = []
        self._metadata = Metadata()
        self._scope: FunctionScope | None = None
        self._location = ""

    def r(self, index: int) -> Operand:
        """A register; the first ones hold the arguments. `ValueError` if the number is negative."""
        if index < 0:
            raise ValueError(f"register {index}: expected a number >= 0")
        return Operand(OperandKind.REGISTER, index)

    def imm(self, value: int) -> Operand:
        """An integer of up to 56 bits inside the instruction; `ValueError` if it is larger."""
        if not IMMEDIATE_MIN <= value <= IMMEDIATE_MAX:
            raise ValueError(f"immediate {value} does not fit into 56 bits, use convert_constant")
        return Operand(OperandKind.IMMEDIATE, value)

    def c(self, index: int) -> Operand:
        """A constant by its number, as `convert_constant` gave it."""
        if not 0 <= index < len(self._constants):
            raise ValueError(f"constant {index} is out of range, there are {len(self._constants)}")
        return Operand(OperandKind.CONSTANT, index)

    def f(self, name: str) -> Operand:
        """A function as a value; it may be defined later."""
        return Operand(OperandKind.FUNCTION, self._function(name))

    def void_arg(self) -> Operand:
        """Null as an argument; as a destination, the result is dropped."""
        return VOID

    def vm_state(self) -> Operand:
        """The virtual machine as an argument."""
        return STATE

    def convert_constant(self, value: Value | Array, name: str = "") -> Operand:
        """Puts a tensor, array, shape, string, number, boolean or element type among the constants.

        Equal constants are kept once; tensors are equal if they are the same object or have the same name.
        """
        constant = Constant(from_numpy(value) if isinstance(value, np.ndarray) else value, name)
        index = self._constant_index.get(constant.key())
        return self.add_constant(constant) if index is None else self.c(index)

    def add_constant(self, constant: Constant) -> Operand:
        """Puts a constant at the end of the others, even if there is an equal one."""
        index = len(self._constants)
        self._constant_index.setdefault(constant.key(), index)
        self._constants.append(constant)
        return self.c(index)

    def declare_function(
        self,
        name: str,
        kind: FunctionKind = FunctionKind.PACKED,
        parameters: Sequence[str] = (),
        *,
        public: bool = True,
        result_names: Sequence[str] = (),
        types: SignatureTypes = UNTYPED,
    ) -> None:
        """Enters a function into the table: a kernel or native function, or any other before it is called.

        `ValueError` if it is there already as another kind.
        """
        info = FunctionInfo(kind, name, tuple(parameters), public, result_names=tuple(result_names), types=types)
        index = self._index.get(name)
        if index is None:
            self._index[name] = len(self._functions)
            self._functions.append(info)
        elif self._functions[index].kind is FunctionKind.PACKED and index not in self._bodies:
            self._functions[index] = info
        elif self._functions[index] != info:
            raise ValueError(f"function {name} is declared as {self._functions[index].kind.name.lower()} already")

    def add_native_object(self, native: NativeObject) -> None:
        """Adds machine code."""
        self._native.append(native)

    def set_metadata(self, metadata: Metadata) -> None:
        """Says how the executable is made."""
        self._metadata = metadata

    @contextmanager
    def function(
        self,
        name: str,
        num_inputs: int = 0,
        param_names: Sequence[str] | None = None,
        *,
        public: bool = True,
        frame_size: int | None = None,
        result_names: Sequence[str] = (),
        types: SignatureTypes = UNTYPED,
    ) -> Generator[None]:
        """The scope of a bytecode function; instructions emitted inside belong to it.

        When it ends, the function is checked and, unless `frame_size` says that the registers are final, its registers
        are numbered anew in the order of their use. `ValueError` if the function is defined already, a register is
        read that no instruction before writes, a jump leaves the function, or its end can be reached.
        """
        if self._scope is not None:
            raise ValueError(f"function {name} begins inside function {self._scope.name}")
        parameters = tuple(param_names or (f"arg{index}" for index in range(num_inputs)))
        if len(parameters) != num_inputs:
            raise ValueError(f"function {name}: {len(parameters)} names for {num_inputs} inputs")
        index = self._function(name)
        if index in self._bodies or self._functions[index].kind not in (FunctionKind.PACKED, FunctionKind.BYTECODE):
            raise ValueError(f"function {name} is defined already")
        scope = self._scope = FunctionScope(name, num_inputs)
        try:
            yield
        finally:
            self._scope = None
        size = scope.finish(frame_size)
        self._bodies[index] = scope
        self._functions[index] = FunctionInfo(
            FunctionKind.BYTECODE,
            name,
            parameters,
            public,
            frame_size=size,
            result_names=tuple(result_names),
            types=types,
        )

    def emit_call(
        self, name: str, args: Sequence[Argument] = (), dst: Operand | None = None, location: str = ""
    ) -> None:
        """`call`: a packed function, builtin, kernel or function of this executable.

        `location` says in errors and profiles what the call was made from.
        """
        operands = tuple(self._operand(argument) for argument in args)
        destination = VOID if dst is None else dst
        if destination.kind is not OperandKind.REGISTER or destination == STATE:
            raise ValueError(f"call {name}: the destination expected a register")
        self._emit(Call(destination.value, self._function(name), operands), location)

    def emit_ret(self, value: Argument = None) -> None:
        """`ret`: leaves the function with a value, or with null."""
        self._emit(Ret(self._operand(value)))

    def emit_goto(self, offset: int) -> None:
        """`goto`: jumps by `offset` instructions, counted from this one."""
        self._emit(Goto(offset))

    def emit_if(self, condition: Argument, false_offset: int) -> None:
        """`if`: goes on with the next instruction if the condition holds, else jumps by `false_offset`."""
        self._emit(If(self._operand(condition), false_offset))

    def get(self) -> Executable:
        """The executable; `ValueError` if a function is called wrongly, or declared as bytecode and not defined."""
        functions = list(self._functions)
        code: list[Instruction] = []
        locations: dict[int, str] = {}
        for index, info in enumerate(functions):
            body = self._bodies.get(index)
            if body is None:
                if info.kind is FunctionKind.BYTECODE:
                    raise ValueError(f"function {info.name} is declared and not defined")
                continue
            locations |= {len(code) + position: text for position, text in body.locations.items()}
            start = len(code)
            code += body.instructions
            functions[index] = replace(info, start=start, end=len(code))
        return Executable(
            tuple(functions), tuple(self._constants), tuple(code), tuple(self._native), self._metadata, locations
        )

    def _emit(self, instruction: Instruction, location: str = "") -> None:
        if self._scope is None:
            raise ValueError("instructions are emitted inside `with builder.function(...)`")
        self._scope.emit(instruction, location)

    def _function(self, name: str) -> int:
        if name not in self._index:
            self.declare_function(name)
        return self._index[name]

    def _operand(self, argument: Argument) -> Operand:
        if argument is None:
            return VOID
        if isinstance(argument, Operand):
            return argument
        if isinstance(argument, int) and not isinstance(argument, bool) and IMMEDIATE_MIN <= argument <= IMMEDIATE_MAX:
            return self.imm(argument)
        return self.convert_constant(argument)


def tensor_constant(dtype: str, shape: Sequence[int], data: str) -> tvm_ffi.Tensor:
    """The tensor with these elements, bytes in base64; `ValueError` if they do not fit the shape."""
    element = element_type(dtype)
    memory = np.frombuffer(bytearray(base64.b64decode(data)), exchange_dtype(element))
    return tensor_on(memory.view(np.uint8), shape, element)


def dtype_constant(name: str) -> ElementType:
    """The element type of this name as a constant."""
    return element_type(name)
