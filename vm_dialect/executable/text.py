"""Listings of an executable for people."""

from __future__ import annotations

from collections.abc import Sequence

from vm_dialect.executable.contents import ExecutableContents
from vm_dialect.executable.model import (
    STATE,
    VOID,
    VOID_REGISTER,
    Call,
    FunctionInfo,
    FunctionKind,
    Goto,
    If,
    Instruction,
    Operand,
    OperandKind,
    Ret,
    constant_text,
)

_PREFIXES = {OperandKind.REGISTER: "%", OperandKind.IMMEDIATE: "i"}


def as_text(executable: ExecutableContents) -> str:
    """The listing that `Executable.as_text` returns."""
    names = [function.name for function in executable.functions]
    lines: list[str] = []
    for function in executable.functions:
        if function.kind is FunctionKind.BYTECODE:
            lines += [_header(function), *_body(executable, function, names), ""]
        elif function.kind is FunctionKind.NATIVE:
            lines += [f"{_header(function)} native", ""]
    if executable.constants:
        lines.append("constants:")
        lines += [f"  c[{index}]  {constant_text(constant)}" for index, constant in enumerate(executable.constants)]
    return "\n".join(lines).rstrip() + "\n"


def _header(function: FunctionInfo) -> str:
    private = "" if function.public else "private "
    registers = f"  # {function.frame_size} registers" if function.kind is FunctionKind.BYTECODE else ""
    return f"{private}@{function.name}({', '.join(function.parameters)}):{registers}"


def _body(executable: ExecutableContents, function: FunctionInfo, names: Sequence[str]) -> list[str]:
    """One line for each instruction, in columns; numbers are those that errors and jumps use."""
    rows = [instruction_columns(index, executable.code[index], names) for index in range(function.start, function.end)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines: list[str] = []
    for index, row in zip(range(function.start, function.end), rows, strict=True):
        line = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=False))
        location = executable.locations.get(index)
        comment = f"  # {location}" if location else ""
        lines.append(f"  {index:4}  {line}  {row[3]}{comment}".rstrip())
    return lines


def instruction_columns(index: int, instruction: Instruction, names: Sequence[str]) -> tuple[str, str, str, str]:
    """Opcode, callee or jump, arguments and destination of one instruction, as text."""
    match instruction:
        case Call(destination, function, arguments):
            target = "void" if destination == VOID_REGISTER else f"%{destination}"
            shown = ", ".join(operand_text(argument, names) for argument in arguments)
            return ("call", names[function], f"in: {shown}", f"dst: {target}")
        case Ret(value):
            return ("ret", operand_text(value, names), "", "")
        case Goto(offset):
            return ("goto", f"{index + offset}", "", "")
        case If(condition, false_offset):
            return ("if", operand_text(condition, names), f"else {index + false_offset}", "")


def operand_text(operand: Operand, names: Sequence[str]) -> str:
    """`%2`, `i10`, `c[0]`, `f[name]`, `void` or `vm`."""
    if operand == VOID:
        return "void"
    if operand == STATE:
        return "vm"
    if operand.kind is OperandKind.FUNCTION:
        return f"f[{names[operand.value]}]"
    if operand.kind is OperandKind.CONSTANT:
        return f"c[{operand.value}]"
    return f"{_PREFIXES[operand.kind]}{operand.value}"


def stats(executable: ExecutableContents) -> str:
    """The summary that `Executable.stats` returns."""
    by_kind = {
        kind: [function.name for function in executable.functions if function.kind is kind] for kind in FunctionKind
    }
    constants = [constant_text(constant) for constant in executable.constants]
    builtins = [function.name for function in executable.functions if function.is_builtin]
    kernels = dict.fromkeys([*by_kind[FunctionKind.KERNEL], *(kernel.name for kernel in executable.metadata.kernels)])
    native = [f"{_machine(obj.target) or 'any'} {len(obj.code)} bytes" for obj in executable.native]
    target = f", target {_machine(executable.metadata.target)}" if executable.metadata.target else ""
    return "\n".join(
        [
            f"Relax VM executable statistics: mode {executable.metadata.mode}{target}",
            _count("Globals", [*by_kind[FunctionKind.BYTECODE], *by_kind[FunctionKind.NATIVE]]),
            _count("Packed functions", executable.packed_functions),
            _count("Builtins", builtins),
            _count("Kernels", list(kernels)),
            _count("Constants", constants),
            f"  Instructions: {len(executable.code)}",
            _count("Native objects", native),
        ]
    )


def _machine(target: str) -> str:
    """The words of a target description before its features."""
    return " ".join(target.split()[:2])


def _count(title: str, items: Sequence[str]) -> str:
    return f"  {title} (#{len(items)}): [{', '.join(items)}]"
