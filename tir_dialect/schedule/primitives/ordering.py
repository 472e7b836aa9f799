"""Reordering loops and block iterators."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.dependence import Dependence, is_loop_variable
from tir_dialect.dims import DimLike, constant
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.schedule.edits import after_removal, header_value, only_statement, rebuild_block
from tir_dialect.schedule.handles import Block, Loop, is_inside
from tir_dialect.schedule.legality.independence import check_reorderable
from tir_dialect.schedule.primitives.loops import check_split, split
from tir_dialect.schedule.state import ScheduleState, primitive


@primitive
def reorder(self: ScheduleState, *loops: Loop) -> None:
    """Reorders loops of one nest, outermost first; the loops between them keep their positions.

    rewrite:
        for i in n: for j in m: A(i, j)
        -> for j in m: for i in n: A(i, j)

    Refuses:
    1. fewer than two different loops, or loops that are not in one nest;
    2. loops that hold more than the next one, and statements outside of blocks in the innermost one;
    3. bounds that depend on a loop that would be further inside;
    4. loops that drive scan or opaque iterators; or spatial and reduce iterators of a block with init at once;
    5. an order in which the instance that runs the init of a reduction may not come first, or may come several times;
    6. several blocks that share elements of a buffer across iterations;
    7. an order that interchanges instances of a block which linear indices show to share elements.
    """
    if len(loops) < 2 or len(set(loops)) != len(loops):
        names = ", ".join(f'"{loop.name}"' for loop in loops) or "none"
        raise self.error(f"expected at least two different loops, got {names}")
    nest = _nest(self, [loop.op for loop in loops])
    order = _ordered(nest, loops)
    _check_bounds(self, nest, order)
    check_reorderable(self, nest, order)
    _rearrange(nest, order)


def _nest(self: ScheduleState, loops: Sequence[ForOp]) -> list[ForOp]:
    """The loops from the outermost to the innermost of `loops`."""
    missing = set(loops)
    inner = max(loops, key=_depth)
    nest: list[ForOp] = []
    current: Operation | None = inner
    while missing and isinstance(current, ForOp):
        nest.insert(0, current)
        missing.discard(current)
        outer = current.parent_op()
        if missing and isinstance(outer, ForOp) and only_statement(outer.body.block) is not current:
            names = outer.induction_var.name_hint, current.induction_var.name_hint
            raise self.error(f'expected loop "{names[0]}" to hold loop "{names[1]}" alone')
        current = outer
    if missing:
        name = next(iter(missing)).induction_var.name_hint
        raise self.error(f'loops "{name}" and "{inner.induction_var.name_hint}" are not in one nest')
    return nest


def _ordered(nest: Sequence[ForOp], loops: Sequence[Loop]) -> list[ForOp]:
    """The nest with some loops in another order, in the positions that they have together."""
    chosen = iter(loop.op for loop in loops)
    wanted = {loop.op for loop in loops}
    return [next(chosen) if op in wanted else op for op in nest]


def _depth(op: Operation) -> int:
    depth, parent = 0, op.parent_op()
    while parent is not None:
        depth, parent = depth + 1, parent.parent_op()
    return depth


def _check_bounds(self: ScheduleState, nest: Sequence[ForOp], order: Sequence[ForOp]) -> None:
    dependence = Dependence(is_loop_variable)
    inside = {op.induction_var for op in nest}
    seen: set[object] = set()
    for op in order:
        needed = dependence.of_all(op.operands) & inside
        late = [variable for variable in needed if variable not in seen]
        if late:
            raise self.error(
                f'the bounds of loop "{op.induction_var.name_hint}" depend on loop "{late[0].name_hint}", '
                "which would be inside of it"
            )
        seen.add(op.induction_var)


def _rearrange(nest: Sequence[ForOp], order: Sequence[ForOp]) -> None:
    if list(nest) == list(order):
        return
    position = after_removal(nest[0])
    content = [inner for op in nest for inner in op.body.block.ops if inner not in nest]
    depths = _header_depths(content, order)
    for op in (*content, *nest):
        op.detach()
    for op in content:
        depth = depths.get(op, len(order))
        if depth == 0:
            Rewriter.insert_op(op, position)
        else:
            order[depth - 1].body.block.add_op(op)
    for outer, inner in pairwise(order):
        outer.body.block.add_op(inner)
    Rewriter.insert_op(order[0], position)


def _header_depths(content: Sequence[Operation], order: Sequence[ForOp]) -> dict[Operation, int]:
    """In how many of the loops the ops that compute their bounds stand: in those whose variables they need."""
    inside = set(content)
    pending = [operand.owner for loop in order for operand in loop.operands]
    needed: set[Operation] = set()
    while pending:
        owner = pending.pop()
        if isinstance(owner, Operation) and owner in inside and owner not in needed:
            needed.add(owner)
            pending += (operand.owner for operand in owner.operands)
    depths: dict[SSAValue, int] = {loop.induction_var: number for number, loop in enumerate(order, 1)}
    found: dict[Operation, int] = {}
    for op in content:
        if op in needed:
            found[op] = max((depths.get(operand, 0) for operand in op.operands), default=0)
            depths.update((result, found[op]) for result in op.results)
    return found


@primitive
def reorder_block_iter_var(self: ScheduleState, block: Block, new_order: Sequence[int]) -> None:
    """Reorders the iterators of a block; neither loops nor results depend on that order.

    rewrite:
        block(vi = i, vj = j)
        -> block(vj = j, vi = i)

    Refuses:
    1. an order that is no permutation of all iterators.
    """
    iterators, body = block.op.iterators, block.op.body.block
    if sorted(new_order) != list(range(len(iterators))):
        raise self.error(f"expected the numbers 0 to {len(iterators) - 1} in any order, got {list(new_order)}")
    old = list(body.args)
    for number in new_order:
        new = body.insert_arg(old[number].type, len(body.args))
        new.name_hint = old[number].name_hint
        old[number].replace_all_uses_with(new)
    for argument in old:
        body.erase_arg(argument)
    chosen = [iterators[number] for number in new_order]
    rebuild_block(block.op, [(it.kind, it.binding, it.extent) for it in chosen], block.op.condition)


@primitive
def tile(self: ScheduleState, outer: Loop, inner: Loop, factors: Sequence[DimLike]) -> tuple[Loop, Loop, Loop, Loop]:
    """Splits two nested loops and moves the inner parts, the tile, inside.

    rewrite:
        for i in n: for j in m: A(i, j)
        -> for i0: for j0: for i1 in 4: for j1 in 8: A(4 * i0 + i1, 8 * j0 + j1)

    Refuses:
    1. other than two factors, or a second loop that is not inside of the first;
    2. loops and factors that `split` refuses;
    3. loops that `reorder` would not interchange.
    """
    if len(factors) != 2:
        raise self.error(f"expected two factors, got {len(factors)}")
    if outer is inner or not is_inside(inner.op, outer.op):
        raise self.error(f'expected loop "{inner.name}" to be inside of loop "{outer.name}"')
    nest = _nest(self, [outer.op, inner.op])
    _check_bounds(self, nest, nest[::-1])
    check_reorderable(self, nest, nest[::-1])
    for loop, factor in zip((outer, inner), factors, strict=True):
        check_split(self, loop, [None, factor])
    i0, i1 = split(self, outer, [None, factors[0]])
    j0, j1 = split(self, inner, [None, factors[1]])
    tiles = (i0, j0, i1, j1)
    nest = _nest(self, [each.op for each in tiles])
    _rearrange(nest, _ordered(nest, tiles))
    return tiles


@primitive
def add_unit_loop(self: ScheduleState, block_or_loop: Block | Loop) -> Loop:
    """Puts a loop with one iteration around a block or loop.

    rewrite:
        A()
        -> for u in 1: A()
    """
    op = block_or_loop.op
    loop = ForOp(header_value(self.func, constant(1)), name_hint="u")
    loop.location = op.location
    Rewriter.insert_op(loop, InsertPoint.before(op))
    op.detach()
    loop.body.block.add_op(op)
    return self.loop(loop)
