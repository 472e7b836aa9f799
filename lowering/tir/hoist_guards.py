"""`hoist-guards`: tiles that are inside run without the predicates of their blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby

from xdsl.context import Context
from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    UnitAttr,
    VectorType,
    i1,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.tir.lower_blocks import LowerBlock, LowerInitBlocksPass
from lowering.tir.vectorize import vectorize_checks
from tir_dialect.analysis.accesses import CHECKED, UnprovenAccess, facts
from tir_dialect.analysis.index_space import DataSpace, IndexSpace, extremes
from tir_dialect.analysis.structure import ancestors, blocks_in, enclosing_block, has_no_effects
from tir_dialect.dims import Dim, DimLike, SymbolAtom, constant, maximum
from tir_dialect.ops.arithmetic import AssertOp, DimOp, RampOp
from tir_dialect.ops.blocks import BlockOp, BufferViewOp, InitOp, ReadsOp, WritesOp
from tir_dialect.ops.control_flow import ForOp, IfOp, YieldOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp, lanes_of, vector_of
from tir_dialect.ops.vectors import CompareOp, FirstLaneOp, SelectOp
from tir_dialect.schedule.edits import Materializer, erase_dead_ops, set_condition
from tir_dialect.types import LoopKind

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
    message = f"{access.subject} {what}, expected at least 0 and less than {_limit(access, before)}"
    ops.append(AssertOp(inside, message, "IndexError"))
    inherit_location(before, ops)
    Rewriter.insert_op(ops, InsertPoint.before(before))


def _is_asserted(access: UnprovenAccess, before: Operation) -> bool:
    compared = [use.operation for use in access.reach.start.uses]
    same = [op for op in compared if isinstance(op, arith.CmpiOp) and _is_below(op, access)]
    asserted = [use.operation for op in same for use in op.result.uses]
    return any(
        isinstance(op, AssertOp) and op.parent is before.parent and op.is_before_in_block(before) for op in asserted
    )


def _is_below(op: arith.CmpiOp, access: UnprovenAccess) -> bool:
    if op.predicate.value.data != _ULT:
        return False
    if access.reach.limit is not None:
        return op.rhs is access.reach.limit
    count = op.rhs.owner
    return isinstance(count, DimOp) and count.dim is _bound(access)


def _limit(access: UnprovenAccess, op: Operation) -> str:
    """What an index has to be less than, in symbols that the caller knows."""
    function = next(each for each in ancestors(op) if isinstance(each, PrimFuncOp))
    bound = _bound(access)
    return str(bound) if bound.symbols.issubset(function.symbol_names) else "its extent"


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


WHOLE_TILES = "whole_tiles"
"""The attribute of a branch whose first half is for whole tiles, and the second for the last one."""

MOST_OPS = 400
"""Loops with a longer body are not copied."""


class HoistGuardsPass(ModulePass):
    """Splits the body of a loop over tiles in two: one for whole tiles, without predicates, and one for the last tile.

    ```mlir
    tir.for (%i0) in (%tiles) {
      tir.for vectorized (%i1) in (%c32) {
        tir.block "B" (%vi = spatial %i0 * 32 + %i1 in %n) where %i0 * 32 + %i1 < %n { ... }
    // becomes
    tir.for (%i0) in (%tiles) {
      tir.if %i0 * 32 + 31 < %n {
        tir.for vectorized (%i1) in (%c32) { tir.block "B" (...) { ... } }
      } else {
        tir.for vectorized (%i1) in (%c32) { tir.block "B" (...) where %i0 * 32 + %i1 < %n { ... } }
      }
    ```

    A predicate is decided in the loop over tiles: that of its variable with the greatest factor. The loops of its other
    variables are inside and have constant bounds. Where a block has several, the innermost of their loops is split, for
    all predicates that are decided there; loops inside are split again in the first half only. Loops stay whose bodies
    have blocks around them, or more than 400 ops. Inits are first made blocks of their own, as by `lower-init-blocks`.
    Running it again changes nothing. Does what `LoopPartition` of TVM does (src/tir/transform/loop_partition.cc), also
    for symbolic sizes.
    """

    name = "hoist-guards"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Outermost loops first."""
        LowerInitBlocksPass().apply(ctx, op)
        for func in op.ops:
            if isinstance(func, PrimFuncOp) and any(block.condition is not None for block in blocks_in(func.body)):
                space = IndexSpace(func)
                _split_in(func, space, func.body)
                erase_dead_ops(func)


@dataclass(frozen=True)
class _Predicate:
    """A part of the condition of a block: all `facts` are at most 0. `loop` is the loop over tiles."""

    value: SSAValue
    facts: tuple[Dim, ...]
    loop: ForOp | None


@dataclass(frozen=True)
class _Index:
    """The expressions that conditions compare."""

    space: IndexSpace

    def number(self, value: SSAValue) -> Dim | None:
        """The expression of a value."""
        return self.space.dim_of(value)

    def less_equal(self, lhs: DimLike, rhs: DimLike) -> bool | None:
        """Whether `lhs <= rhs`, if it is known."""
        return self.space.less_equal(lhs, rhs)


def _split_in(func: PrimFuncOp, space: IndexSpace, region: Region) -> None:
    for inner in list(region.block.ops):
        if isinstance(inner, ForOp) and inner.kind.data in (LoopKind.SERIAL, LoopKind.PARALLEL):
            branch = _split(func, space, inner)
            _split_in(func, space, inner.body if branch is None else branch.then_body)
        elif isinstance(inner, IfOp):
            for each in inner.regions[: 1 if WHOLE_TILES in inner.attributes else 2]:
                _split_in(func, space, each)


