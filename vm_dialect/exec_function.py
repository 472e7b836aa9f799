"""The body of one function in `ExecBuilder`: its instructions, the checks at its end, and its registers' numbers."""

from __future__ import annotations

from dataclasses import replace

from vm_dialect.executable.flow import check_written, is_register, reads, successors, writes
from vm_dialect.executable.instructions import VOID_REGISTER, Call, Goto, If, Instruction, Operand, Ret


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
        self._check_jumps()
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

    def _check_jumps(self) -> None:
        if not self.instructions:
            raise ValueError(f"function {self.name} is empty")
        for index in range(len(self.instructions)):
            for target in successors(self.instructions[index], index):
                if not 0 <= target < len(self.instructions):
                    problem = "the end can be reached" if target == len(self.instructions) else "jump out of it"
                    raise ValueError(f"function {self.name}, instruction {index}: {problem}")


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
