"""Checks on a whole executable: every index, register, jump, number of arguments, and kind of value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vm_dialect.executable.constants import Constant
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