def _split(func: PrimFuncOp, space: IndexSpace, loop: ForOp) -> IfOp | None:
    """Splits the body of a loop in two, if predicates are decided there and it is not split yet."""
    if any(WHOLE_TILES in op.attributes for op in loop.body.block.ops):
        return None
    blocks = [block for block in blocks_in(loop.body) if block.condition is not None and enclosing_block(block) is None]
    around = {loop, *(op for op in ancestors(loop) if isinstance(op, ForOp))}
    found = {block: _predicates(space, block) for block in blocks}
    if not any(_is_decided_in(loop, around, predicates) for predicates in found.values()):
        return None
    if sum(1 for _ in loop.body.walk()) > MOST_OPS:
        return None
    dropped = {part.value: part for parts in found.values() for part in parts if part.loop in around}
    highs = _greatest(space, loop, [fact for part in dropped.values() for fact in part.facts])
    return None if highs is None else _version(func, space, loop, highs, dropped.keys())


def _is_decided_in(loop: ForOp, around: AbstractSet[ForOp], predicates: Sequence[_Predicate]) -> bool:
    """Whether a loop is the innermost of those in which the predicates of a block are decided."""
    loops = {part.loop for part in predicates if part.loop is not None}
    return loop in loops and loops <= around


def _predicates(space: IndexSpace, block: BlockOp) -> list[_Predicate]:
    assert block.condition is not None
    found: list[_Predicate] = []
    loops = [op for op in ancestors(block) if isinstance(op, ForOp)]
    for value in _conjuncts(block.condition):
        known = tuple(facts(_Index(space), value)) if isinstance(value.owner, arith.CmpiOp) else ()
        found.append(_Predicate(value, known, _loop_over_tiles(space, known[-1], loops) if known else None))
    return found


def _conjuncts(condition: SSAValue) -> Iterator[SSAValue]:
    if isinstance(condition.owner, arith.AndIOp):
        yield from _conjuncts(condition.owner.lhs)
        yield from _conjuncts(condition.owner.rhs)
    else:
        yield condition


def _loop_over_tiles(space: IndexSpace, fact: Dim, loops: Sequence[ForOp]) -> ForOp | None:
    """The loop, of those around a block, whose variable has the greatest factor; `None` if no other is inside of it."""
    factors = {space.variable(loop.induction_var).dim.as_symbol: 0 for loop in loops}
    for coefficient, monomial in fact.terms:
        if not any(factors.keys() & atom.symbols for atom, _ in monomial):
            continue
        (atom, power), *others = monomial
        if others or power != 1 or not isinstance(atom, SymbolAtom):
            return None
        factors[atom.name] = abs(coefficient)
    own = [loop for loop in loops if factors[space.variable(loop.induction_var).dim.as_symbol]]
    tiles = max(own, key=lambda loop: factors[space.variable(loop.induction_var).dim.as_symbol], default=None)
    inner = [] if tiles is None else own[: own.index(tiles)]
    return tiles if inner and all(_is_constant(space, loop) for loop in inner) else None


def _is_constant(space: IndexSpace, loop: ForOp) -> bool:
    variable = space.variable(loop.induction_var)
    if variable.lower is None or variable.upper is None:
        return False
    return variable.lower.constant_value is not None and variable.upper.constant_value is not None


def _greatest(space: IndexSpace, loop: ForOp, facts: Sequence[Dim]) -> list[Dim] | None:
    """The greatest value of each expression in an iteration, without repetition; `None` if one is not known."""
    inside = [space.variable(op.induction_var) for op in loop.body.walk() if isinstance(op, ForOp)]
    found: dict[Dim, None] = {}
    for fact in facts:
        bounds = extremes(fact, inside, space.prover)
        if bounds is None:
            return None
        high = space.prover.simplify(bounds.high)
        if space.less_equal(high, 0) is not True:
            found.setdefault(high)
    return list(found)


def _version(
    func: PrimFuncOp, space: IndexSpace, loop: ForOp, highs: Sequence[Dim], dropped: AbstractSet[SSAValue]
) -> IfOp | None:
    """Runs a copy of the body without the dropped predicates where all of `highs` are at most 0."""
    ops, first = list(loop.body.block.ops), loop.body.block.first_op
    if first is None or not highs:
        return None
    point = InsertPoint.before(first)
    # A condition, computed at a position.
    position = Materializer(func, space, point)
    one = position.emit(constant(1))
    tests = [position.insert(arith.CmpiOp(position.emit(high), one, "slt")) for high in highs]
    branch = IfOp(reduce(lambda one, other: position.insert(arith.AndIOp(one, other, IntegerType(1))), tests))
    branch.location, branch.attributes[WHOLE_TILES] = loop.location, UnitAttr()
    values: dict[SSAValue, SSAValue] = {}
    for op in ops:
        branch.then_body.block.add_op(op.clone(values))
    for op, copy in zip(blocks_in(loop.body), blocks_in(branch.then_body), strict=True):
        kept = [part for part in _conjuncts(op.condition) if part not in dropped] if op.condition is not None else []
        _set_conditions(copy, [values.get(part, part) for part in kept])
    for op in ops:
        op.detach()
        branch.else_body.block.add_op(op)
    loop.body.block.add_op(branch)
    return branch


def _set_conditions(block: BlockOp, conditions: Sequence[SSAValue]) -> None:
    """Lets a block run where all conditions hold."""
    if block.condition is None:
        return
    ops: list[Operation] = []

    def both(one: SSAValue, other: SSAValue) -> SSAValue:
        ops.append(arith.AndIOp(one, other, IntegerType(1)))
        return ops[-1].results[0]

    condition = reduce(both, conditions) if conditions else None
    inherit_location(block, ops)
    Rewriter.insert_op(ops, InsertPoint.before(block))
    set_condition(block, condition)
