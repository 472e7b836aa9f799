"""What is known about registers at each instruction: that they have been written, and which kinds of values
they hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from vm_dialect import messages
from vm_dialect.executable.constants import Constant, ConstantKind
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
from vm_dialect.executable.model import BUILTIN_PREFIX, FunctionInfo
from vm_dialect.kinds import ANY, BITS
from vm_dialect.messages import render

if TYPE_CHECKING:
    from vm_dialect.builtins import Builtin

_MOST_BITS = 1 << 31
"""Of the sets of registers that are kept while a function is verified."""

_MOST_ROUNDS = 100
"""How often the blocks of a function are looked at: once more than its loops are nested, in any real program."""

_CONSTANT_MASKS = {
    ConstantKind.TENSOR: BITS["tensor"],
    ConstantKind.SHAPE: BITS["shape"],
    ConstantKind.STRING: BITS["string"],
    ConstantKind.INT: BITS["int"],
    ConstantKind.FLOAT: BITS["float"],
    ConstantKind.DTYPE: BITS["dtype"],
    ConstantKind.BOOL: BITS["bool"],
}


def is_register(operand: Operand) -> bool:
    """Whether an operand reads a register."""
    return operand.kind is OperandKind.REGISTER and operand not in (VOID, STATE)


def reads(instruction: Instruction) -> list[int]:
    """The registers that an instruction reads."""
    return [operand.value for operand in operands(instruction) if is_register(operand)]


def writes(instruction: Instruction) -> tuple[int, ...]:
    """The registers that an instruction writes."""
    if isinstance(instruction, Call) and instruction.destination != VOID_REGISTER:
        return (instruction.destination,)
    return ()


def successors(instruction: Instruction, index: int) -> tuple[int, ...]:
    """Where a program may go on after instruction `index`."""
    match instruction:
        case Ret():
            return ()
        case Goto(offset):
            return (index + offset,)
        case If(_, false_offset):
            return (index + 1, index + false_offset)
        case Call():
            return (index + 1,)


def blocks_of(code: Sequence[Instruction]) -> list[range]:
    """The instructions of a function, whose jumps stay inside, in pieces that are entered at their beginning only."""
    starts = {0}
    for index, instruction in enumerate(code):
        if not isinstance(instruction, Call):
            starts.update((index + 1, *successors(instruction, index)))
    bounds = sorted(start for start in starts if start < len(code))
    return [range(start, end) for start, end in zip(bounds, [*bounds[1:], len(code)], strict=True)]


def check_written(code: Sequence[Instruction], inputs: int) -> list[range]:
    """The blocks of a function that can be reached. `ValueError` with the instruction for a register that is read
    before it is written on some path: by the entry, which writes the first `inputs`, or by an instruction.
    """
    blocks = blocks_of(code)
    written = _written_before(code, blocks, inputs)
    for block in blocks:
        before, here = written.get(block.start, -1), set[int]()
        for index in block:
            for register in reads(code[index]):
                if register not in here and not before >> register & 1:
                    raise ValueError(f"instruction {index}: register %{register} is read before it is written")
            here.update(writes(code[index]))
    return [block for block in blocks if block.start in written]


def _written_before(code: Sequence[Instruction], blocks: Sequence[range], inputs: int) -> dict[int, int]:
    """The registers, as bit masks, that are written on every path to a block, by its start; without those that are
    not reached.
    """
    ends = {block.start: block[-1] for block in blocks}
    added: dict[int, int] = {}
    for block in blocks:
        mask = 0
        for index in block:
            for register in writes(code[index]):
                mask |= 1 << register
        added[block.start] = mask
    bits = max([inputs, *(mask.bit_length() for mask in added.values())])
    if bits * len(blocks) > _MOST_BITS:
        raise ValueError(f"a function of {len(blocks)} blocks and {bits} registers is too large to be verified")
    written = {0: (1 << inputs) - 1}
    visits, pending = 0, [0]
    while pending:
        visits += 1
        if visits > _MOST_ROUNDS * len(blocks):
            raise ValueError("the jumps are too intertwined to be verified")
        start = heappop(pending)  # in the order of the text, in which most programs are looked at once or twice
        after = written[start] | added[start]
        for target in successors(code[ends[start]], ends[start]):
            known = written.get(target)
            both = after if known is None else known & after
            if both != known:
                written[target] = both
                heappush(pending, target)
    return written


class Kinds:
    """Which kinds of values the operands of one function hold.

    Registers are followed inside blocks; at the start of a block a register may hold whatever any instruction writes.
    """

    def __init__(self, function: FunctionInfo, functions: Sequence[FunctionInfo], constants: Sequence[Constant]):
        self._functions = functions
        self._constants = constants
        self._anywhere = dict.fromkeys(range(len(function.parameters)), ANY)
        self._here: dict[int, int] = {}

    def unproved(self, code: Sequence[Instruction], blocks: Sequence[range]) -> Iterator[int]:
        """The calls of builtins that may be given a value of a wrong kind, which only a run shows.

        `ValueError` with the instruction if a value is of a wrong kind for certain.
        """
        for _ in self._walk(code, blocks):
            pass
        for index in self._walk(code, blocks):
            instruction = code[index]
            if isinstance(instruction, Call):
                if not self._is_proved(instruction, index):
                    yield index
            elif isinstance(instruction, If) and not self._mask(instruction.condition) & (BITS["int"] | BITS["bool"]):
                got = _name(self._mask(instruction.condition))
                raise ValueError(f"instruction {index}: {render(messages.wrong_kind('if', 'bool'), name=got)}")

    def _walk(self, code: Sequence[Instruction], blocks: Sequence[range]) -> Iterator[int]:
        """Every instruction, while what is known is what holds before it."""
        for block in blocks:
            self._here = {}
            for index in block:
                yield index
                instruction = code[index]
                if isinstance(instruction, Call) and (register := instruction.destination) != VOID_REGISTER:
                    mask = self._here[register] = self._result(instruction)
                    self._anywhere[register] = self._anywhere.get(register, 0) | mask

    def _is_proved(self, call: Call, index: int) -> bool:
        callee = self._functions[call.function]
        if not callee.is_builtin:
            return True
        builtin = _builtin(callee)
        proved = True
        for position, argument in enumerate(call.arguments):
            mask, accepted = self._mask(argument), builtin.signature.accepted(position).mask
            if not mask & accepted:
                raise ValueError(f"instruction {index}: {render(builtin.wrong_kind(position), name=_name(mask))}")
            proved = proved and not mask & ~accepted
        return proved

    def _result(self, call: Call) -> int:
        callee = self._functions[call.function]
        if not callee.is_builtin:
            return ANY
        builtin = _builtin(callee)
        if builtin.name == "copy":
            argument = call.arguments[0]
            return self._here.get(argument.value, ANY) if is_register(argument) else self._mask(argument)
        return builtin.signature.result

    def _mask(self, operand: Operand) -> int:
        if operand == VOID:
            return BITS["null"]
        if operand == STATE:
            return BITS["object"]
        match operand.kind:
            case OperandKind.REGISTER:
                return self._here.get(operand.value) or self._anywhere.get(operand.value, ANY)
            case OperandKind.IMMEDIATE:
                return BITS["int"]
            case OperandKind.FUNCTION:
                return BITS["function"]
            case OperandKind.CONSTANT:
                return _CONSTANT_MASKS[self._constants[operand.value].kind]


def _builtin(callee: FunctionInfo) -> Builtin:
    from vm_dialect.builtins import BUILTINS

    return BUILTINS[callee.name.removeprefix(BUILTIN_PREFIX)]


def _name(mask: int) -> str:
    return " or ".join(name for name, bit in BITS.items() if mask & bit)
