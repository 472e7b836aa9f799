"""What an executable holds, and checks on the whole of it: every index, register, jump and number, and what is
known about registers at each instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeVar

from vm_dialect import messages
from vm_dialect.builtins.table import ANY, BITS
from vm_dialect.executable.model import (
    BUILTIN_PREFIX,
    OF_TVM,
    STATE,
    VOID,
    VOID_REGISTER,
    Call,
    Constant,
    ConstantKind,
    FunctionInfo,
    FunctionKind,
    Goto,
    If,
    Instruction,
    Metadata,
    NativeObject,
    Operand,
    OperandKind,
    Ret,
    operands,
    same_constant,
)
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
            from vm_dialect.builtins import BUILTINS

            name = function.name.removeprefix(BUILTIN_PREFIX)
            if function.kind is not FunctionKind.PACKED or name not in BUILTINS:
                raise ValueError(f"'{function.name}' is not a function of the run-time library")
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
