"""Checks at run time that accesses are in bounds: right before the access, or in loops before all others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    UnitAttr,
    VectorType,
    i1,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.tir.lower_blocks import LowerBlock
from lowering.tir.vectorize import vectorize_checks
from tir_dialect.analysis.accesses import CHECKED, UnprovenAccess
from tir_dialect.analysis.index_space import DataSpace
from tir_dialect.analysis.structure import ancestors, has_no_effects
from tir_dialect.dims import Dim, maximum
from tir_dialect.ops.arithmetic import AssertOp, DimOp, RampOp
from tir_dialect.ops.blocks import BlockOp, BufferViewOp, InitOp, ReadsOp, WritesOp
from tir_dialect.ops.control_flow import ForOp, IfOp, YieldOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp, lanes_of, vector_of
from tir_dialect.ops.vectors import CompareOp, FirstLaneOp, SelectOp

_ULT = 6
"""The number of the predicate `ult` of `arith.cmpi`."""


def valid_starts(access: UnprovenAccess) -> Dim:
    """The number of valid values of an index: an access at the last one still ends inside the buffer."""
    width, end = access.reach.width, access.reach.end
    return end if width.constant_value == 1 else maximum(end - width + 1, 0)


def assert_in_bounds(access: UnprovenAccess, before: Operation) -> None:
    """Asserts before an op that an access is in bounds, unless the same index has been asserted already."""
    if access.mask is None and _is_asserted(access, before):
        return
    ops: list[Operation] = []
    inside = _Tests(ops).of(access)
    what = "is data" if access.is_data else "may be outside"
    function, bound = next(each for each in ancestors(before) if isinstance(each, PrimFuncOp)), _bound(access)
    # In symbols that the caller knows.
    limit = str(bound) if bound.symbols.issubset(function.symbol_names) else "its extent"
    message = f"{access.subject} {what}, expected at least 0 and less than {limit}"
    ops.append(AssertOp(inside, message, "IndexError"))
    inherit_location(before, ops)
    Rewriter.insert_op(ops, InsertPoint.before(before))


def _is_asserted(access: UnprovenAccess, before: Operation) -> bool:
    """Whether an assertion before an op compares the index with the same bound."""

    def is_same(op: Operation) -> bool:
        if not isinstance(op, arith.CmpiOp) or op.predicate.value.data != _ULT:
            return False
        if access.reach.limit is not None:
            return op.rhs is access.reach.limit
        return isinstance(op.rhs.owner, DimOp) and op.rhs.owner.dim is _bound(access)

    compared = [use.operation for use in access.reach.start.uses if is_same(use.operation)]
    asserted = [use.operation for op in compared for use in op.results[0].uses]
    return any(
        isinstance(op, AssertOp) and op.parent is before.parent and op.is_before_in_block(before) for op in asserted
    )


def _bound(access: UnprovenAccess) -> Dim:
    return access.reach.end if access.mask is not None else valid_starts(access)


class _Tests:
    """Emits the ops that test whether accesses are in bounds; masked-off lanes count as in bounds."""

    def __init__(self, ops: list[Operation]):
        self._ops = ops

    def of(self, access: UnprovenAccess) -> SSAValue:
        """Whether an access is in bounds, as an `i1`."""
        start, width = access.reach.start, access.reach.width
        lanes = lanes_of(start.type)
        in_order = access.mask is not None and width.constant_value != 1
        if in_order and access.mask is not None:
            lanes = lanes_of(access.mask.type)
            one = self._add(arith.ConstantOp(IntegerAttr(1, IndexType())))
            start = self._add(RampOp(start, one, lanes or 1))
        limit = access.reach.limit
        count = self._add(DimOp(_bound(access))) if limit is None else limit
        if lanes is not None:
            ends = self._add(vector.BroadcastOp(count, vector_of(count.type, lanes)))
            outside = self._add(CompareOp("uge", start, ends))
            if access.mask is not None:
                type = VectorType(i1, [lanes])
                outside = self._add(
                    SelectOp(
                        access.mask,
                        outside,
                        self._add(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(type, [0] * lanes))),
                    )
                )
            return self._none(outside, lanes)
        # A negative index is a large unsigned number.
        inside = self._add(arith.CmpiOp(start, count, "ult"))
        if access.mask is None:
            return inside
        return self._add(arith.OrIOp(inside, self._none(access.mask, lanes_of(access.mask.type) or 1)))

    def _none(self, mask: SSAValue, lanes: int) -> SSAValue:
        """Whether no lane is set."""
        number = self._add(arith.ConstantOp(IntegerAttr(lanes, IndexType())))
        return self._add(arith.CmpiOp(self._add(FirstLaneOp(mask)), number, "eq"))

    def _add(self, op: Operation) -> SSAValue:
        self._ops.append(op)
        return op.results[0]


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

    def nest_of(access: UnprovenAccess) -> Operation:
        return next((each for each in (access.op, *ancestors(access.op)) if each.parent_op() is func), access.op)

    for nest, group in groupby(accesses, nest_of):
        _Copy(top[top.index(before) : top.index(nest)], nest).insert(list(group), before)
    for access in accesses:
        access.op.attributes[CHECKED] = UnitAttr()
        if access.is_data:
            # Clamps the index of an access to its bounds.
            index = access.reach.start
            ops = last, zero = DimOp(valid_starts(access) - 1), arith.ConstantOp(IntegerAttr(0, IndexType()))
            below = arith.MinSIOp(index, last)
            inside = arith.MaxSIOp(below, zero)
            inherit_location(access.op, (*ops, below, inside))
            Rewriter.insert_op((*ops, below, inside), InsertPoint.before(access.op))
            first = 2 if isinstance(access.op, StoreOp) else 1
            access.op.operands[first + access.axis] = inside.result
    return True


def _may_move(func: PrimFuncOp, accesses: Sequence[UnprovenAccess]) -> bool:
    """Whether the indices of all accesses can be computed before anything else is."""
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
                LowerBlock().match_and_rewrite(op, PatternRewriter(op))
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
            if not _has_uses(op) and not any(isinstance(inner, AssertOp) for inner in op.walk()):
                Rewriter.erase_op(op)


def _has_uses(op: Operation) -> bool:
    return any(result.uses for result in op.results)


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
