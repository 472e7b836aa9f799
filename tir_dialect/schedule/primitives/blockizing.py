"""Turning loop nests into blocks, one nest or several consecutive ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.ir import Block as IRBlock
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.dependence import Dependence
from tir_dialect.analysis.index_space import IndexSpace, extremes
from tir_dialect.analysis.structure import child_blocks, enclosing_loops
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, from_term, maximum, total
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.schedule.edits import (
    Materializer,
    common_insert_point,
    header_value,
    is_index_op,
    only_statement,
    rebuild_block,
    unique_block_name,
)
from tir_dialect.schedule.handles import Block, Loop, is_inside
from tir_dialect.schedule.legality.instances import Instances, check_in_order
from tir_dialect.schedule.nests import emit_conditions
from tir_dialect.schedule.primitives.reductions import check_pure_loops, driven_apart, nest_init
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.structure import Less, conditions_of, iterator_extent, sized_extent
from tir_dialect.types import IteratorKind


def wrap(self: ScheduleState, blocks: Sequence[BlockOp]) -> BlockOp:
    """A new block with the loops of some blocks, and what stands between them.

    It has an iterator for each loop around that is used inside: a spatial one if all blocks inside say so, else an
    opaque one. Refuses no blocks, some in an init and some after it, those around which something has to be computed
    from memory, values of theirs that are used outside, and an init before a loop that may have no iteration.
    """
    if not blocks:
        raise self.error("expected a loop or at least one block, got none")
    # The ops from the first to the last of those that hold the blocks, in the innermost position that holds them all.
    position, tops = common_insert_point(blocks)
    order = sorted(map(position.get_operation_index, tops))
    run = list(position.ops)[order[0] : order[-1] + 1]
    if isinstance(run[0], InitOp):
        raise self.error("expected blocks that are all in the init of a block, or all behind it")
    loops = enclosing_loops(run[0])
    check_inits(self, run, loops)
    # Computations of indices, and memory, that somebody after the last op uses: they move before the first.
    leaving: list[Operation] = []
    for op in run:
        users = [use.operation for result in op.results for use in result.uses]
        if all(any(is_inside(user, each) for each in run if each not in leaving) for user in users):
            continue
        own = any(operand.owner in run and operand.owner not in leaving for operand in op.operands)
        if own or not (is_index_op(op) or isinstance(op, AllocBufferOp)):
            raise self.error(f"a value of '{op.name}' between the blocks is used outside of them")
        leaving.append(op)
    run = [op for op in run if op not in leaving]
    # In the order of the text, as operands that are set anew change the order of uses, and with it that of later steps.
    inside = dict.fromkeys(inner for op in run for inner in op.walk())
    used = dict.fromkeys(v for op in run for inner in op.walk() for v in inner.operands if not _is_of(v, inside))
    dependence = Dependence(lambda argument: any(argument is loop.induction_var for loop in loops))
    moving = [value for value in used if dependence.of(value)]
    around = [loop for loop in loops if loop.induction_var in dependence.of_all(moving)]
    children = [block for op in run for block in ([op] if isinstance(op, BlockOp) else child_blocks(op))]
    iterators = [(_kind(loop, children), loop.induction_var, loop.upper) for loop in around]
    name = unique_block_name(self.func, f"outer_{''.join(f'{block.block_name.data}_' for block in blocks)}")
    outer = BlockOp(name, iterators, name_hints=[f"v{loop.induction_var.name_hint or ''}" for loop in around])
    outer.location = blocks[0].location
    values: dict[SSAValue, SSAValue] = {
        loop.induction_var: value for loop, value in zip(around, outer.body.block.args, strict=True)
    }
    copies = {value: _copy(self, value, values, outer.body.block, dependence) for value in moving}
    for op in leaving:
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(next(each for each in run if each.regions)))
    Rewriter.insert_op(outer, InsertPoint.before(run[0]))
    for op in run:
        op.detach()
        outer.body.block.add_op(op)
    for op in inside:
        op.operands = [copies.get(operand, operand) for operand in op.operands]
    return outer


def check_inits(self: ScheduleState, run: Sequence[Operation], loops: Sequence[ForOp]) -> None:
    """Refuses a reduction over a loop that may have no iteration, if its init would not run then any more."""
    for block in (op for top in run for op in top.walk() if isinstance(op, BlockOp) and op.init is not None):
        reduced = [it.binding for it in block.iterators if it.kind.is_reduced]
        for loop in loops:
            drives = Dependence(lambda argument, loop=loop: argument is loop.induction_var)
            if drives.of_all(reduced) and self.space.less_equal(1, self.extent(loop)) is not True:
                hint = loop.induction_var.name_hint
                raise self.error(
                    f'block "{block.block_name.data}" has an init and is reduced over loop "{hint}", which may have no '
                    "iteration; use decompose_reduction before, or blockize the loop"
                )


def _is_of(value: SSAValue, ops: Collection[Operation]) -> bool:
    owner = value.owner
    return (owner.parent_op() if isinstance(owner, IRBlock) else owner) in ops


def _kind(loop: ForOp, blocks: Sequence[BlockOp]) -> IteratorKind:
    dependence = Dependence(lambda argument: argument is loop.induction_var)
    kinds = {
        frozenset(iterator.kind for iterator in block.iterators if dependence.of(iterator.binding)) for block in blocks
    }
    return IteratorKind.SPATIAL if kinds == {frozenset((IteratorKind.SPATIAL,))} else IteratorKind.OPAQUE


def _copy(
    self: ScheduleState, value: SSAValue, values: dict[SSAValue, SSAValue], body: IRBlock, dependence: Dependence
) -> SSAValue:
    """A value that depends on loops, computed from the iterators for these."""
    if value in values or not dependence.of(value):
        return values.get(value, value)
    op = value.owner
    if isinstance(value, BlockArgument) or not isinstance(op, Operation) or not is_index_op(op):
        kind = op.name if isinstance(op, Operation) else "an argument"
        raise self.error(f"the blocks use what '{kind}' gives in the loops around them, expected indices only")
    for operand in op.operands:
        _copy(self, operand, values, body, dependence)
    body.add_op(op.clone(values))
    return values[value]


@dataclass(frozen=True)
class _Part:
    """How an iterator is divided into tiles: its binding is `outer * extent + inner`."""

    kind: IteratorKind
    outer: Dim
    count: Dim
    inner: Dim
    extent: Dim
    is_bounded: bool
    """Whether the block runs only where the iterator is below its extent."""


@primitive
def blockize(self: ScheduleState, target: Loop | Sequence[Block]) -> Block:
    """Makes a loop and its body a block whose iterators run over tiles; or the loops of several blocks one block.

    rewrite:
        for i0: for i1 in 4: block(vi = 4 * i0 + i1)
        -> for i0: block(vo = i0): for i1 in 4: block(vi = 4 * vo + i1)

    The init of a reduction moves to the new block. Of several blocks all that is between the first and the last comes
    along, and the new block has an iterator for each loop around. Returns the new block.

    Refuses:
    1. a loop that holds more than one block and loops around it, or in which the bounds depend on loops outside;
    2. loops that drive iterators of different kinds, and bindings that come from memory;
    3. loops inside that do not move each iterator over a tile, and tiles that do not begin at multiples of their size;
    4. x;
    5. reductions whose instances inside may repeat, come before the init, or leave it out;
    6. several blocks: in an init and after it, or whose inits may not run if a loop around is empty;
    7. several blocks: values between them that are used elsewhere, and values from memory in the loops around.
    """
    return self.block(wrap(self, [b.op for b in target]) if isinstance(target, Sequence) else _tile(self, target.op))


def _tile(self: ScheduleState, loop: ForOp) -> BlockOp:
    block: Operation | None = loop
    while isinstance(block, ForOp):
        block = only_statement(block.body.block)
    if not isinstance(block, BlockOp):
        raise self.error(f'expected one block in loop "{loop.induction_var.name_hint}", and loops only around it')
    check_pure_loops(self, block)
    inner = [op for op in enclosing_loops(block) if is_inside(op, loop)]
    # Refuses loops inside whose bounds are made of variables of loops outside, which the new block
    # does not see.
    own = {self.symbol(op).as_symbol for op in inner}.union(self.func.symbol_names)
    for op in inner:
        if any((dim := self.space.dim_of(bound)) is None or not dim.symbols <= own for bound in op.operands):
            raise self.error(f'the bounds of loop "{op.induction_var.name_hint}" depend on loops outside')
    if block.init is not None:
        # Refuses loops inside after which the init of the new block would run otherwise than that of the block.
        instances, name = Instances(self, block), block.block_name.data
        check_in_order(self, instances, inner)
        if not instances.start():
            raise self.error(f'the loops may leave out the init of block "{name}"')
        for op in instances.idle(range(len(block.iterators))):
            if op in inner and self.space.less_equal(1, self.extent(op)) is not True:
                raise self.error(
                    f'loop "{op.induction_var.name_hint}" may be empty, but the init of "{name}" would run'
                )
    outside, bounded = _conditions(self, block, inner)
    parts = [_divide(self, block, number, inner, number in bounded) for number in range(len(block.iterators))]
    outer = _outer_block(self, block, parts, outside, InsertPoint.before(loop))
    before = self.space
    loop.detach()
    outer.body.block.add_op(loop)
    _bind_inner(self, block, outer, parts, before, inner)
    return outer


def _conditions(self: ScheduleState, block: BlockOp, inner: Sequence[ForOp]) -> tuple[list[Less | SSAValue], set[int]]:
    """The conditions on outer loops, and the iterators that are kept below their extents by the others."""
    names = {self.symbol(op).as_symbol for op in inner}
    bindings = [self.space.dim_of(binding) for binding in block.bindings]
    bounds = [
        None if binding is None else Less(binding, iterator_extent(self, block, number))
        for number, binding in enumerate(bindings)
    ]
    outside: list[Less | SSAValue] = []
    bounded: set[int] = set()
    for condition in conditions_of(self.space, block):
        if isinstance(condition, Less) and names.isdisjoint(condition.lhs.symbols | condition.rhs.symbols):
            outside.append(condition)
        elif isinstance(condition, Less) and condition in bounds:
            bounded.add(bounds.index(condition))
        else:
            raise self.error(
                f'block "{block.block_name.data}" has a condition on the loops inside that is not about the end of an '
                "iterator"
            )
    return outside, bounded


def _divide(self: ScheduleState, block: BlockOp, number: int, inner: Sequence[ForOp], is_bounded: bool) -> _Part:
    """The tiles of an iterator."""
    iterator = block.iterators[number]
    name, hint = block.block_name.data, iterator.value.name_hint
    binding = self.space.dim_of(iterator.binding)
    if binding is None:
        raise self.error(f'the binding of iterator "{hint}" of block "{name}" is no expression of loop variables')
    names = {self.symbol(op).as_symbol or "" for op in inner}
    moving = [
        from_term(*term) for term in binding.terms if any(not names.isdisjoint(atom.symbols) for atom, _ in term[1])
    ]
    part = total(moving)
    found = extremes(part, [self.space.variable(op.induction_var) for op in inner], self.space.prover)
    if found is None or found.low.terms or not found.high.symbols <= set(self.func.symbol_names):
        got = "no known range" if found is None else f"{found.low} to {found.high + 1}"
        raise self.error(
            f'expected the loops inside to move iterator "{hint}" of block "{name}" over a tile, 0 to a size, got {got}'
        )
    extent = self.space.prover.simplify(found.high + 1)
    if self.space.less_equal(extent, 0) is True:
        raise self.error(f'the loops inside have no iteration in which block "{name}" runs')
    base = self.space.prover.simplify(binding - part)
    if self.space.prover.divisible(base, extent) is not True:
        raise self.error(
            f'iterator "{hint}" of block "{name}" starts at {base}, which is no multiple of its tile {extent}'
        )
    outer = self.space.prover.simplify(floordiv(base, extent))
    if outer * extent != base and self.space.less_equal(1, extent) is not True:
        raise self.error(
            f'the loops inside may have no iteration, and iterator "{hint}" of block "{name}" starts at {base}, '
            f"which cannot be divided by its tile {extent} then"
        )
    count = _count(self, sized_extent(self, block, number), extent) if base.terms else constant(1)
    return _Part(iterator.kind, outer, count, part, extent, is_bounded)


def _count(self: ScheduleState, length: Dim, tile: Dim) -> Dim:
    """How many tiles there are; of those that are empty as many as of others, if that is the same for all lengths."""
    exact = self.space.prover.simplify(floordiv(length, tile))
    if self.space.prover.divisible(length, tile) is True and exact * tile == length:
        return exact
    # else there is none that is empty, and nothing is divided by 0
    return ceildiv(length, tile if self.space.less_equal(1, tile) is True else maximum(tile, constant(1)))


def _outer_block(
    self: ScheduleState,
    block: BlockOp,
    parts: Sequence[_Part],
    conditions: Sequence[Less | SSAValue],
    point: InsertPoint,
) -> BlockOp:
    """The new block, without body, before the loops that it will hold."""
    emitter = Materializer(self.func, self.space, point)
    iterators = [(part.kind, emitter.emit(part.outer), header_value(self.func, part.count)) for part in parts]
    # where the loops reach after the last tile, the block would do nothing
    beyond = [p for p in parts if p.is_bounded and self.space.prover.less(p.outer, p.count) is not True]
    where = emit_conditions(emitter, [*conditions, *(Less(part.outer, part.count) for part in beyond)])
    name = unique_block_name(self.func, f"{block.block_name.data}_o")
    hints = [f"{value.name_hint or 'v'}o" for value in block.body.block.args]
    outer = BlockOp(name, iterators, where=where, name_hints=hints)
    outer.location = block.location
    Rewriter.insert_op(outer, point)
    return outer


def _bind_inner(
    self: ScheduleState,
    block: BlockOp,
    outer: BlockOp,
    parts: Sequence[_Part],
    before: IndexSpace,
    inner: Sequence[ForOp],
) -> None:
    """Binds the block, now inside of `outer`, by the iterators of that; moves its init there."""
    space = IndexSpace(outer)
    symbols = {
        before.variable(op.induction_var).dim.as_symbol or "": space.variable(op.induction_var).dim for op in inner
    }
    emitter = Materializer(self.func, space, InsertPoint.before(block))
    iterators: list[tuple[IteratorKind, SSAValue, SSAValue]] = []
    conditions: list[Less] = []
    for part, iterator, tile in zip(parts, block.iterators, outer.body.block.args, strict=True):
        binding = space.variable(tile).dim * part.extent + part.inner.substitute(symbols)
        extent = space.dim_of(iterator.extent) or constant(0)
        if part.is_bounded:
            conditions.append(Less(binding, extent))
        iterators.append((iterator.kind, emitter.emit(binding), iterator.extent))
    rebuild_block(block, iterators, emit_conditions(emitter, list(conditions)))
    if block.init is None:
        return
    init = InitOp()
    Rewriter.insert_op(init, InsertPoint.at_start(outer.body.block))
    space = IndexSpace(outer)
    drives = check_pure_loops(self, block)
    copied = driven_apart(inner, drives)
    spatial = [c for c in _bounds(block, space) if c in conditions_of(space, block) and _is_spatial(block, space, c)]
    nest_init(self, space, block, copied, InsertPoint.at_end(init.body.block), spatial)


def _bounds(block: BlockOp, space: IndexSpace) -> list[Less]:
    pairs = ((space.dim_of(it.binding), space.dim_of(it.extent)) for it in block.iterators)
    return [Less(binding, extent) for binding, extent in pairs if binding is not None and extent is not None]


def _is_spatial(block: BlockOp, space: IndexSpace, condition: Less) -> bool:
    bindings = [space.dim_of(it.binding) for it in block.iterators if not it.kind.is_reduced]
    return condition.lhs in bindings
