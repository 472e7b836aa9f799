"""Bytecode made ready for running: names resolved, constants beside the registers, jumps absolute, tail calls found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import tvm_ffi

from vm_dialect import messages
from vm_dialect.dtypes import ElementType
from vm_dialect.executable import Executable, FunctionInfo, FunctionKind
from vm_dialect.executable.model import (
    BUILTIN_PREFIX,
    STATE,
    VOID,
    VOID_REGISTER,
    Call,
    Goto,
    If,
    Operand,
    OperandKind,
    Ret,
)
from vm_dialect.messages import render

_LONGEST_TAIL = 1024
"""Instructions between a tail call and the return that are looked at: as many as there are registers to be released."""

Slots: TypeAlias = tuple[int, ...]
"""Positions in a frame: the registers come first, then the constants that the function names."""


@dataclass(frozen=True, slots=True)
class Site:
    """An instruction, as observers and errors name it."""

    caller: str
    index: int
    """Position of the instruction in the executable."""
    callee: str
    """The function that it calls; empty for a branch."""
    location: str
    """What the instruction was made from; empty if unknown."""


@dataclass(slots=True)
class CallStep:
    """Calls a function that is not bytecode."""

    function: Callable[..., Any]
    destination: int
    arguments: Slots
    site: Site


@dataclass(slots=True)
class EnterStep:
    """Calls a bytecode function; in a tail call its result is that of the caller."""

    code: Code
    destination: int
    arguments: Slots
    site: Site
    tail: bool


@dataclass(slots=True)
class InvokeStep:
    """Calls the function value that is the first argument."""

    destination: int
    arguments: Slots
    site: Site
    tail: bool


@dataclass(slots=True)
class ReturnStep:
    """Leaves the function."""

    value: int


@dataclass(slots=True)
class JumpStep:
    """Goes on at another step."""

    target: int


@dataclass(slots=True)
class BranchStep:
    """Goes on with the next step if the condition holds, else at another one."""

    condition: int
    target: int
    site: Site


Step: TypeAlias = CallStep | EnterStep | InvokeStep | ReturnStep | JumpStep | BranchStep


@dataclass(slots=True, eq=False)
class Code:
    """One bytecode function, ready to be run; step `i` is instruction `info.start + i`."""

    info: FunctionInfo
    steps: list[Step] = field(default_factory=list[Step])
    template: list[Any] = field(default_factory=list[Any])
    """What a new frame holds: null in every register, then constants."""
    function_values: list[tuple[int, Callable[[], tvm_ffi.Function]]] = field(
        default_factory=list[tuple[int, Callable[[], tvm_ffi.Function]]]
    )
    """Slots that a new frame fills with a function value of its own, so that no program holds itself."""

    def check_arity(self, count: int, captured: int = 0) -> None:
        """`TypeError` for a wrong number of arguments; of the parameters, a closure has given the first `captured`."""
        left = self.info.parameters[captured:]
        if count != len(left):
            raise TypeError(render(messages.wrong_arity(self.info.name, left), count))

    def new_frame(self, arguments: Sequence[Any]) -> list[Any]:
        """A frame with the arguments in the first registers."""
        frame = self.template.copy()
        frame[: len(arguments)] = arguments
        for slot, make in self.function_values:
            frame[slot] = make()
        return frame


class Resolver:
    """What the machine knows about the functions of an executable."""

    def __init__(
        self,
        state: object,
        callables: Mapping[int, Callable[..., Any]],
        checked: Mapping[int, Callable[..., Any]],
        closure_of: Callable[[Code], tvm_ffi.Function],
        make_closure: Callable[..., Any],
    ):
        self.state = state
        """What the state operand stands for."""
        self.callables = callables
        """Every function that is not bytecode, by its position in the function table."""
        self.checked = checked
        """The builtins among them, for arguments that may be of a wrong kind."""
        self.closure_of = closure_of
        """Makes a function value of bytecode."""
        self.make_closure = make_closure
        """Replaces the builtin of that name."""


def prepare(executable: Executable, resolver: Resolver) -> dict[int, Code]:
    """All bytecode functions, ready to be run, by their position in the function table."""
    codes = {index: Code(info) for index, info in enumerate(executable.functions) if info.kind is FunctionKind.BYTECODE}
    for code in codes.values():
        _Preparation(executable, resolver, codes, code).run()
    return codes


class _Preparation:
    """Makes the steps and the frame of one function."""

    def __init__(self, executable: Executable, resolver: Resolver, codes: Mapping[int, Code], code: Code):
        self.executable = executable
        self.resolver = resolver
        self.codes = codes
        self.code = code
        self.slots: dict[Operand, int] = {}
        # The last register takes results that nobody wants.
        self.sink = code.info.frame_size
        code.template.extend([None] * (self.sink + 1))

    def run(self) -> None:
        """Fills in the code."""
        info = self.code.info
        self.code.steps.extend(self._step(index) for index in range(info.start, info.end))

    def _step(self, index: int) -> Step:
        start = self.code.info.start
        match self.executable.code[index]:
            case Call() as call:
                callee = self.executable.functions[call.function]
                destination = self.sink if call.destination == VOID_REGISTER else call.destination
                arguments = tuple(self._slot(argument) for argument in call.arguments)
                site = self._site(index, callee.name)
                if callee.kind is FunctionKind.BYTECODE:
                    return EnterStep(
                        self.codes[call.function], destination, arguments, site, self._is_tail(index, call)
                    )
                if callee.name == f"{BUILTIN_PREFIX}invoke_closure":
                    return InvokeStep(destination, arguments, site, self._is_tail(index, call))
                if callee.name == f"{BUILTIN_PREFIX}make_closure":
                    return CallStep(self.resolver.make_closure, destination, arguments, site)
                functions = self.resolver.checked if index in self.executable.unproved else self.resolver.callables
                return CallStep(functions[call.function], destination, arguments, site)
            case Ret(value):
                return ReturnStep(self._slot(value))
            case Goto(offset):
                return JumpStep(index - start + offset)
            case If(condition, false_offset):
                return BranchStep(self._slot(condition), index - start + false_offset, self._site(index, ""))

    def _site(self, index: int, callee: str) -> Site:
        return Site(self.code.info.name, index, callee, self.executable.locations.get(index, ""))

    def _slot(self, operand: Operand) -> int:
        """The index of an operand in the frame; constants get one position each."""
        if operand.kind is OperandKind.REGISTER and operand not in (VOID, STATE):
            return operand.value
        if operand not in self.slots:
            self.slots[operand] = len(self.code.template)
            self.code.template.append(self._constant(operand))
        return self.slots[operand]

    def _constant(self, operand: Operand) -> Any:
        if operand == VOID:
            return None
        if operand == STATE:
            return self.resolver.state
        if operand.kind is OperandKind.IMMEDIATE:
            return operand.value
        if operand.kind is OperandKind.FUNCTION:
            index = operand.value
            if index not in self.codes:
                return tvm_ffi.convert(self.resolver.checked.get(index) or self.resolver.callables[index])
            code, closure_of = self.codes[index], self.resolver.closure_of
            self.code.function_values.append((len(self.code.template), lambda: closure_of(code)))
            return None
        value = self.executable.constants[operand.value].value
        return tvm_ffi.dtype(value.ffi_name) if isinstance(value, ElementType) else value

    def _is_tail(self, index: int, call: Call) -> bool:
        """Whether nothing happens to the result but moves from register to register and the return."""
        info, current = self.code.info, call.destination
        # A path that is longer is no tail, or the time would be quadratic for a file that is made for that.
        for _ in range(_LONGEST_TAIL):
            index += 1
            if index >= info.end:
                return False
            match self.executable.code[index]:
                case Ret(value):
                    return value == Operand(OperandKind.REGISTER, current)
                case Goto(offset):
                    index += offset - 1
                case Call(destination, function, arguments):
                    name = self.executable.functions[function].name
                    if name == f"{BUILTIN_PREFIX}copy" and arguments[0] == Operand(OperandKind.REGISTER, current):
                        current = destination
                    elif name != f"{BUILTIN_PREFIX}kill" or destination == current:
                        return False
                case If():
                    return False
        return False
