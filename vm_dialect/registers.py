"""Register allocation on plain data: liveness over the control flow, linear scan, and moves at block arguments; and
where the IR keeps registers.

Values are numbered from 0. The arguments of the first block are those of the function, and keep the first registers.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, i32, i64
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from vm_dialect.ops.structure import FuncOp

NO_REGISTER = -1
"""What a value gets that nobody uses."""


@dataclass(frozen=True)
class Instruction:
    """What an instruction reads, then writes."""

    uses: tuple[int, ...]
    definitions: tuple[int, ...] = ()


@dataclass(frozen=True)
class Edge:
    """A jump to a block."""

    target: int
    """Number of the block."""
    values: tuple[int | None, ...] = ()
    """What the block's arguments receive; `None` for something that has no register, such as a constant."""


@dataclass(frozen=True)
class Block:
    """Instructions, of which the last one is the terminator, and where they lead."""

    arguments: tuple[int, ...]
    instructions: tuple[Instruction, ...]
    edges: tuple[Edge, ...] = ()


@dataclass(frozen=True)
class Allocation:
    """The register of every value."""

    registers: tuple[int, ...]
    """By value; `NO_REGISTER` for values without a use."""
    frame_size: int
    """Number of registers, with a scratch register, the last one, if moves need it."""


def allocate_registers(blocks: Sequence[Block], values: int) -> Allocation:
    """Gives registers to `values` values so that two that are live at once never share one.

    A value may take the register of another whose last use is the instruction that defines it.
    """
    parameters = blocks[0].arguments
    intervals = live_intervals(blocks)
    # For each value those in whose register it would save a move: block arguments and what is passed to them.
    pairs: dict[int, list[int]] = {}
    for block in blocks:
        for edge in block.edges:
            for argument, value in zip(blocks[edge.target].arguments, edge.values, strict=True):
                if value is not None:
                    pairs.setdefault(argument, []).append(value)
                    pairs.setdefault(value, []).append(argument)
    registers = _Scan(parameters, intervals, pairs, values).run()
    count = max([len(parameters), *(register + 1 for register in registers)])
    needs_scratch = any(
        has_cycle(edge_moves(edge, blocks[edge.target].arguments, registers))
        for block in blocks
        for edge in block.edges
    )
    return Allocation(tuple(registers), count + needs_scratch)


def liveness(blocks: Sequence[Block]) -> tuple[list[set[int]], list[set[int]]]:
    """The values live at the begin and at the end of each block.

    A block's own arguments are not live at its begin; what is passed to a successor is used by the jump.
    """
    local = [_block_sets(block) for block in blocks]
    predecessors: list[list[int]] = [[] for _ in blocks]
    for index, block in enumerate(blocks):
        for edge in block.edges:
            predecessors[edge.target].append(index)
    live_in: list[set[int]] = [set(used) for used, _ in local]
    live_out: list[set[int]] = [set() for _ in blocks]
    pending = list(range(len(blocks)))
    while pending:
        index = pending.pop()
        _, defined = local[index]
        live_out[index].update(*(live_in[edge.target] for edge in blocks[index].edges))
        new = live_out[index] - defined - live_in[index]
        if new:
            live_in[index] |= new
            pending.extend(predecessors[index])
    return live_in, live_out


def live_intervals(blocks: Sequence[Block]) -> dict[int, tuple[int, int]]:
    """The first and last position where each value that is used is live, both included.

    Instruction `i`, counted through all blocks, reads at `2 * i` and writes at `2 * i + 1`; a block's arguments are
    written where its first instruction reads.
    """
    live_in, live_out = liveness(blocks)
    starts: dict[int, int] = {}
    intervals: dict[int, tuple[int, int]] = {}

    def live_at(value: int, index: int) -> None:
        first, last = intervals.get(value, (min(starts.get(value, index), index), index))
        intervals[value] = (min(first, index), max(last, index))

    index = 0
    for block, entering, leaving in zip(blocks, live_in, live_out, strict=True):
        starts.update(dict.fromkeys(block.arguments, index))
        for value in entering:
            live_at(value, index)
        for instruction in block.instructions:
            for value in instruction.uses:
                live_at(value, index)
            starts.update(dict.fromkeys(instruction.definitions, index + 1))
            index += 2
        for value in (*_passed(block), *leaving):
            live_at(value, index - 1)
    return intervals


def edge_moves(edge: Edge, arguments: Sequence[int], registers: Sequence[int]) -> list[tuple[int, int]]:
    """The moves `(destination, source)` between registers that a jump makes, those that change something."""
    return [
        (registers[argument], registers[value])
        for argument, value in zip(arguments, edge.values, strict=True)
        if value is not None and registers[argument] not in (NO_REGISTER, registers[value])
    ]


