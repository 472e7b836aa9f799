"""Loops: split into a nest, a nest fused into one, consecutive loops merged, and the range of a loop partitioned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.dependence import Axis, Dependence, determine, is_loop_variable
from tir_dialect.analysis.structure import ancestors, enclosing_loops
from tir_dialect.dims import Dim, DimLike, ceildiv, floordiv, maximum, minimum, mod, product, to_dim, total
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp, IfOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.schedule.edits import (
    Materializer,
    add_condition,
    before_all,
    blocks_in,
    is_index_op,
    move_ops,
    only_statement,
    statements,
    unique_block_name,
    users_of,
)
from tir_dialect.schedule.handles import Loop, is_inside
from tir_dialect.schedule.legality.accesses import Access, accesses_in, loop_names
from tir_dialect.schedule.nests import prove_conditions, simplify_bindings
from tir_dialect.schedule.primitives.blockizing import check_inits
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.trace import too_great
from tir_dialect.types import IteratorKind, LoopKind


def guarded_ops(body: Block) -> list[Operation]:
    """What a condition on the body of a loop applies to: its blocks, or the whole body if it does something outside."""
    found = list(_leaves(body))
    if all(isinstance(op, BlockOp) for op in found):
        return found
    first = body.first_op
    return [] if first is None else [first]


def _leaves(body: Block) -> Iterator[Operation]:
    for op in body.ops:
        if isinstance(op, ForOp):
            yield from _leaves(op.body.block)
        elif not is_index_op(op) and not isinstance(op, AllocBufferOp):
            yield op


def guard(body: Block, value: SSAValue, limit: SSAValue) -> None:
    """Lets what `guarded_ops` gives run only where `value < limit`; both must dominate it."""
    targets = guarded_ops(body)
    if all(isinstance(op, BlockOp) for op in targets):
        for op in targets:
            if isinstance(op, BlockOp):
                add_condition(op, _less(value, limit, InsertPoint.before(op)))
        return
    branch_body = Block()
    move_after(value, body, branch_body)
    condition = _less(value, limit, InsertPoint.at_end(body))
    branch = IfOp(condition)
    move_ops(branch_body, branch.then_body.block)
    body.add_op(branch)


def move_after(value: SSAValue, source: Block, target: Block) -> None:
    """Moves the ops of a block after the one that computes `value` to the end of another block."""
    ops = list(source.ops)
    start = ops.index(value.owner) + 1 if isinstance(value.owner, Operation) and value.owner in ops else 0
    for op in ops[start:]:
        op.detach()
        target.add_op(op)


def _less(value: SSAValue, limit: SSAValue, point: InsertPoint) -> SSAValue:
    op = arith.CmpiOp(value, limit, "slt")
    Rewriter.insert_op(op, point)
    return op.result


Factor: TypeAlias = "DimLike | None"
"""The extent of one of the loops, over the symbols of the function; `None` is what is left."""


@primitive
def split(
    self: ScheduleState, loop: Loop, factors: Sequence[Factor], *, disable_predication: bool = False
) -> tuple[Loop, ...]:
    """Splits a loop into a nest of loops with the given extents, outermost first; one of them may be `None`.

    Where the extents do not divide, blocks get a condition; with `disable_predication`, the loop is refused.

    rewrite:
        for i in n: A(i)
        -> for i0 in ceildiv(n, 8): for i1 in 8: A(8 * i0 + i1) where 8 * i0 + i1 < n

    Refuses:
    1. a loop that is not serial, or whose bounds come from memory;
    2. fewer than two factors, or more than one `None`;
    3. factors over other symbols than those of the function, or that may be less than 1 (0 if none is `None`), or
       together are over 2**62;
    4. factors whose product may be less than the extent; with `disable_predication`, factors of any other product than
       the extent;
    5. where statements outside of blocks need a branch, a reduction whose init would be in it and whose loop may be
       empty.
    """
    extents = check_split(self, loop, factors)
    exact = self.space.prover.equal(product(extents), self.extent(loop.op)) is True
    if disable_predication and not exact:
        raise self.error(
            f"expected factors of {self.extent(loop.op)}, since no condition is wanted, got {as_list(extents)}"
        )
    if not exact and not all(isinstance(op, BlockOp) for op in guarded_ops(loop.op.body.block)):
        check_inits(self, [loop.op], [loop.op])
    # Empty loops before `loop`, of which the outermost has its annotations.
    emitter = Materializer(self.func, self.space, InsertPoint.before(loop.op))
    hint = loop.op.induction_var.name_hint or "i"
    ops = [ForOp(emitter.emit(extent), name_hint=f"{hint}{number}") for number, extent in enumerate(extents)]
    ops[0].annotations = loop.op.annotations
    for outer, inner in pairwise(ops):
        outer.body.block.add_op(inner)
    for op in ops:
        op.location = loop.op.location
    Rewriter.insert_op(ops[0], InsertPoint.before(loop.op))
    _bind_split(self, loop.op, ops, extents, exact)
    return tuple(self.loop(op) for op in ops)


def check_split(self: ScheduleState, loop: Loop, factors: Sequence[Factor]) -> list[Dim]:
    """Refuses what `split` refuses; the extents of the new loops."""
    check_serial(self, loop)
    extent = self.extent(loop.op)
    known = [None if factor is None else to_dim(factor) for factor in factors]
    given = [factor for factor in known if factor is not None]
    if len(factors) < 2 or len(given) < len(factors) - 1:
        raise self.error(f"expected at least two factors and at most one None, got {as_list(factors)}")
    for factor in given:
        if unknown := factor.symbols.difference(self.func.symbol_names):
            raise self.error(f'factor {factor} uses "{min(unknown)}", which is no symbol of the function')
        # the extent is divided by the factors where one is left out
        least = 1 if len(given) < len(factors) else 0
        if self.space.less_equal(least, factor) is not True:
            raise self.error(f"expected factors of at least {least}, got {factor}")
    covered = product(given)
    if too_great([covered]) is not None:
        raise self.error(f"expected factors with a product of at most 2**62, got {as_list(factors)}")
    if len(given) < len(factors):
        return [ceildiv(extent, covered) if factor is None else factor for factor in known]
    if self.space.prover.less_equal(extent, covered) is not True:
        raise self.error(f"expected factors that cover all {extent} iterations, got {covered}")
    return given


def check_serial(self: ScheduleState, loop: Loop) -> None:
    """Refuses a loop that is not serial."""
    kind = loop.op.kind.data
    if kind is not LoopKind.SERIAL:
        raise self.error(f'expected a serial loop, got {kind.value} loop "{loop.name}"')


def as_list(factors: Sequence[Factor]) -> str:
    """Factors in a message."""
    return f"[{', '.join(map(str, factors))}]"


def _bind_split(self: ScheduleState, loop: ForOp, ops: Sequence[ForOp], extents: Sequence[Dim], exact: bool) -> None:
    lower = self.lower(loop)
    body = ops[-1].body.block
    move_ops(loop.body.block, body)
    index, *extents = self.carry([lower, *extents])
    for position, op in enumerate(ops):
        index = index + self.symbol(op) * product(extents[position + 1 :])
    targets = [] if exact else guarded_ops(body)
    users = [*users_of(loop.induction_var), *targets]
    if users:
        value = Materializer(self.func, self.space, before_all(users)).emit(index)
        loop.induction_var.replace_all_uses_with(value)
        if targets:
            guard(body, value, loop.upper)
    Rewriter.erase_op(loop)
    self.changed()
    simplify_bindings(self, ops[0])


@primitive
def fuse(self: ScheduleState, *loops: Loop) -> Loop:
    """Fuses a nest of loops, given outermost first, into one.

    rewrite:
        for i in n: for j in m: A(i, j)
        -> for f in n * m: A(floordiv(f, m), mod(f, m))

    Refuses:
    1. fewer than two loops, or loops that are not serial;
    2. loops that hold more than the next one;
    3. bounds that depend on another of the loops or come from memory; extents that are 0 or may be negative;
    4. different annotations of one name;
    5. loops over a reduction together with loops over its result, if the reduction may be empty: its init would not
       run.
    """
    extents = _check_fusable(self, loops)
    _check_inits(self, loops)
    # What is said about the loops; refuses those of which different things are said.
    annotations: dict[str, Attribute] = {}
    for loop in loops:
        if loop.op.annotations is None:
            continue
        for key, value in loop.op.annotations.data.items():
            if (other := annotations.setdefault(key, value)) != value:
                raise self.error(
                    f'expected one annotation "{key}", got {value} of loop "{loop.name}" and {other} outside of it'
                )
    outer, inner = loops[0].op, loops[-1].op
    emitter = Materializer(self.func, self.space, InsertPoint.before(outer))
    hint = "".join(loop.name for loop in loops)
    fused = ForOp(emitter.emit(product(extents)), name_hint=hint, annotations=annotations)
    fused.location = outer.location
    lowers = [self.lower(loop.op) for loop in loops]
    Rewriter.insert_op(fused, InsertPoint.before(outer))
    body = fused.body.block
    for loop in loops:
        for op in list(loop.op.body.block.ops):
            if loop.op is inner or not isinstance(op, ForOp):
                op.detach()
                body.add_op(op)
    carried = self.carry([*lowers, *extents])
    lowers, extents = carried[: len(loops)], carried[len(loops) :]
    index = self.symbol(fused)
    for position, (loop, lower) in enumerate(zip(loops, lowers, strict=True)):
        value = floordiv(index, product(extents[position + 1 :]))
        value = value if position == 0 else mod(value, extents[position])
        _replace_variable(self, loop.op, value + lower)
    Rewriter.erase_op(outer)
    self.changed()
    simplify_bindings(self, fused)
    return self.loop(fused)


def _check_fusable(self: ScheduleState, loops: Sequence[Loop]) -> list[Dim]:
    if len(loops) < 2:
        raise self.error(f"expected at least two loops, got {len(loops)}")
    extents: list[Dim] = []
    for loop in loops:
        check_serial(self, loop)
        extent = self.extent(loop.op)
        if self.space.less_equal(0, extent) is not True:
            raise self.error(f'the extent of loop "{loop.name}" is not known to be at least 0')
        if self.space.less_equal(extent, 0) is True:
            raise self.error(f'loop "{loop.name}" has no iteration')
        extents.append(extent)
    dependence = Dependence(is_loop_variable)
    for outer, inner in pairwise(loops):
        if only_statement(outer.op.body.block) is not inner.op:
            raise self.error(f'expected loop "{outer.name}" to hold loop "{inner.name}" alone')
        if outer.op.induction_var in dependence.of_all(inner.op.operands):
            raise self.error(f'the bounds of loop "{inner.name}" depend on loop "{outer.name}"')
    return extents


def _check_inits(self: ScheduleState, loops: Sequence[Loop]) -> None:
    """Refuses to fuse loops of a reduction with loops over its result where the reduction may be empty."""
    dependence = Dependence(is_loop_variable)
    fused = {loop.op.induction_var for loop in loops}
    for block in blocks_in(loops[-1].op):
        spatial = dependence.of_all(it.binding for it in block.iterators if it.kind is IteratorKind.SPATIAL)
        others = dependence.of_all(it.binding for it in block.iterators if it.kind is not IteratorKind.SPATIAL)
        if block.init is None or fused.isdisjoint(spatial) or fused.isdisjoint(others):
            continue
        for loop in enclosing_loops(block):
            if loop.induction_var in others and self.space.less_equal(1, self.extent(loop)) is not True:
                raise self.error(
                    f'loop "{loop.induction_var.name_hint}" of the reduction "{block.block_name.data}" may be empty, '
                    "and its init would not run; use decompose_reduction first"
                )


def _replace_variable(self: ScheduleState, loop: ForOp, index: Dim) -> None:
    if users := users_of(loop.induction_var):
        value = Materializer(self.func, self.space, before_all(users)).emit(index)
        loop.induction_var.replace_all_uses_with(value)


@primitive
def loop_partition(self: ScheduleState, loop: Loop, factors: Sequence[Factor]) -> tuple[Loop, ...]:
    """Partitions the range of a loop into parts of the given lengths and the rest; one length may be `None`.

    rewrite:
        for i in n: A(i)
        -> for i in p: A(i)
           for i in p to n: A(i)

    Where a size decides whether the lengths fit, parts at the front are taken from what there is, and others may be
    empty. Conditions that always hold in a part go there. Handles of blocks are those of the first part from now on.
    The parts of loop `i` are called `i0`, `i1`, ..., and block `B` is `B_i0`, `B_i1`, ... in them.

    Refuses:
    1. a loop that is not serial, or whose bounds come from memory;
    2. no length, or more than one `None`;
    3. lengths over other symbols than those of the function, that may be negative, are 0, or together exceed the
       extent;
    4. lengths that leave a single part;
    5. reductions with init over the loop.
    """
    check_serial(self, loop)
    dims = _cuts(self, loop, factors)
    dependence = Dependence(is_loop_variable)
    for block in blocks_in(loop.op):
        bindings = [it.binding for it in block.iterators if it.kind.is_reduced]
        if block.init is not None and loop.op.induction_var in dependence.of_all(bindings):
            raise self.error(
                f'block "{block.block_name.data}" has an init and is reduced over loop "{loop.name}"; '
                "use decompose_reduction first"
            )
    emitter = Materializer(self.func, self.space, InsertPoint.before(loop.op))
    values = [emitter.emit(dim) for dim in dims]
    ends = [*values, loop.op.upper]
    parts = [loop.op, *(_part(self, loop.op, lower, upper) for lower, upper in pairwise(ends))]
    loop.op.operands[len(loop.op.operands) - 1] = values[0]
    for before, part in pairwise(parts):
        Rewriter.insert_op(part, InsertPoint.after(before))
    _name_parts(self, parts, loop.name)
    self.changed()
    for part in parts:
        prove_conditions(self, part)
    return tuple(self.loop(part) for part in parts)


def _cuts(self: ScheduleState, loop: Loop, factors: Sequence[Factor]) -> list[Dim]:
    """Where the parts begin, but for the first."""
    known = [None if factor is None else to_dim(factor) for factor in factors]
    given = _known(known)
    if not given or len(given) < len(known) - 1:
        raise self.error(f"expected at least one length and at most one None, got {as_list(factors)}")
    rest = self.extent(loop.op) - total(given)
    for length in (*given, rest):
        if length is not rest and length.is_constant and not self.space.less_equal(1, length):
            raise self.error(f"expected lengths of at least 1, got {length}")
        if unknown := length.symbols.difference(self.func.symbol_names):
            raise self.error(f'length {length} uses "{min(unknown)}", which is no symbol of the function')
        known_length = self.space.less_equal(0, length)
        if known_length is False or (known_length is None and length is not rest):
            part = "what is left" if length is rest else "the length of a part"
            raise self.error(f"{part}, {length}, is not known to be at least 0")
    cuts = _starts(known, self.lower(loop.op), self.extent(loop.op), fits=self.space.less_equal(0, rest) is True)
    cuts = cuts if None in known or rest.terms else cuts[:-1]
    if not cuts:
        raise self.error(f"expected at least two parts, got one with all {self.extent(loop.op)} iterations")
    return cuts


def _starts(lengths: Sequence[Dim | None], first: Dim, extent: Dim, *, fits: bool) -> list[Dim]:
    """Where parts end, but for the last; `None` is what the others leave, at the end if no length is `None`.

    Where it is not known that all fit, those in front come first: no part ends after the loop.
    """
    rest = lengths.index(None) if None in lengths else len(lengths)
    front = list(accumulate(_known(lengths[:rest]), initial=first))[1:]
    back = list(accumulate(_known(lengths[:rest:-1]), Dim.__sub__, initial=first + extent))[:0:-1]
    if fits:
        return [*front, *back]
    front = [minimum(end, first + extent) for end in front]
    return [*front, *(maximum(start, (front or [first])[-1]) for start in back)]


def _known(lengths: Sequence[Dim | None]) -> list[Dim]:
    return [length for length in lengths if length is not None]


def _name_parts(self: ScheduleState, parts: Sequence[ForOp], loop: str) -> None:
    for number, part in enumerate(parts):
        part.induction_var.name_hint = name = f"{loop}{number}"
        for block in blocks_in(part):
            block.block_name = StringAttr(unique_block_name(self.func, f"{block.block_name.data}_{name}", block))


def _part(self: ScheduleState, loop: ForOp, lower: SSAValue, upper: SSAValue) -> ForOp:
    return ForOp(
        upper,
        loop.body.clone(),
        lower=lower,
        annotations=None if loop.annotations is None else dict(loop.annotations.data),
    )


@primitive
def merge(self: ScheduleState, *loops: Loop) -> Loop:
    """Fuses consecutive loops of the same range into one loop that runs their bodies in turn.

    rewrite:
        for i in n: A(i)
        for i in n: B(i)
        -> for i in n: A(i); B(i)

    Of loops in different nests, those around them are merged, too: all that hold one of the loops and not the others.
    Returns the innermost loop that was made.

    Refuses:
    1. fewer than two loops, loops that are not serial, and loops with annotations;
    2. loops at different depths below what is around all of them, and loops around them that hold something else;
    3. loops that do not follow each other, in the order given;
    4. different lower bounds or extents;
    5. bodies that share elements of a buffer across iterations.
    """
    levels = _levels(self, loops)
    same: dict[str, Dim] = {}
    for level in levels:
        _check_neighbours(self, level, same, outermost=level is levels[0])
        same |= {self.symbol(op).as_symbol or "": self.symbol(level[0]) for op in level}
        variable = self.symbol(level[0])
        names = set[str]().union(*(loop_names(self.space, loop) for loop in level))
        by_buffer: dict[SSAValue, dict[ForOp, list[Access]]] = {}
        for loop in level:
            for access in accesses_in(self.space, loop):
                axes = tuple(Axis(axis.low and axis.low.substitute(same), axis.width) for axis in access.axes)
                moved = Access(access.op, access.buffer, access.is_store, axes)
                by_buffer.setdefault(access.buffer, {}).setdefault(loop, []).append(moved)
        for buffer, users in by_buffer.items():
            accesses = [access for found in users.values() for access in found]
            if len(users) < 2 or not any(access.is_store for access in accesses):
                continue
            rows = list(zip(*{access.axes for access in accesses}, strict=True))
            if not determine(self.space, rows, variable, names):
                raise self.error(f'the loops share elements of buffer "{buffer.name_hint}" across iterations')
    for level in levels:
        first = level[0]
        for op in level[1:]:
            op.induction_var.replace_all_uses_with(first.induction_var)
            for between in _between(first, op) or ():
                between.detach()
                Rewriter.insert_op(between, InsertPoint.before(first))
            move_ops(op.body.block, first.body.block)
            Rewriter.erase_op(op)
    return loops[0]


def _levels(self: ScheduleState, loops: Sequence[Loop]) -> list[list[ForOp]]:
    """The loops that become one, outermost first: those around the given ones that hold not all of them."""
    if len(loops) < 2:
        raise self.error(f"expected at least two loops, got {len(loops)}")
    paths = [_path(loop.op, [other.op for other in loops]) for loop in loops]
    for loop, path in zip(loops[1:], paths[1:], strict=True):
        if len(path) != len(paths[0]):
            raise self.error(
                f'loops "{loops[0].name}" and "{loop.name}" stand in {len(paths[0]) - 1} and {len(path) - 1} loops '
                "of their own"
            )
    for path in paths:
        for outer, inner in pairwise(path):
            if any(op is not inner for op in statements(outer.body.block)):
                names = outer.induction_var.name_hint, inner.induction_var.name_hint
                raise self.error(
                    f'loop "{names[0]}" holds more than loop "{names[1]}", so they cannot be merged together'
                )
    return [list(level) for level in zip(*paths, strict=True)]


def _path(loop: ForOp, loops: Sequence[ForOp]) -> list[ForOp]:
    """The loops around a loop that do not hold all of the loops, outermost first, and itself."""
    found = [loop]
    for op in ancestors(loop):
        if not isinstance(op, ForOp) or all(is_inside(other, op) for other in loops):
            break
        found.insert(0, op)
    return found


def _check_neighbours(self: ScheduleState, level: Sequence[ForOp], same: Mapping[str, Dim], *, outermost: bool) -> None:
    """Refuses loops that are no serial neighbours of one range, where outer loops have the `same` variables."""
    for op in level:
        check_serial(self, self.loop(op))
        if op.annotations is not None:
            names = ", ".join(f'"{name}"' for name in op.annotations.data)
            raise self.error(f'expected loops without annotations, got {names} of loop "{op.induction_var.name_hint}"')
    for one, other in pairwise(level):
        names = f'"{one.induction_var.name_hint}" and "{other.induction_var.name_hint}"'
        between = _between(one, other) if outermost else []
        if between is None or not all(isinstance(op, AllocBufferOp) or is_index_op(op) for op in between):
            name = other.induction_var.name_hint
            raise self.error(f'loop "{name}" does not come right after loop "{one.induction_var.name_hint}"')
        lowers = [self.lower(op).substitute(same) for op in (one, other)]
        extents = [self.extent(op).substitute(same) for op in (one, other)]
        if lowers[0] is not lowers[1]:
            raise self.error(f"loops {names} begin at {lowers[0]} and {lowers[1]}")
        if self.space.prover.equal(*extents) is not True:
            raise self.error(f"loops {names} have extents {extents[0]} and {extents[1]}")


def _between(one: Operation, other: Operation) -> list[Operation] | None:
    """The ops between two ops of one block; `None` if they are not in this order in one block."""
    found: list[Operation] = []
    current = one.next_op
    while current is not None and current is not other:
        found.append(current)
        current = current.next_op
    return None if current is None else found
