"""Decides, before any code is emitted, which values of a function are objects and which of them it owns; and how native
code represents values.

An interval says between which numbers the result of `vm.int` lies: sums and products of most sizes need no check for
64 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

from xdsl.ir import Block, Operation, SSAValue

from lowering.diagnostics import Finding, refuse
from vm_dialect.integers import GREATEST, LEAST, saturated
from vm_dialect.messages import MOST_BYTES
from vm_dialect.ops.base import ConstantOp
from vm_dialect.ops.calls import CallKernelOp
from vm_dialect.ops.checks import CheckApartOp, CheckOp
from vm_dialect.ops.memory import AllocTensorOp, KillOp, ReadCondOp, ViewOp
from vm_dialect.ops.shapes import ShapeOfOp, TensorDimOp
from vm_dialect.ops.structure import FuncOp, GotoOp, IfOp
from vm_dialect.ops.values import IntKind
from vm_dialect.types import F64, I1, I64, StorageType

_LOCAL_USERS = (CallKernelOp, CheckApartOp, TensorDimOp, ShapeOfOp, ReadCondOp, KillOp)
"""Ops that look at a tensor and keep nothing of it."""


@dataclass
class FunctionPlan:
    """Facts about one function."""

    order: list[Block]
    """The reachable blocks, dominators first."""

    cyclic: set[Block]
    """Blocks that may run more than once in a call."""

    borrowed: set[SSAValue] = field(default_factory=set[SSAValue])
    """Objects that somebody else holds for the whole call: parameters, constants, and what checks make of them."""

    unboxed: set[SSAValue] = field(default_factory=set[SSAValue])
    """Tensors that are a data pointer and sizes, never an object."""

    kept: list[SSAValue] = field(default_factory=list[SSAValue])
    """Objects that the frame holds: each needs a slot."""

    pinned: set[SSAValue] = field(default_factory=set[SSAValue])
    """Objects on whose memory an unboxed view stands: they live until the function ends."""


def plan_function(func: FuncOp) -> FunctionPlan:
    """Plans one function.

    Raises `InvalidModule` with every op that lets a tensor out of its storage, or a storage out of its function.
    """
    # Every block that the entry reaches, each after its dominators.
    entry = func.body.blocks[0]
    seen, finished = {entry}, list[Block]()
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, successors = stack[-1]
        following = next((successor for successor in successors if successor not in seen), None)
        if following is None:
            finished.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(_successors(following))))
    order = finished[::-1]
    plan = FunctionPlan(order, _cyclic_blocks(order))
    # Tensors in storages and all views of them.
    in_storage: set[SSAValue] = set()
    for block in order:
        for op in block.ops:
            if isinstance(op, AllocTensorOp) or (isinstance(op, ViewOp) and op.tensor in in_storage):
                in_storage.add(op.results[0])
    refuse(_escapes(order, in_storage))
    plan.unboxed |= in_storage
    _plan_views(plan)
    found: set[SSAValue] = set(order[0].args)
    for block in order:
        for op in block.ops:
            if isinstance(op, ConstantOp) or (isinstance(op, CheckOp) and op.value in found):
                found.update(op.results)
    plan.borrowed |= found
    plan.kept += _kept_objects(plan)
    return plan


def is_number(value: SSAValue) -> bool:
    """Whether a value is kept in a register."""
    return value.type in (I64, I1, F64)


def branch_edges(op: Operation | None) -> Iterator[tuple[Block, Sequence[SSAValue]]]:
    """The blocks that a terminator goes to, with what their arguments receive."""
    if isinstance(op, GotoOp):
        yield op.target, op.arguments
    elif isinstance(op, IfOp):
        yield op.then_block, op.then_arguments
        yield op.else_block, op.else_arguments


def _successors(block: Block) -> list[Block]:
    return [target for target, _ in branch_edges(block.last_op)]


def _cyclic_blocks(order: Sequence[Block]) -> set[Block]:
    """For each edge that goes back in `order`, the blocks between its ends; on an irreducible graph perhaps more."""
    position = {block: index for index, block in enumerate(order)}
    predecessors: dict[Block, list[Block]] = {block: [] for block in order}
    for block in order:
        for target in _successors(block):
            predecessors[target].append(block)
    cyclic: set[Block] = set()
    for latch in order:
        for header in _successors(latch):
            if position[header] <= position[latch]:
                # The blocks from which `latch` is reached without passing `header`.
                found, pending = {header, latch}, [latch]
                while pending:
                    block = pending.pop()
                    new = (
                        [source for source in predecessors[block] if source not in found] if block is not header else []
                    )
                    found.update(new)
                    pending += new
                cyclic |= found
    return cyclic


def _escapes(order: Iterable[Block], in_storage: set[SSAValue]) -> Iterator[Finding]:
    """Uses that would let a tensor live longer than its storage, and storages that come from elsewhere."""
    for block in order:
        if any(isinstance(argument.type, StorageType) for argument in block.args) and (func := block.parent_op()):
            hint = "make the storage with 'vm.alloc_storage' where tensors are placed in it"
            yield Finding.at(func, "has a storage among its block arguments, which native code cannot pass on", hint)
        for op in block.ops:
            if isinstance(op, (*_LOCAL_USERS, ViewOp)):
                continue
            for index, operand in enumerate(op.operands):
                if operand in in_storage:
                    yield Finding.at(
                        op,
                        f"operand #{index} is a tensor in a storage, which native code cannot let out of its call",
                        "make the tensor with 'vm.new_tensor', which may leave the call",
                    )


def _plan_views(plan: FunctionPlan) -> None:
    """A view that nobody keeps needs no object; views of views are decided first."""

    def is_local(op: Operation) -> bool:
        return isinstance(op, _LOCAL_USERS) or (isinstance(op, ViewOp) and op.result in plan.unboxed)

    for block in reversed(plan.order):
        for op in reversed(list(block.ops)):
            if not isinstance(op, ViewOp) or op.result in plan.unboxed:
                continue
            if all(is_local(use.operation) for use in op.result.uses):
                plan.unboxed.add(op.result)
                plan.pinned.add(op.tensor)


def _kept_objects(plan: FunctionPlan) -> Iterator[SSAValue]:
    elsewhere = plan.borrowed | plan.unboxed
    for block in plan.order:
        for value in (*block.args, *(result for op in block.ops for result in op.results)):
            if value not in elsewhere and not is_number(value) and not isinstance(value.type, StorageType):
                yield value


@dataclass(frozen=True)
class Interval:
    """All numbers from `least` to `most`."""

    least: int
    most: int

    @property
    def fits(self) -> bool:
        """Whether 64 bits hold all of them."""
        return self.least >= LEAST and self.most <= GREATEST

    @property
    def held(self) -> Interval:
        """The same, of numbers that end at what 64 bits hold."""
        return self if self.fits else Interval(saturated(self.least), saturated(self.most))


ANY_INTEGER = Interval(LEAST, GREATEST)
SIZE_OF_TENSOR = Interval(0, MOST_BYTES)
"""An axis of a tensor, which has been checked or made: other axes of length 0 count as 1."""


def result_interval(kind: IntKind, lhs: Interval, rhs: Interval) -> Interval:
    """Of the exact result, which 64 bits may not hold."""
    match kind:
        case IntKind.ADD | IntKind.ADD_SAT:
            return Interval(lhs.least + rhs.least, lhs.most + rhs.most)
        case IntKind.SUB:
            return Interval(lhs.least - rhs.most, lhs.most - rhs.least)
        case IntKind.MUL | IntKind.MUL_SAT:
            corners = [a * b for a, b in product((lhs.least, lhs.most), (rhs.least, rhs.most))]
            return Interval(min(corners), max(corners))
        case IntKind.MIN:
            return Interval(min(lhs.least, rhs.least), min(lhs.most, rhs.most))
        case IntKind.MAX:
            return Interval(max(lhs.least, rhs.least), max(lhs.most, rhs.most))
        case IntKind.BROADCAST:
            return Interval(min(lhs.least, rhs.least), max(lhs.most, rhs.most))
        case IntKind.FLOORDIV if rhs.least > 0:
            corners = [a // b for a, b in product((lhs.least, lhs.most), (rhs.least, rhs.most))]
            return Interval(min(corners), max(corners))
        case IntKind.MOD if rhs.least > 0:
            return Interval(0, rhs.most - 1)
        case _:
            return ANY_INTEGER


@dataclass(frozen=True)
class Number:
    """An `i64`, `i1` or `f64` in a register."""

    ssa: SSAValue

    interval: Interval = ANY_INTEGER
    """Where an `i64` lies."""


@dataclass(frozen=True)
class Boxed:
    """A tvm-ffi value in memory."""

    address: SSAValue
    """Of the `TVMFFIAny` that holds it: a slot of the frame, an argument or a constant."""

    owned: bool
    """Whether it is a slot of the frame, which a kill empties."""

    tensor: SSAValue | None = None
    """Address of its `DLTensor`; None if it is not known to be a tensor."""

    data: SSAValue | None = None
    """Address of its first element, if it is a tensor."""


@dataclass(frozen=True)
class Unboxed:
    """A tensor that never was an object: one in an arena, or a view that does not leave its function."""

    data: SSAValue
    """Address of the first element."""

    sizes: tuple[SSAValue, ...]


@dataclass(frozen=True)
class Storage:
    """An arena."""

    block: SSAValue
    """Its address."""

    size: SSAValue
    """Its bytes."""


Value: TypeAlias = Number | Boxed | Unboxed | Storage
