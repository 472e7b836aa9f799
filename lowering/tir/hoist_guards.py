"""`hoist-guards`: tiles that are inside run without the predicates of their blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import reduce

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    IntegerType,
    ModuleOp,
    UnitAttr,
)
from xdsl.ir import Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.tir.lower_blocks import LowerInitBlocksPass
from tir_dialect.analysis.accesses import facts
from tir_dialect.analysis.index_space import IndexSpace, extremes
from tir_dialect.analysis.structure import ancestors, blocks_in, enclosing_block
from tir_dialect.dims import Dim, DimLike, SymbolAtom, constant
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp, IfOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule.edits import Materializer, erase_dead_ops, set_condition
from tir_dialect.types import LoopKind

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
    # The loop has to be the innermost of those in which the predicates of some block are decided.
    decided_in = [{part.loop for part in predicates if part.loop is not None} for predicates in found.values()]
    if not any(loop in loops and loops <= around for loops in decided_in):
        return None
    if sum(1 for _ in loop.body.walk()) > MOST_OPS:
        return None
    dropped = {part.value: part for parts in found.values() for part in parts if part.loop in around}
    highs = _greatest(space, loop, [fact for part in dropped.values() for fact in part.facts])
    return None if highs is None else _version(func, space, loop, highs, dropped.keys())


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
