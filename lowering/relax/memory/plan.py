"""The memory planner: intervals of program order and sizes in, offsets in one arena out.

Plain data, no IR. Sizes are dimensions in bytes, so they may be symbolic; they are ordered by the prover. Buffers of
constant size are packed by offsets (largest first, lowest gap that is free during the interval, the "greedy by size"
strategy of Pisarchyk and Lee, 2020). Buffers of symbolic size share *slots*: a slot is as large as its largest user,
`max(a, b)` where the prover cannot order two sizes. Slots follow the packed part, so every offset is a sum of
dimensions. A size whose symbols have upper bounds is planned at its greatest value, as a constant.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from xdsl.ir import Operation, Region, SSAValue

from relax_dialect.analysis.aliases import views
from relax_dialect.ops.memory import KillOp
from relax_dialect.traits import Loop
from tir_dialect.dims import Dim, Prover, ceildiv, constant, maximum


@dataclass
class Lifetimes:
    """Facts about the values of one function."""

    steps: dict[Operation, int] = field(default_factory=dict[Operation, int])
    """The number of every op in program order."""
    ends: dict[Operation, int] = field(default_factory=dict[Operation, int])
    """The number of the last op inside an op, its own if it has no regions."""

    def last_use(self, value: SSAValue) -> int:
        """The step of the last op that reads or writes the memory of `value`, through any alias."""
        owner = value.owner
        last = self.steps[owner] if isinstance(owner, Operation) else 0
        for alias in views(value):
            for use in alias.uses:
                if not isinstance(use.operation, KillOp):
                    last = max(last, self._end_of_use(use.operation, value))
        return last

    def _end_of_use(self, user: Operation, value: SSAValue) -> int:
        """The step at which the use by `user` is over: after the outermost loop that does not contain the value."""
        end = self.steps[user]
        home = value.owner.parent_op()
        parent = user.parent_op()
        while parent is not None and parent is not home:
            if parent.has_trait(Loop):
                end = self.ends[parent]
            parent = parent.parent_op()
        return end


def lifetimes(body: Region) -> Lifetimes:
    """Numbers all ops of a function body."""
    facts = Lifetimes()
    step = 0

    def number(region: Region) -> None:
        nonlocal step
        for block in region.blocks:
            for op in block.ops:
                step += 1
                facts.steps[op] = step
                for inner in op.regions:
                    number(inner)
                facts.ends[op] = step

    number(body)
    return facts


BOUND_LIMIT = 1 << 28
"""Bytes; a size whose upper bound is greater is planned as if it had none."""

ALIGNMENT = 64
"""Bytes; offsets and sizes in an arena are multiples of it: a cache line, and the widest vector load."""


@dataclass(frozen=True)
class Buffer:
    """A tensor that needs memory from the step `start` to the step `end`, both included."""

    size: Dim
    """Bytes."""
    start: int
    end: int

    def overlaps(self, other: Buffer) -> bool:
        """Whether both are alive at some step."""
        return self.start <= other.end and other.start <= self.end


@dataclass(frozen=True)
class Plan:
    """Offsets into one arena, in the order of the buffers given."""

    offsets: tuple[Dim, ...]
    total: Dim
    """Bytes of the arena."""
    naive: Dim
    """Bytes if no two buffers shared memory."""


@dataclass
class _Slot:
    size: Dim
    users: list[int] = field(default_factory=list[int])

    def make_room(self, size: Dim, prover: Prover) -> None:
        """Lets the slot be as large as that, or larger."""
        if prover.less_equal(size, self.size) is not True:
            larger = prover.less_equal(self.size, size) is True
            self.size = size if larger else maximum(self.size, size)


def aligned(size: Dim) -> Dim:
    """`size` rounded up to a multiple of `ALIGNMENT`."""
    return ALIGNMENT * ceildiv(size, ALIGNMENT)


def bounded(size: Dim, prover: Prover) -> Dim:
    """The greatest value of a size where the bounds of its symbols give one, else the size itself."""
    greatest = size.constant_value if size.is_constant else prover.range(size)[1]
    return size if greatest is None or greatest > BOUND_LIMIT else constant(max(greatest, 0))


def plan(buffers: Sequence[Buffer], prover: Prover) -> Plan:
    """Offsets such that buffers alive at the same step never overlap, for every value of the symbols."""
    sizes = [aligned(buffer.size) for buffer in buffers]
    offsets: dict[int, Dim] = {}
    # Place the buffers of constant size; returns the bytes used.
    constants = {i: value for i, size in enumerate(sizes) if (value := size.constant_value) is not None}
    placed: list[tuple[int, int, Buffer]] = []  # begin, end, buffer; by begin
    for i in sorted(constants, key=lambda i: (-constants[i], buffers[i].start)):
        offset = 0
        for begin, end, other in placed:
            if not other.overlaps(buffers[i]):
                continue
            if offset + constants[i] <= begin:
                break
            offset = max(offset, end)
        insort(placed, (offset, offset + constants[i], buffers[i]), key=lambda block: block[0])
        offsets[i] = constant(offset)
    total = constant(max((end for _, end, _ in placed), default=0))
    # Give every buffer of symbolic size a slot whose other users are dead while it lives.
    slots: list[_Slot] = []
    free: list[int] = []  # in the order in which they were made
    busy: list[tuple[int, int]] = []  # a heap of the last step of a slot's user, and the slot
    for i in sorted((i for i, size in enumerate(sizes) if not size.is_constant), key=lambda i: buffers[i].start):
        while busy and busy[0][0] < buffers[i].start:
            insort(free, heappop(busy)[1])
        number = _best_slot(slots, free, sizes[i], prover)
        if number is None:
            number = len(slots)
            slots.append(_Slot(sizes[i]))
        else:
            free.remove(number)
            slots[number].make_room(sizes[i], prover)
        slots[number].users.append(i)
        heappush(busy, (buffers[i].end, number))
    for slot in slots:
        for user in slot.users:
            offsets[user] = total
        total = total + slot.size
    naive = sum(sizes, constant(0))
    return Plan(tuple(offsets[i] for i in range(len(buffers))), total, naive)


def _best_slot(slots: Sequence[_Slot], free: Sequence[int], size: Dim, prover: Prover) -> int | None:
    """The slot of equal size, else the first that is large enough, else the first that has to grow."""
    equal = next((number for number in free if slots[number].size is size), None)
    if equal is not None:
        return equal

    def rank(number: int) -> int:
        if prover.less_equal(size, slots[number].size) is True:
            return 1
        return 2 if prover.less_equal(slots[number].size, size) is True else 3

    return min(free, key=rank, default=None)
