"""Bounds checks hoisted into loops of their own, so that the loops of the computation stay free of assertions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.tir.access_assertions import assert_in_bounds, valid_starts
from lowering.tir.lower_blocks import lower_block
from lowering.tir.vectorized_checks import vectorize_checks
from tir_dialect.analysis.data_space import DataSpace
from tir_dialect.analysis.structure import ancestors, has_no_effects
from tir_dialect.analysis.unproven_accesses import CHECKED, UnprovenAccess
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.buffer_views import BufferViewOp
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.ops.regions import ReadsOp, WritesOp
from tir_dialect.ops.scalars import AssertOp, DimOp


def hoist_checks(func: PrimFuncOp, accesses: Sequence[UnprovenAccess], before: Operation) -> bool:
    """Checks the accesses in loops of their own before an op of the function; false, and nothing, if that is not
    possible.

    ```mlir
    tir.for (%i) in (%m) { %j = tir.load %I[%i]; %x = tir.load %A[%j]; tir.store %x, %B[%i] }
    // becomes
    tir.for (%i) in (%m) { %j = tir.load %I[%i]; %ok = arith.cmpi ult, %j, %n; tir.assert %ok, "..." }
    tir.for (%i) in (%m) { ...; %x = tir.load %A[max(min(%j, n - 1), 0)]; tir.store %x, %B[%i] }
    ```

    It is possible if the indices are computed from memory that the function does not write, and if no other op of the
    function can fail. Indices loaded from memory are clamped in addition, so that a concurrent write by someone else
    cannot lead the loops out of bounds.
    """
    top = list(func.body.block.ops)
    if any(isinstance(op, AssertOp) for op in top[top.index(before) :]) or not _may_move(func, accesses):
        return False
    for nest, group in groupby(accesses, lambda access: _child_of(func, access.op)):
        _Copy(top[top.index(before) : top.index(nest)], nest).insert(list(group), before)
    for access in accesses:
        access.op.attributes[CHECKED] = UnitAttr()
        if access.is_data:
            _clamp_index(access)
    return True


def _child_of(func: PrimFuncOp, op: Operation) -> Operation:
    """The op of the function's body that an op is in."""
    return next((each for each in (op, *ancestors(op)) if each.parent_op() is func), op)


def _may_move(func: PrimFuncOp, accesses: Sequence[UnprovenAccess]) -> bool:
    if func.may_alias is not None or not all(map(_is_simple, accesses)):
        return False
    if not all(_is_understood(op) for op in func.body.walk()):
        return False
    space = DataSpace(func)
    return all(space.never_changes(op.buffer) for op in _needed(accesses) if isinstance(op, LoadOp))


def _is_simple(access: UnprovenAccess) -> bool:
    """Whether the index is a scalar, and the access neither masked nor in an init."""
    inits = any(isinstance(each, InitOp) for each in ancestors(access.op))
    return (
        isinstance(access.op, LoadOp | StoreOp)
        and isinstance(access.reach.start.type, IndexType)
        and (access.mask is None and not inits)
    )


def _is_understood(op: Operation) -> bool:
    match op:
        case ForOp() | IfOp() | BlockOp() | InitOp() | YieldOp() | LoadOp() | StoreOp() | AllocBufferOp():
            return True
        case ReadsOp() | WritesOp():
            return True
        case AssertOp():
            return isinstance(op.parent_op(), PrimFuncOp)
        case BufferViewOp():
            return False
        case _:
            return not op.regions and has_no_effects(op)


def _needed(accesses: Iterable[UnprovenAccess]) -> set[Operation]:
    """The ops that compute the indices of the accesses, and the conditions and bounds around them."""
    found: set[Operation] = set()
    pending: list[SSAValue] = []
    for access in accesses:
        pending.append(access.reach.start)
        for each in ancestors(access.op):
            if not isinstance(each, PrimFuncOp):
                pending += each.operands
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner not in found:
            found.add(owner)
            pending += [value for op in owner.walk() for value in op.operands]
            found |= set(owner.walk())
    return found


