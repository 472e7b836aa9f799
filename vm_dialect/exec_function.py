"""The body of one function in `ExecBuilder`: its instructions, the checks at its end, and its registers' numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
    Ret,
    operands,
)


class FunctionScope:
    """Instructions of a function that is being emitted."""

    def __init__(self, name: str, inputs: int):
        self.name = name
        self.inputs = inputs
        self.instructions: list[Instruction] = []
        self.locations: dict[int, str] = {}
        """What instructions were made from, by their place in the function."""

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
        self._check_jumps()
        self._check_reads()
        if frame_size is not None:
            return frame_size
        numbers = {register: register for register in range(self.inputs)}
        for instruction in self.instructions:
            for register in (*_reads(instruction), *_writes(instruction)):
                numbers.setdefault(register, len(numbers))
        self.instructions = [_renumbered(instruction, numbers) for instruction in self.instructions]
        return len(numbers)

    def _check_jumps(self) -> None:
        if not self.instructions:
            raise ValueError(f"function {self.name} is empty")
        for index in range(len(self.instructions)):
            for target in self._successors(index):
                if not 0 <= target < len(self.instructions):
                    problem = "the end can be reached" if target == len(self.instructions) else "jump out of it"
                    raise ValueError(f"function {self.name}, instruction {index}: {problem}")

    def _check_reads(self) -> None:
        """Every register that is read has been written on every path, by the entry or an instruction."""
        # Sets of registers are bit masks.
        written = {0: (1 << self.inputs) - 1}
        pending = [0]
        while pending:
            index = pending.pop()
            after = written[index]
            for register in _writes(self.instructions[index]):
                after |= 1 << register
            for target in self._successors(index):
                known = written.get(target)
                both = after if known is None else known & after
                if both != known:
                    written[target] = both
                    pending.append(target)
        for index, registers in sorted(written.items()):
            for register in _reads(self.instructions[index]):
                if not registers >> register & 1:
                    raise ValueError(
                        f"function {self.name}, instruction {index}: register %{register} is read before it is written"
                    )

    def _successors(self, index: int) -> Sequence[int]:
        match self.instructions[index]:
            case Ret():
                return ()
            case Goto(offset):
                return (index + offset,)
            case If(_, false_offset):
                return (index + 1, index + false_offset)
            case Call():
                return (index + 1,)


def _is_register(operand: Operand) -> bool:
    return operand.kind is OperandKind.REGISTER and operand not in (VOID, STATE)


def _reads(instruction: Instruction) -> list[int]:
    return [operand.value for operand in operands(instruction) if _is_register(operand)]


def _writes(instruction: Instruction) -> tuple[int, ...]:
    if isinstance(instruction, Call) and instruction.destination != VOID_REGISTER:
        return (instruction.destination,)
    return ()


def _renumbered(instruction: Instruction, numbers: dict[int, int]) -> Instruction:
    def operand(old: Operand) -> Operand:
        return Operand(old.kind, numbers[old.value]) if _is_register(old) else old

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