def parallel_moves(moves: Sequence[tuple[int, int]], scratch: int) -> list[tuple[int, int]]:
    """Moves `(destination, source)` to be done one after the other with the effect of doing all at once.

    Destinations differ from each other. `scratch` is a register that is used where moves go round in a circle.
    """
    sources = {destination: source for destination, source in moves if destination != source}
    readers: dict[int, int] = {}
    for source in sources.values():
        readers[source] = readers.get(source, 0) + 1
    ready = [destination for destination in sources if destination not in readers]
    ordered: list[tuple[int, int]] = []
    while sources:
        if not ready:
            # Only circles are left: free one register of one of them.
            destination = next(iter(sources))
            ordered.append((scratch, destination))
            _redirect(sources, readers, destination, scratch)
            ready.append(destination)
        destination = ready.pop()
        source = sources.pop(destination)
        ordered.append((destination, source))
        readers[source] -= 1
        if readers[source] == 0 and source in sources:
            ready.append(source)
    return ordered


def has_cycle(moves: Sequence[tuple[int, int]]) -> bool:
    """Whether `parallel_moves` needs its scratch register."""
    return any(destination == -2 for destination, _ in parallel_moves(moves, -2))


def _redirect(sources: dict[int, int], readers: dict[int, int], old: int, new: int) -> None:
    for destination, source in sources.items():
        if source == old:
            sources[destination] = new
    readers[new] = readers.pop(old)


def _passed(block: Block) -> list[int]:
    return [value for edge in block.edges for value in edge.values if value is not None]


def _block_sets(block: Block) -> tuple[set[int], set[int]]:
    """Values used before they are defined in the block, and values defined in it."""
    used, defined = set[int](), set(block.arguments)
    for instruction in (*block.instructions, Instruction(tuple(_passed(block)))):
        used.update(value for value in instruction.uses if value not in defined)
        defined.update(instruction.definitions)
    return used, defined


class _Scan:
    """The linear scan: intervals in order of their start, the lowest register that is free."""

    def __init__(
        self,
        parameters: Sequence[int],
        intervals: Mapping[int, tuple[int, int]],
        affinities: Mapping[int, list[int]],
        values: int,
    ):
        self.intervals = intervals
        self.affinities = affinities
        self.registers = [NO_REGISTER] * values
        self.active: list[tuple[int, int]] = []
        """Heap of the last position where a register is in use, and the register."""
        self.free: set[int] = set()
        self.order: list[int] = []
        """Heap of the free registers, with some that are taken meanwhile."""
        self.count = len(parameters)
        for register, parameter in enumerate(parameters):
            self.registers[parameter] = register
            heapq.heappush(self.active, (intervals.get(parameter, (0, 0))[1], register))

    def run(self) -> list[int]:
        """The register of every value."""
        for value in sorted(self.intervals, key=lambda value: (self.intervals[value][0], value)):
            if self.registers[value] == NO_REGISTER:
                first, last = self.intervals[value]
                while self.active and self.active[0][0] < first:
                    _, register = heapq.heappop(self.active)
                    self.free.add(register)
                    heapq.heappush(self.order, register)
                register = self.registers[value] = self._choose(value)
                heapq.heappush(self.active, (last, register))
        return self.registers

    def _choose(self, value: int) -> int:
        for other in self.affinities.get(value, ()):
            register = self.registers[other]
            if register in self.free:
                self.free.remove(register)
                return register
        while self.order:
            register = heapq.heappop(self.order)
            if register in self.free:
                self.free.remove(register)
                return register
        self.count += 1
        return self.count - 1


REGISTERS = "regs"
"""The registers of an op's results, `array<i32: 3>`; -1 for a result without a use."""


def set_op_registers(op: Operation, registers: Sequence[int]) -> None:
    """Writes the registers of an op's results."""
    op.attributes[REGISTERS] = DenseArrayBase.from_list(i32, registers)


def set_frame(func: FuncOp, frame_size: int, block_registers: Sequence[Sequence[int]]) -> None:
    """Writes the number of registers of a function, and the registers of each block's arguments."""
    func.frame_size = IntegerAttr(frame_size, i64)
    func.block_registers = ArrayAttr([DenseArrayBase.from_list(i32, registers) for registers in block_registers])


def frame_size(func: FuncOp) -> int | None:
    """The number of registers of a function; `None` before `allocate-registers`."""
    return None if func.frame_size is None else func.frame_size.value.data


def value_register(value: SSAValue) -> int | None:
    """The register of a value; `None` if it has none, because nobody uses it or it is a constant."""
    registers = None
    index = 0
    if isinstance(value, OpResult):
        registers, index = value.op.attributes.get(REGISTERS), value.index
    elif isinstance(value, BlockArgument):
        func = value.block.parent_op()
        if isinstance(func, FuncOp) and func.block_registers is not None:
            registers, index = func.block_registers.data[func.body.get_block_index(value.block)], value.index
    if not isinstance(registers, DenseArrayBase):
        return None
    register = int(registers.get_values()[index])
    return None if register == NO_REGISTER else register
