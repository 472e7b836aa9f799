"""What an executable holds, and checks on the whole of it: every index, register, jump, number of arguments, kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from vm_dialect.executable.constants import Constant, same_constant
from vm_dialect.executable.flow import Kinds, check_written
from vm_dialect.executable.instructions import (
    STATE,
    VOID,
    VOID_REGISTER,
    Call,
    Goto,
    If,
    Instruction,
    Operand,
    OperandKind,
    operands,
)
from vm_dialect.executable.model import BUILTIN_PREFIX, OF_TVM, FunctionInfo, FunctionKind, Metadata, NativeObject

MAX_REGISTERS = 1 << 20
"""More registers in one function are refused: a frame would be larger than any real program needs."""

_SPECIAL = (VOID, STATE)


def verify_executable(
    functions: Sequence[FunctionInfo],
    constants: Sequence[Constant],
    code: Sequence[Instruction],
    native: Sequence[NativeObject],
    metadata: Metadata,
    locations: Mapping[int, str],
) -> frozenset[int]:
    """The calls of builtins, by instruction, whose arguments may be of a wrong kind, which has to be checked at run
    time. Raises `ValueError` that names function and instruction at the first thing that is wrong.
    """
    _verify_names(functions)
    if metadata.mode not in ("bytecode", "native"):
        raise ValueError(f"mode expected bytecode or native, got '{metadata.mode}'")
    for index in locations:
        if not 0 <= index < len(code):
            raise ValueError(f"location of instruction {index}, but there are {len(code)} instructions")
    _verify_ranges(functions, len(code))
    unproved: set[int] = set()
    for function in functions:
        if function.kind is FunctionKind.BYTECODE:
            _verify_bytecode(function, functions, constants, code)
            unproved.update(_verify_flow(function, functions, constants, code))
    return frozenset(unproved)


def _verify_names(functions: Sequence[FunctionInfo]) -> None:
    seen = set[str]()
    for function in functions:
        if not function.name:
            raise ValueError("a function has no name")
        if function.name in seen:
            raise ValueError(f"two functions are called '{function.name}'")
        seen.add(function.name)
        if len(function.types.parameters) not in (0, len(function.parameters)):
            types, names = len(function.types.parameters), len(function.parameters)
            raise ValueError(f"function {function.name}: {types} types for {names} parameters")
        if function.name.startswith(BUILTIN_PREFIX) and function.name not in OF_TVM:
            _verify_builtin(function)


def _verify_builtin(function: FunctionInfo) -> None:
    from vm_dialect.builtins import BUILTINS

    name = function.name.removeprefix(BUILTIN_PREFIX)
    if function.kind is not FunctionKind.PACKED or name not in BUILTINS:
        raise ValueError(f"'{function.name}' is not a function of the run-time library")


def _verify_ranges(functions: Sequence[FunctionInfo], size: int) -> None:
    """The functions' instructions follow each other without gap."""
    position = 0
    for function in functions:
        if function.kind is not FunctionKind.BYTECODE:
            continue
        where = f"function {function.name}"
        if function.start != position or not function.start < function.end <= size:
            raise ValueError(
                f"{where}: instructions {function.start} to {function.end} do not follow on {position} within {size}"
            )
        if not len(function.parameters) <= function.frame_size <= MAX_REGISTERS:
            raise ValueError(f"{where}: {len(function.parameters)} parameters in {function.frame_size} registers")
        position = function.end
    if position != size:
        raise ValueError(f"instructions {position} to {size} belong to no function")


def _verify_bytecode(
    function: FunctionInfo,
    functions: Sequence[FunctionInfo],
    constants: Sequence[Constant],
    code: Sequence[Instruction],
) -> None:
    for index in range(function.start, function.end):
        instruction = code[index]
        try:
            for operand in operands(instruction):
                _verify_operand(operand, function, len(constants), len(functions))
            match instruction:
                case Call():
                    _verify_call(instruction, function, functions)
                case Goto(offset=offset) | If(false_offset=offset):
                    if not function.start <= index + offset < function.end:
                        raise ValueError(f"jump by {offset} leaves the function")
                case _:
                    pass
        except ValueError as error:
            raise ValueError(f"function {function.name}, instruction {index}: {error}") from None
    if isinstance(code[function.end - 1], Call | If):
        raise ValueError(f"function {function.name}: the last instruction expected ret or goto")


def _verify_flow(
    function: FunctionInfo,
    functions: Sequence[FunctionInfo],
    constants: Sequence[Constant],
    code: Sequence[Instruction],
) -> Sequence[int]:
    """The calls of a function whose arguments may be of a wrong kind."""
    own = code[function.start : function.end]
    try:
        blocks = check_written(own, len(function.parameters))
        unproved = list(Kinds(function, functions, constants).unproved(own, blocks))
    except ValueError as error:
        raise ValueError(f"function {function.name}, {error}") from None
    return [function.start + index for index in unproved]