class _Copy:
    """A copy of a loop nest, reduced to the checks."""

    def __init__(self, earlier: Sequence[Operation], nest: Operation):
        self._earlier = [op for op in earlier if not op.regions and (isinstance(op, LoadOp) or has_no_effects(op))]
        self._nest = nest

    def insert(self, accesses: Sequence[UnprovenAccess], before: Operation) -> None:
        """Inserts the copy before an op, with assertions for the accesses."""
        values: dict[SSAValue, SSAValue] = {}
        ops = [op.clone(values) for op in (*self._earlier, self._nest)]
        Rewriter.insert_op(ops, InsertPoint.before(before))
        copies = dict(zip(self._nest.walk(), ops[-1].walk(), strict=True))
        for access in accesses:
            copy = copies[access.op]
            start = values.get(access.reach.start, access.reach.start)
            assert_in_bounds(replace(access, op=copy, reach=access.reach._replace(start=start)), copy)
        inner = [op for op in ops[-1].walk() if op is not ops[-1]]
        for op in reversed([*ops, *inner]):
            _reduce(op)
        for op in (ops[-1], *inner):
            if isinstance(op, ForOp) and op.parent is not None:
                vectorize_checks(op)


def _reduce(op: Operation) -> None:
    """Erases an op that contributes to no check; ops inside it and users of its results have been visited before."""
    match op:
        case BlockOp():
            if op.init is not None:
                Rewriter.erase_op(op.init)
            if _is_empty(op.body.block):
                Rewriter.erase_op(op)
            else:
                lower_block(op)
        case StoreOp() | ReadsOp() | WritesOp():
            Rewriter.erase_op(op)
        case ForOp():
            _reduce_loop(op)
        case IfOp():
            if not _has_uses(op):
                _reduce_branch(op)
        case YieldOp():
            parent = op.parent_op()
            if parent is not None and not _has_uses(parent):
                op.operands = []  # its operands are visited next, and the branch becomes one without results
        case InitOp() | AssertOp():
            return
        case _:
            if not _has_uses(op) and not _may_fail(op):
                Rewriter.erase_op(op)


def _has_uses(op: Operation) -> bool:
    return any(result.uses for result in op.results)


def _reduce_branch(branch: IfOp) -> None:
    """Drops the unused results of a branch, and the branch itself if it is empty."""
    new = IfOp(branch.condition)
    inherit_location(branch, [new])
    for old_body, body in ((branch.then_body, new.then_body), (branch.else_body, new.else_body)):
        for op in old_body.block.ops:
            if not isinstance(op, YieldOp):
                op.detach()
                body.block.add_op(op)
    if not (_is_empty(new.then_body.block) and _is_empty(new.else_body.block)):
        Rewriter.insert_op(new, InsertPoint.before(branch))
    Rewriter.erase_op(branch)


def _may_fail(op: Operation) -> bool:
    return any(isinstance(inner, AssertOp) for inner in op.walk())


def _is_empty(block: Block) -> bool:
    return block.first_op is None


def _reduce_loop(loop: ForOp) -> None:
    """A loop that does not use its variable runs at most once."""
    if _is_empty(loop.body.block):
        Rewriter.erase_op(loop)
        return
    if loop.induction_var.uses:
        return
    zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
    lower = zero.result if loop.lower is None else loop.lower
    runs = arith.CmpiOp(lower, loop.upper, "slt")
    once = IfOp(runs)
    inherit_location(loop, [zero, runs, once])
    Rewriter.insert_op([zero, runs, once], InsertPoint.before(loop))
    Rewriter.inline_block(loop.body.block, InsertPoint.at_end(once.then_body.block), [zero.result])
    Rewriter.erase_op(loop)


def _clamp_index(access: UnprovenAccess) -> None:
    """Clamps the index of an access to its bounds."""
    index = access.reach.start
    ops = last, zero = DimOp(valid_starts(access) - 1), arith.ConstantOp(IntegerAttr(0, IndexType()))
    below = arith.MinSIOp(index, last)
    inside = arith.MaxSIOp(below, zero)
    inherit_location(access.op, (*ops, below, inside))
    Rewriter.insert_op((*ops, below, inside), InsertPoint.before(access.op))
    first = 2 if isinstance(access.op, StoreOp) else 1
    access.op.operands[first + access.axis] = inside.result
