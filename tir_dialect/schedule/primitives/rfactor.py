"""Factoring reductions into partial reductions.
A reduction that does not say what it starts with starts with its neutral value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.init import init_placement
from tir_dialect.analysis.structure import ancestors, block_of, enclosing_loops, is_defined_inside, root_buffer
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import ElementType, lookup, numpy_dtype
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.edits import Materializer, nest_of, unique_block_name
from tir_dialect.schedule.handles import Block, Loop, is_inside
from tir_dialect.schedule.legality.instances import Instances
from tir_dialect.schedule.legality.monoid import Combination, check_monoid, check_neutral, combination, is_neutral
from tir_dialect.schedule.legality.motion import describe, touches
from tir_dialect.schedule.nests import Cloner, Redirect, check_cloneable, check_no_branch
from tir_dialect.schedule.primitives.reductions import (
    check_elements,
    check_once,
    check_pure_loops,
    check_single_start,
    driven_apart,
    hoist_init,
    nest_copies,
)
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.structure import Less, conditions_of, shape_of
from tir_dialect.te.coerce import integer_range, is_bool, is_float
from tir_dialect.te.emit_scalar import emit_constant
from tir_dialect.types import BufferType, IteratorKind


def neutral_value(self: ScheduleState, block: BlockOp, parts: Combination) -> float:
    """The neutral value of a combination of one result, tried on samples; refuses one where none is found."""
    if len(parts.stores) == 1:
        dtype = lookup(parts.stores[0].buffer_type.dtype).type
        for value in _candidates(dtype):
            if is_neutral([np.array([value]).astype(numpy_dtype(dtype))], parts):
                return value
    raise self.error(f'block "{block.block_name.data}" has no init, and no neutral value of its combination is known')


def _candidates(dtype: ElementType) -> Iterator[float]:
    """Neutral values of sums, products, extremes, and of operators on bits."""
    yield from (0, 1)
    if is_float(dtype):
        yield from (float("-inf"), float("inf"))
    elif not is_bool(dtype):
        yield from integer_range(dtype)
        yield -1


def init_with(store: StoreOp, value: float) -> InitOp:
    """An init, in no block yet, that stores a number where `store` does."""
    init = InitOp()
    body = init.body.block

    def insert(op: Operation) -> SSAValue:
        body.add_op(op)
        return op.results[0]

    start = emit_constant(insert, value, lookup(store.buffer_type.dtype).type)
    body.add_op(StoreOp(start, store.buffer, Cloner(body, {}).values(store.indices)))
    return init


SPATIAL, REDUCE = IteratorKind.SPATIAL, IteratorKind.REDUCE


@dataclass(frozen=True)
class _Plan:
    """A reduction and the loop whose iterations get partial results of their own."""

    block: BlockOp
    loop: ForOp
    extent: Dim
    axis: int
    rest: tuple[ForOp, ...]
    parts: Combination
    start: float
    """The neutral value that a block without init has."""

    @property
    def spatial(self) -> list[int]:
        return [number for number, it in enumerate(self.block.iterators) if it.kind is SPATIAL]


@primitive
def rfactor(self: ScheduleState, loop: Loop, factor_axis: int = 0) -> Block:
    """Factors a reduction: each iteration of a loop has an accumulator of its own, and a second block combines them.

    rewrite:
        for i: for r0: for r1 in 8: B[i] += A[i, 8 * r0 + r1]
        -> for i: for r0: for r1 in 8: B_rf[r1, i] += A[i, 8 * r0 + r1]
           for i: for r1 in 8: B[i] += B_rf[r1, i]

    `factor_axis` is the position of the new dimension of the partial results. Returns the block of the partial
    reduction, which replaces the old one; the old block now combines partial results.

    It combines them in copies of the loops that drive spatial iterators and of the factored one, in their order, right
    after the loops of the partial reduction: inside of the loops that hold others which use the result.

    Partial results of a block without init, which goes on with what it finds, start with the neutral value of its
    combination.

    Refuses:
    1. a loop that holds several blocks, or drives other than reduce iterators; loops that drive different kinds;
    2. reduction loops that do not run from 0 to a size, and reduce iterators that come from memory;
    3. a block that does not combine each result with one value by pure ops, or stores at indices from memory;
    4. a `factor_axis` that is none of the result;
    5. a block in a branch, and predicates that are no comparisons of indices;
    6. an init that is not neutral for the combination; without one, a combination of no known neutral value;
    7. a combination that is not associative; one that does not commute, but for the outermost loop of the reduction;
    8. loops that may leave out the init, or run it several times or late, or combine partial results twice;
    9. others that use the result in a loop that is reduced over;
    10. a block that uses what is computed in the loops around it.
    """
    plan = _plan(self, loop, factor_axis)
    nest, part = nest_of(plan.block), _part(self, plan)
    block = plan.block
    for value in dict.fromkeys(operand for op in block.body.walk() for operand in op.operands):
        if is_defined_inside(value, part) and not is_defined_inside(value, block):
            hint, name = value.name_hint, block.block_name.data
            raise self.error(f'block "{name}" uses "{hint}" of the loops around it, expected values from before them')
    names = {self.symbol(op).as_symbol or "" for op in (plan.loop, *plan.rest)}
    kept: list[Less] = []
    for condition in conditions_of(self.space, block):
        if not isinstance(condition, Less):
            raise self.error(f'block "{block.block_name.data}" has a condition that is no comparison of indices')
        if names.isdisjoint(condition.lhs.symbols | condition.rhs.symbols):
            kept.append(condition)
    copied = _final_loops(self, plan, part, kept)
    starts = bool(plan.rest) and _starts_everywhere(self, plan)
    filled = all(self.space.less_equal(1, self.extent(op)) is True for op in plan.rest)
    anchor = next(op for op in enclosing_loops(plan.block) if op in (plan.rest or (plan.loop,)))
    # A buffer for the partial results of each result.
    point = InsertPoint.before(nest)
    partial: dict[SSAValue, SSAValue] = {}
    for store in plan.parts.stores:
        shape = list(shape_of(store.buffer))
        shape.insert(plan.axis, plan.extent)
        op = AllocBufferOp(BufferType(shape, store.buffer_type.dtype))
        op.buffer.name_hint = f"{store.buffer.name_hint or 'buffer'}_rf"
        Rewriter.insert_op(op, point)
        partial[store.buffer] = op.buffer
    spatial = [(SPATIAL, plan.block.bindings[number], plan.block.extents[number]) for number in plan.spatial]
    made = _partial_block(self, plan, partial)
    _combine_partial(plan, partial)
    plan.block.detach()
    iterators = [*spatial, (REDUCE, plan.loop.induction_var, plan.loop.upper)]
    nest_copies(self, self.space, plan.block, iterators, copied, InsertPoint.after(part), kept)
    if not starts or not (filled or init_placement(made) is not None):
        sides = self.carry([side for condition in kept for side in (condition.lhs, condition.rhs)])
        hoist_init(self, made, anchor, [Less(lhs, rhs) for lhs, rhs in zip(sides[::2], sides[1::2], strict=True)])
    return self.block(made)


def _plan(self: ScheduleState, loop: Loop, axis: int) -> _Plan:
    found = [op for op in loop.op.walk() if isinstance(op, BlockOp) and loop.op in enclosing_loops(op)]
    if len(found) != 1:
        raise self.error(f'expected one block in loop "{loop.op.induction_var.name_hint}", got {len(found)}')
    block = found[0]
    name = block.block_name.data
    drives = check_pure_loops(self, block)
    if drives.get(loop.op.induction_var) != {REDUCE} and not _is_idle(self, loop.op, drives):
        raise self.error(f'loop "{loop.name}" does not drive reduce iterators of block "{name}"')
    rest = tuple(op for op in enclosing_loops(block) if drives.get(op.induction_var) == {REDUCE} and op is not loop.op)
    for op in (loop.op, *rest):
        if self.lower(op).terms or not self.extent(op).symbols <= set(self.func.symbol_names):
            raise self.error(f'expected loop "{op.induction_var.name_hint}" to run from 0 to a size')
    _check_bindings(self, block)
    parts = combination(self, block)
    rank = len(parts.stores[0].indices)
    if not -rank - 1 <= axis <= rank or any(len(store.indices) != rank for store in parts.stores):
        raise self.error(f"expected a factor axis of {-rank - 1} to {rank}, got {axis}")
    for store in parts.stores:
        for index in store.indices:
            check_cloneable(self, block, index)
    check_no_branch(self, block)
    if block.init is not None:
        check_neutral(self, name, block.init, parts)
        check_single_start(self, block, [op for op in (loop.op, *rest) if op.induction_var in drives])
        check_once(self, block, [op for op in enclosing_loops(block) if op is not loop.op])
    outermost = next(op for op in enclosing_loops(block) if op in (loop.op, *rest))
    check_monoid(self, name, parts, commutes=loop.op is not outermost)
    start = 0 if block.init is not None else neutral_value(self, block, parts)
    return _Plan(block, loop.op, self.extent(loop.op), axis % (rank + 1), rest, parts, start)


def _check_bindings(self: ScheduleState, block: BlockOp) -> None:
    """Refuses reduce iterators that come from memory: the partial reduction computes them from its own iterators."""
    for iterator in block.iterators:
        if iterator.kind is not SPATIAL and self.space.dim_of(iterator.binding) is None:
            hint, name = iterator.value.name_hint, block.block_name.data
            raise self.error(f'the binding of iterator "{hint}" of block "{name}" is no expression of loop variables')


def _is_idle(self: ScheduleState, loop: ForOp, drives: Mapping[SSAValue, AbstractSet[IteratorKind]]) -> bool:
    """Whether a loop has one iteration and drives nothing, as the inner one of a split into parts of 1."""
    return not drives.get(loop.induction_var) and self.extent(loop).constant_value == 1


def _part(self: ScheduleState, plan: _Plan) -> Operation:
    """The outermost loop around the reduction, or itself, that holds nobody else who uses the result."""
    results = {root_buffer(store.buffer) for store in plan.parts.stores}
    found: Operation = plan.block
    for parent in ancestors(plan.block):
        if isinstance(parent, BlockOp | PrimFuncOp | InitOp):
            break
        for op in parent.walk():
            if touches(op, results, writes_only=False) and not is_inside(op, plan.block):
                _check_finished(self, plan, found, op)
                return found
        found = parent
    return found


def _check_finished(self: ScheduleState, plan: _Plan, part: Operation, user: Operation) -> None:
    """Refuses a user of the result that sees what is not complete."""
    for loop in (plan.loop, *plan.rest):
        if not is_inside(loop, part):
            name = loop.induction_var.name_hint
            raise self.error(
                f'{describe(user)} uses the result of block "{plan.block.block_name.data}" in loop "{name}", '
                "which is reduced over"
            )


def _final_loops(self: ScheduleState, plan: _Plan, part: Operation, kept: Sequence[Less]) -> list[ForOp]:
    """The loops in which partial results are combined; refuses those that combine them for an element twice."""
    loops = [op for op in enclosing_loops(plan.block) if is_inside(op, part)]
    spatial = driven_apart(loops, check_pure_loops(self, plan.block))
    if plan.block.init is None:
        # Refuses loops that repeat all updates, of which the partial results would have the last round
        # only.
        others = [op for op in loops if op not in (*spatial, *plan.rest, plan.loop)]
        for loop in others:
            if self.space.less_equal(self.extent(loop), 1) is not True:
                raise self.error(
                    f'loop "{loop.induction_var.name_hint}" repeats the updates of block "{plan.block.block_name.data}"'
                )
    if plan.block.init is None or not Instances(self, plan.block).reach_all(plan.spatial):
        check_elements(self, plan.block, spatial)
    used = {name for condition in kept for name in condition.lhs.symbols | condition.rhs.symbols}
    return [op for op in loops if op in spatial or op is plan.loop or self.symbol(op).as_symbol in used]


def _starts_everywhere(self: ScheduleState, plan: _Plan) -> bool:
    """Whether each partial reduction runs its first instance, whatever the conditions."""
    first: dict[str, Dim] = {self.symbol(op).as_symbol or "": constant(0) for op in plan.rest}
    reduced = first.keys() | {self.symbol(plan.loop).as_symbol or ""}
    for condition in conditions_of(self.space, plan.block):
        if not isinstance(condition, Less) or reduced.isdisjoint(condition.lhs.symbols | condition.rhs.symbols):
            continue
        if self.space.prover.less(condition.lhs.substitute(first), condition.rhs.substitute(first)) is not True:
            return False
    return True


def _partial_block(self: ScheduleState, plan: _Plan, partial: Mapping[SSAValue, SSAValue]) -> BlockOp:
    """The block of the partial reduction, instead of the old one."""
    block = plan.block
    spatial = [(it.kind, it.binding, it.extent) for it in block.iterators if it.kind is SPATIAL]
    factor = (SPATIAL, plan.loop.induction_var, plan.loop.upper)
    rest = [(REDUCE, op.induction_var, op.upper) for op in plan.rest]
    hints = [block.body.block.args[number].name_hint for number in plan.spatial]
    hints += [f"v{op.induction_var.name_hint}" for op in (plan.loop, *plan.rest)]
    name = unique_block_name(self.func, f"{block.block_name.data}_rf")
    made = BlockOp(name, [*spatial, factor, *rest], where=block.condition, name_hints=hints)
    made.location = block.location
    made.annotations = block.annotations
    Rewriter.insert_op(made, InsertPoint.before(block))
    args = made.body.block.args
    mapping: dict[SSAValue, SSAValue] = {block.body.block.args[n]: args[p] for p, n in enumerate(plan.spatial)}
    factor_value = args[len(spatial)]
    _emit_old_reduce_iterators(self, plan, made, args[len(spatial) :], mapping)
    insert = Redirect(partial, plan.axis, factor_value)
    init = InitOp()
    Rewriter.insert_op(init, InsertPoint.at_start(made.body.block))
    old = block.init or init_with(plan.parts.stores[0], plan.start)
    insert.clone_into(old.body.block, init.body.block, mapping)
    if block.init is None:
        old.erase()
    insert.clone_into(block.body.block, made.body.block, mapping, skip_init=True)
    return made


def _emit_old_reduce_iterators(
    self: ScheduleState, plan: _Plan, made: BlockOp, args: Sequence[SSAValue], mapping: dict[SSAValue, SSAValue]
) -> None:
    """Computes the reduce iterators of the old block from those of the new one."""
    space = IndexSpace(made)
    symbols = {
        self.symbol(op).as_symbol or "": space.variable(arg).dim
        for op, arg in zip((plan.loop, *plan.rest), made.body.block.args[len(plan.spatial) :], strict=True)
    }
    # iterators of a block around it stay what they are
    around = {name: each.value for name, each in self.space.variables.items() if block_of(each.value) is not None}
    symbols |= {name: space.variable(value).dim for name, value in around.items()}
    emitter = Materializer(self.func, space, InsertPoint.at_end(made.body.block))
    for iterator in plan.block.iterators:
        if iterator.kind is SPATIAL:
            continue
        binding = self.space.dim_of(iterator.binding) or constant(0)
        mapping[iterator.value] = emitter.emit(binding.substitute(symbols))


def _combine_partial(plan: _Plan, partial: Mapping[SSAValue, SSAValue]) -> None:
    """Makes the body of the old block add up the partial results; its iterators are left to the caller."""
    block, old = plan.block, plan.block.body.block
    new = IRBlock(arg_types=[IndexType()] * (len(plan.spatial) + 1))
    mapping: dict[SSAValue, SSAValue] = {old.args[n]: new.args[p] for p, n in enumerate(plan.spatial)}
    for value, number in zip(new.args, plan.spatial, strict=False):
        value.name_hint = old.args[number].name_hint
    new.args[-1].name_hint = f"v{plan.loop.induction_var.name_hint}"
    if block.init is not None:
        new.add_op(block.init.clone(mapping))
    cloner = Cloner(new, mapping)
    for load, source, store in zip(plan.parts.accumulators, plan.parts.sources, plan.parts.stores, strict=True):
        cloner.values([*load.indices])
        indices = cloner.values([*store.indices])
        indices.insert(plan.axis, new.args[-1])
        incoming = LoadOp(partial[store.buffer], indices)
        incoming.result.name_hint = (partial[store.buffer].name_hint or "b").lower()
        new.add_op(load.clone(cloner.mapping))
        new.add_op(incoming)
        cloner.mapping[source] = incoming.result
    known = cloner.mapping
    known |= {again: known[value] for again, value in plan.parts.repeated.items() if value in known}
    for op in (*plan.parts.combine, *plan.parts.stores):
        new.add_op(op.clone(cloner.mapping))
    block.body.detach_block(old)
    old.erase()
    block.body.add_block(new)
