"""Handles of loops and blocks, which stay valid while other parts of the function change; and the error of
primitives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self, TypeAlias, cast

from xdsl.ir import Operation

from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp


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


Handle: TypeAlias = Loop | Block

ROOT = "root"
"""TVM's name of the block around a function, for which the function itself stands here."""


class HandleTable:
    """The handles that a schedule has given out, at most one for an op, and those of schedules that it is a copy of."""

    def __init__(self):
        self._by_op: dict[Operation, Handle] = {}
        self._roots: dict[Handle, PrimFuncOp] = {}
        self._copies: dict[Handle, Handle] = {}
        self._removed: set[Handle] = set()

    def loop(self, op: ForOp) -> Loop:
        """The handle of a loop."""
        return cast("Loop", self._by_op.setdefault(op, Loop(op)))

    def block(self, op: BlockOp) -> Block:
        """The handle of a block."""
        return cast("Block", self._by_op.setdefault(op, Block(op)))

    def root(self, func: PrimFuncOp) -> Block:
        """The handle of a function as TVM's root block; its op is a dummy in no function."""
        found = next((handle for handle, root in self._roots.items() if root is func), None)
        if found is None:
            self._roots[found := Block(BlockOp(ROOT))] = func
        return cast("Block", found)

    def function_of(self, handle: Handle) -> PrimFuncOp | None:
        """The function that a handle stands for as the root block; `None` for any other handle."""
        return self._roots.get(handle)

    def is_root(self, value: object) -> bool:
        """Whether a value is the handle of a function."""
        return isinstance(value, Block) and value in self._roots

    def redirect(self, block: Block, op: BlockOp) -> None:
        """Makes a handle stand for another block."""
        del self._by_op[block.op]
        block.op = op
        self._by_op[op] = block

    def remove(self, handle: Handle) -> None:
        """Invalidates a handle; its loop or block gets a new one when it is asked for."""
        self._removed.add(handle)
        if self._by_op.get(handle.op) is handle:
            del self._by_op[handle.op]

    def is_removed(self, handle: Handle) -> bool:
        """Whether a handle has been invalidated."""
        return handle in self._removed

    def own(self, handle: Handle) -> Handle:
        """What a handle of the schedule that this one was copied from stands for here; any other as it is."""
        return self._copies.get(handle, handle)

    @property
    def copies(self) -> Mapping[Handle, Handle]:
        """The handles of the schedules that this one is a copy of, each with the handle here."""
        return self._copies

    def copy(self, ops: Mapping[Operation, Operation]) -> Self:
        """A table for copies of the functions, which knows the handles of this one; `ops` has each op with its copy."""
        other = type(self)()
        for op, handle in self._by_op.items():
            if op in ops:
                other._copies[handle] = other._by_op[ops[op]] = type(handle)(cast("Any", ops[op]))
        for handle, func in self._roots.items():
            other._copies[handle] = other.root(cast("PrimFuncOp", ops[func]))
        for handle, own in self._copies.items():
            other._copies[handle] = other._copies.get(own, own)
        return other


class ScheduleError(ValueError):
    """A primitive is not applicable; the message says what it expected and what it got. The function is unchanged."""

    def __init__(self, primitive: str, message: str):
        super().__init__(f"{primitive}: {message}")
        self.primitive = primitive
