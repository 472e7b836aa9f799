"""Handles of loops and blocks, which stay valid while other parts of the function change, and sampled numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, cast

from xdsl.ir import Operation

from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.loops import ForOp


class Loop:
    """The handle of a loop; primitives that replace the loop return new handles."""

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
    """The handle of a block, returned by `get_block` or by a primitive that makes one."""

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
    """The identity of a sampled number in a trace, where equal numbers are distinct."""


class Drawn(int):
    """A sampled number: calls that use it follow when the trace is replayed with another decision."""

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


def handles_in(values: Iterable[Any]) -> list[Loop | Block]:
    """The handles among values and in lists and tuples of them, in order."""
    found: list[Loop | Block] = []
    for value in values:
        if isinstance(value, Loop | Block):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += handles_in(cast("Iterable[Any]", value))
    return found
