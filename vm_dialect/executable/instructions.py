"""The four instructions and their encoding in 64-bit words.

An operand is one word: its kind in bits 63 to 56, its value, signed, in the 56 bits below. An instruction is a word
with the opcode, then its fields: `call dst func n arg...`, `ret value`, `goto offset`, `if condition false_offset`.
Offsets
count instructions from the jump itself. This is the encoding of TVM's virtual machine
(`include/tvm/runtime/vm/bytecode.h`), except that `ret` and `if` take any operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, NamedTuple, TypeAlias

VALUE_BITS = 56
_VALUE_MASK = (1 << VALUE_BITS) - 1
_SIGN = 1 << (VALUE_BITS - 1)
_WORD_MASK = (1 << 64) - 1

IMMEDIATE_MIN = -_SIGN
"""The least integer that fits into an operand."""
IMMEDIATE_MAX = _SIGN - 1
"""The greatest integer that fits into an operand."""

VOID_REGISTER = 1 << 54
"""As an argument: null. As a destination: the result is dropped."""
STATE_REGISTER = VOID_REGISTER + 1
"""As an argument: the virtual machine itself."""


class OperandKind(IntEnum):
    """What an operand's value means."""

    REGISTER = 0
    IMMEDIATE = 1
    CONSTANT = 2
    FUNCTION = 3


class Operand(NamedTuple):
    """One operand of an instruction."""

    kind: OperandKind
    value: int
    """A register's number, an integer, or an index into the constants or functions of the executable."""

    def encode(self) -> int:
        """The operand as an unsigned word."""
        return (self.kind << VALUE_BITS) | (self.value & _VALUE_MASK)

    @staticmethod
    def decode(word: int) -> Operand:
        """The operand in an unsigned word; `ValueError` if its kind is unknown."""
        kind = word >> VALUE_BITS
        if kind > OperandKind.FUNCTION:
            raise ValueError(f"unknown operand kind {kind}")
        value = word & _VALUE_MASK
        return Operand(OperandKind(kind), value - (1 << VALUE_BITS) if value & _SIGN else value)


VOID = Operand(OperandKind.REGISTER, VOID_REGISTER)
STATE = Operand(OperandKind.REGISTER, STATE_REGISTER)


@dataclass(frozen=True)
class Call:
    """Calls a function and puts its result into a register."""

    OPCODE: ClassVar[int] = 1

    destination: int
    """A register, or `VOID_REGISTER`."""
    function: int
    """Index into the functions of the executable."""
    arguments: tuple[Operand, ...]


@dataclass(frozen=True)
class Ret:
    """Leaves the function with a value."""

    OPCODE: ClassVar[int] = 2

    value: Operand


@dataclass(frozen=True)
class Goto:
    """Jumps."""

    OPCODE: ClassVar[int] = 3

    offset: int


@dataclass(frozen=True)
class If:
    """Goes on with the next instruction if the condition holds, else jumps."""

    OPCODE: ClassVar[int] = 4

    condition: Operand
    false_offset: int


Instruction: TypeAlias = Call | Ret | Goto | If


def operands(instruction: Instruction) -> tuple[Operand, ...]:
    """The operands that an instruction reads."""
    match instruction:
        case Call(arguments=arguments):
            return arguments
        case Ret(value=value):
            return (value,)
        case If(condition=condition):
            return (condition,)
        case Goto():
            return ()


def encode(instruction: Instruction) -> list[int]:
    """The words of an instruction, unsigned."""
    match instruction:
        case Call(destination, function, arguments):
            words = [destination, function, len(arguments), *(argument.encode() for argument in arguments)]
        case Ret(value):
            words = [value.encode()]
        case Goto(offset):
            words = [offset & _WORD_MASK]
        case If(condition, false_offset):
            words = [condition.encode(), false_offset & _WORD_MASK]
    return [instruction.OPCODE, *words]


def decode(words: Sequence[int], start: int) -> tuple[Instruction, int]:
    """The instruction whose first word is `words[start]`, and the index of the word after it.

    `ValueError` if the opcode or an operand is unknown or the words end too early.
    """
    opcode = words[start]
    length = {Call.OPCODE: 4, Ret.OPCODE: 2, Goto.OPCODE: 2, If.OPCODE: 3}.get(opcode)
    if length is None:
        raise ValueError(f"unknown opcode {opcode}")
    if start + length <= len(words) and opcode == Call.OPCODE:
        length += words[start + 3]
    if start + length > len(words):
        raise ValueError("the code ends in the middle of an instruction")
    fields = words[start + 1 : start + length]
    if opcode == Call.OPCODE:
        arguments = tuple(Operand.decode(word) for word in fields[3:])
        return Call(fields[0], fields[1], arguments), start + length
    if opcode == Ret.OPCODE:
        return Ret(Operand.decode(fields[0])), start + length
    if opcode == Goto.OPCODE:
        return Goto(_signed(fields[0])), start + length
    return If(Operand.decode(fields[0]), _signed(fields[1])), start + length


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