def _verify_operand(operand: Operand, function: FunctionInfo, constants: int, functions: int) -> None:
    limit = {
        OperandKind.REGISTER: function.frame_size,
        OperandKind.CONSTANT: constants,
        OperandKind.FUNCTION: functions,
    }.get(operand.kind)
    if limit is not None and not 0 <= operand.value < limit and operand not in _SPECIAL:
        raise ValueError(f"{operand.kind.name.lower()} {operand.value} is out of range, there are {limit}")


def _verify_call(call: Call, function: FunctionInfo, functions: Sequence[FunctionInfo]) -> None:
    if call.destination != VOID_REGISTER and not 0 <= call.destination < function.frame_size:
        raise ValueError(f"destination {call.destination} is out of range, there are {function.frame_size} registers")
    if not 0 <= call.function < len(functions):
        raise ValueError(f"function {call.function} is out of range, there are {len(functions)}")
    callee, count = functions[call.function], len(call.arguments)
    if callee.kind in (FunctionKind.BYTECODE, FunctionKind.NATIVE) and count != len(callee.parameters):
        raise ValueError(f"call of {callee.name} expected {len(callee.parameters)} arguments, got {count}")
    if callee.is_builtin:
        from vm_dialect.builtins import BUILTINS

        BUILTINS[callee.name.removeprefix(BUILTIN_PREFIX)].check_count(count)


@dataclass(frozen=True, eq=False, repr=False)
class ExecutableContents:
    """Functions, constants, bytecode and native objects, checked when they are put together: `ValueError` names what is
    wrong.
    """

    functions: tuple[FunctionInfo, ...]
    constants: tuple[Constant, ...] = ()
    code: tuple[Instruction, ...] = ()
    """The instructions of all bytecode functions, in the order of the function table."""
    native: tuple[NativeObject, ...] = ()
    """Several objects of one target are linked with each other."""
    metadata: Metadata = field(default_factory=Metadata)
    locations: Mapping[int, str] = field(default_factory=dict[int, str])
    """Where an instruction comes from, by its index: the name of an imported node, or a position in a file."""
    is_foreign: bool = False
    """Whether it was read from a file for which nobody vouches. Such a program is data: it has no machine code, and
    the virtual machine lets it call its own functions, and those that the host allows it, only."""

    unproved: frozenset[int] = field(default=frozenset(), init=False, repr=False)
    """The calls of builtins, by instruction, whose arguments are checked for their kinds when they run."""

    def __post_init__(self) -> None:
        parts = (self.functions, self.constants, self.code, self.native, self.metadata, self.locations)
        object.__setattr__(self, "unproved", verify_executable(*parts))

    @cached_property
    def function_index(self) -> Mapping[str, int]:
        """Position of each function in the function table, by name."""
        return {function.name: index for index, function in enumerate(self.functions)}

    def has_function(self, name: str) -> bool:
        """Whether a function of this name can be called from outside."""
        index = self.function_index.get(name)
        return index is not None and _is_entry(self.functions[index])

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the functions that can be called from outside."""
        return tuple(function.name for function in self.functions if _is_entry(function))

    @property
    def packed_functions(self) -> tuple[str, ...]:
        """Names of the functions that are looked up in the tvm-ffi registry."""
        return tuple(f.name for f in self.functions if f.kind is FunctionKind.PACKED and not f.is_builtin)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same; constants are compared by their contents."""
        if not isinstance(other, ExecutableContents):
            return NotImplemented
        plain = ("functions", "code", "native", "metadata")
        return (
            all(getattr(self, name) == getattr(other, name) for name in plain)
            and dict(self.locations) == dict(other.locations)
            and len(self.constants) == len(other.constants)
            and all(map(same_constant, self.constants, other.constants))
        )

    def __hash__(self) -> int:
        """Equal for equal executables."""
        return hash((self.functions, self.metadata.mode, len(self.code)))

    def __repr__(self) -> str:
        """Mode, signatures and sizes, on one line."""
        functions = [self.functions[self.function_index[name]] for name in self.entries]
        listed = ", ".join(f"{function.name}{function.signature}" for function in functions[:_MOST_LISTED])
        more = f", and {len(functions) - _MOST_LISTED} more" if len(functions) > _MOST_LISTED else ""
        size = sum(len(native.code) for native in self.native)
        return (
            f"<Executable {listed or 'without functions'}{more}; {self.metadata.mode}, {_amount(size)} of machine code>"
        )


_MOST_LISTED = 4
"""Functions that `repr` lists."""


def _amount(size: int) -> str:
    return f"{size} bytes" if size < 10_000 else f"{size / 1000:.0f} KB"


def _is_entry(function: FunctionInfo) -> bool:
    return function.public and function.kind in (FunctionKind.BYTECODE, FunctionKind.NATIVE)


ContentsT = TypeVar("ContentsT", bound=ExecutableContents)
