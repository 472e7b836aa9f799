import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vm_dialect.registers import (
    NO_REGISTER,
    Block,
    Edge,
    Instruction,
    allocate_registers,
    edge_moves,
    has_cycle,
    live_intervals,
    liveness,
    parallel_moves,
)


@given(
    st.lists(st.integers(0, 7), max_size=8, unique=True).flatmap(
        lambda destinations: st.tuples(
            st.just(destinations),
            st.lists(st.integers(0, 7), min_size=len(destinations), max_size=len(destinations)),
        )
    )
)
def test_moves_in_order_do_what_moves_at_once_do(case: tuple[list[int], list[int]]):
    destinations, sources = case
    moves = list(zip(destinations, sources, strict=True))
    before = list(range(100, 109))
    expected = before.copy()
    for destination, source in moves:
        expected[destination] = before[source]
    registers = before.copy()
    for destination, source in parallel_moves(moves, 8):
        registers[destination] = registers[source]
    assert registers[:8] == expected[:8]
    assert len(parallel_moves(moves, 8)) <= len(moves) + len(moves) // 2


def test_only_circles_need_the_scratch_register():
    assert not has_cycle([(1, 0), (2, 1), (3, 1), (4, 4)])
    assert has_cycle([(0, 1), (1, 0)])
    assert parallel_moves([(0, 1), (1, 0)], 9) == [(9, 0), (0, 1), (1, 9)]


def test_liveness_goes_round_loops():
    # 0: parameter, used in the loop; 1: counter; 2: next counter
    blocks = [
        Block((0,), (Instruction(()),), (Edge(1, (None,)),)),
        Block((1,), (Instruction((1,), (2,)), Instruction((0,))), (Edge(1, (2,)), Edge(2))),
        Block((), (Instruction((2,)),)),
    ]
    live_in, live_out = liveness(blocks)
    assert live_in == [set(), {0}, {2}]
    assert live_out == [{0}, {0, 2}, set()]
    assert live_intervals(blocks)[0] == (0, 5)


def test_parameters_keep_their_registers_and_unused_results_have_none():
    blocks = [Block((0, 1, 2), (Instruction((1,), (3,)), Instruction((1,), (4,)), Instruction((4,))))]
    allocation = allocate_registers(blocks, 5)
    assert allocation.registers[:3] == (0, 1, 2)
    assert allocation.registers[3] == NO_REGISTER
    assert allocation.frame_size == 3


def test_a_long_chain_needs_two_registers():
    count = 5000
    instructions = tuple(Instruction((value,), (value + 1,)) for value in range(count))
    allocation = allocate_registers([Block((0,), (*instructions, Instruction((count,))))], count + 1)
    assert allocation.frame_size == 1


def random_program(seed: int) -> tuple[list[Block], int]:
    """A function in SSA form: every use is dominated by its definition, because blocks form a chain with jumps back."""
    source = random.Random(seed)
    values = 0

    def new(count: int) -> tuple[int, ...]:
        nonlocal values
        values += count
        return tuple(range(values - count, values))

    count = source.randint(1, 6)
    arguments = [new(source.randint(0, 3)) for _ in range(count)]
    visible: list[int] = []
    blocks: list[Block] = []
    available: list[list[int]] = []
    for index in range(count):
        visible += arguments[index]
        instructions: list[Instruction] = []
        for _ in range(source.randint(0, 6)):
            uses = tuple(source.choice(visible) for _ in range(source.randint(0, 3)) if visible)
            defined = new(source.randint(0, 1))
            instructions.append(Instruction(uses, defined))
            visible += defined
        available.append(list(visible))
        blocks.append(Block(arguments[index], (*instructions, Instruction(()))))
    return [_with_edges(source, blocks, index, available[index]) for index in range(count)], values


def _with_edges(source: random.Random, blocks: Sequence[Block], index: int, visible: Sequence[int]) -> Block:
    def edge(target: int) -> Edge:
        arguments = blocks[target].arguments
        return Edge(target, tuple(source.choice([*visible, None]) for _ in arguments))

    targets = [index + 1] if index + 1 < len(blocks) else []
    if index and source.random() < 0.7:
        targets.append(source.randint(1, index))
    block = blocks[index]
    return Block(block.arguments, block.instructions, tuple(edge(target) for target in targets))


@given(st.integers(0, 10_000))
def test_registers_hold_the_values_that_are_read(seed: int):
    blocks, values = random_program(seed)
    allocation = allocate_registers(blocks, values)
    source = random.Random(seed)
    # Every definition makes a new token; what registers hold must be what the values hold, wherever they are read.
    tokens = iter(range(10**9))
    held: dict[int, int] = {value: next(tokens) for value in blocks[0].arguments}
    frame = [-1] * allocation.frame_size
    for register, value in enumerate(blocks[0].arguments):
        frame[register] = held[value]
    current = 0
    for _ in range(30):
        block = blocks[current]
        for instruction in block.instructions:
            for value in instruction.uses:
                assert frame[allocation.registers[value]] == held[value]
            for value in instruction.definitions:
                held[value] = next(tokens)
                if allocation.registers[value] != NO_REGISTER:
                    frame[allocation.registers[value]] = held[value]
        if not block.edges:
            return
        edge = source.choice(block.edges)
        current = edge.target
        arguments = blocks[current].arguments
        passed = [next(tokens) if value is None else held[value] for value in edge.values]
        for destination, register in parallel_moves(
            edge_moves(edge, arguments, allocation.registers), allocation.frame_size - 1
        ):
            frame[destination] = frame[register]
        for argument, value, token in zip(arguments, edge.values, passed, strict=True):
            if value is None and allocation.registers[argument] != NO_REGISTER:
                frame[allocation.registers[argument]] = token
        held.update(zip(arguments, passed, strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_values_that_are_live_at_once_have_different_registers(seed: int):
    blocks, values = random_program(seed)
    registers = allocate_registers(blocks, values).registers
    intervals = live_intervals(blocks)
    for one, (first, last) in intervals.items():
        for other, (begin, end) in intervals.items():
            if one < other and first <= end and begin <= last:
                assert registers[one] != registers[other]
