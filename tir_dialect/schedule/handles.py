"""What a schedule hands out: names for loops and blocks that stay valid while other parts of the function change."""

from __future__ import annotations

from typing import Self

from xdsl.ir import Operation

from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.loops import ForOp


class Loop:
    """A loop of the scheduled function; primitives that replace it return the handles of what it became."""

    __slots__ = ("op",)

    def __init__(self, op: ForOp):
        self.op = op

    @property
    def name(self) -> str:
        """The name of the induction variable."""
        return self.op.induction_var.name_hint or "loop"

    def __repr__(self) -> str:
        return f"Loop({self.name})"


class Block:
    """A block of the scheduled function, found by `get_block` or made by a primitive."""

    __slots__ = ("op",)

    def __init__(self, op: BlockOp):
        self.op = op

    @property
    def name(self) -> str:
        """The name of the block."""
        return self.op.block_name.data

    def __repr__(self) -> str:
        return f"Block({self.name})"


class Origin:
    """Where a number was drawn: what a trace knows it by, since numbers that are equal are not the same."""


class Drawn(int):
    """A number that a schedule drew: calls that it is passed to follow when the trace is replayed with another one."""

    origin: Origin

    def __new__(cls, value: int) -> Self:
        """A number of its own."""
        number = super().__new__(cls, value)
        number.origin = Origin()
        return number


def is_inside(op: Operation, ancestor: Operation) -> bool:
    """Whether `op` is `ancestor` or stands somewhere in its regions."""
    current: Operation | None = op
    while current is not None and current is not ancestor:
        current = current.parent_op()
    return current is ancestor
