"""The dominator tree of the blocks being emitted, and the loops around the current one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects import llvm
from xdsl.ir import Block, BlockArgument, OpResult, SSAValue

_SPLAT = (llvm.InsertElementOp, llvm.ShuffleVectorOp)


@dataclass
class Loop:
    """A loop that is being emitted."""

    front: Block
    """The preheader, which ends in the branch to the first iteration."""

    head: Block
    """The header, the first block of an iteration."""
    is_innermost: bool = True
    read: list[SSAValue] = field(default_factory=list[SSAValue])
    """The values that each iteration loads from the same address."""
    writes_one_address: bool = False
    """Whether each iteration stores to the same address."""


class BlockTree:
    """The dominators of the blocks that have been started.

    A block is started after all branches to it but those that close a loop, whose sources it dominates itself.
    """

    def __init__(self, entry: Block) -> None:
        self._numbers = {id(entry): 0}
        """The number of each block in the order of starts, in which dominators come first. Blocks stay, so that their
        identities do, which are quicker than their hashes."""
        self._above = [0]
        """The number of the nearest dominator, by the number of a block."""
        self._sources: dict[int, list[int]] = {}
        """The numbers of the blocks that branch to one, by its identity."""
        self.loops: list[Loop] = []
        """Those around the block at hand, the outermost first."""

    def branch(self, source: Block, target: Block) -> None:
        """Records an edge."""
        self._sources.setdefault(id(target), []).append(self._numbers[id(source)])

    def start(self, block: Block) -> None:
        """Appends a block."""
        above, *others = self._sources.get(id(block)) or [0]
        for other in others:
            above = self._common(above, other)
        self._numbers[id(block)] = len(self._above)
        self._above.append(above)

    def _common(self, a: int, b: int) -> int:
        while a != b:
            if a > b:
                a = self._above[a]
            else:
                b = self._above[b]
        return a

    def dominates(self, block: Block, other: Block) -> bool:
        """Whether a block dominates another one."""
        number, at = self._numbers[id(block)], self._numbers[id(other)]
        while at > number:
            at = self._above[at]
        return at == number

    def number_of(self, value: SSAValue) -> int:
        """How late a value is there: the number of its block. Constants are in the entry block."""
        block = value.op.parent if type(value) is OpResult else cast("BlockArgument", value).block
        return 0 if block is None else self._numbers[id(block)]

    @staticmethod
    def block_of(value: SSAValue) -> Block | None:
        """The block that a value is known from; None for what is in no block yet."""
        return value.op.parent if type(value) is OpResult else cast("BlockArgument", value).block

    def home(self, number: int, block: Block, levels: int | None = None) -> Block:
        """The block in which to compute, for `block`, a value known from the block of that number on.

        It is outside of the loops in which the value is invariant, or of the innermost `levels` of them.
        """
        current = self._numbers[id(block)]
        for loop in self.loops if levels is None else self.loops[-levels:]:
            if number <= self._numbers[id(loop.front)] < current:
                return loop.front
        return block

    @contextmanager
    def loop(self, front: Block, head: Block) -> Generator[Loop]:
        """What is started meanwhile belongs to a loop."""
        if self.loops:
            self.loops[-1].is_innermost = False
        self.loops.append(Loop(front, head))
        yield self.loops[-1]
        self.loops.pop()

    def repeats_work(self, loop: Loop) -> bool:
        """Whether iterations store to one address, or recompute the same values from loads that a store may change."""
        return loop.is_innermost and (loop.writes_one_address or self._computes_the_same(loop))

    def _computes_the_same(self, loop: Loop) -> bool:
        same = set(loop.read)
        pending = list(loop.read)
        while pending:
            for use in pending.pop().uses:
                op = use.operation
                if all(value in same or not self.changes(loop, value) for value in op.operands) and op.results:
                    if type(op) not in _SPLAT:
                        return True
                    same.add(op.results[0])
                    pending.append(op.results[0])
        return False

    def changes(self, loop: Loop, value: SSAValue) -> bool:
        """Whether a value varies in the current loop."""
        return self.number_of(value) > self._numbers[id(loop.front)]
