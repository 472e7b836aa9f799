"""Fusing a nest of loops into one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xdsl.ir import Attribute
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.dependence import Dependence, is_loop_variable
from tir_dialect.analysis.structure import enclosing_loops
from tir_dialect.dims import Dim, floordiv, mod, product
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.handles import Loop
from tir_dialect.schedule.primitives.splitting import check_serial
from tir_dialect.schedule.rewriting.edits import before_all
from tir_dialect.schedule.rewriting.materialize import Materializer
from tir_dialect.schedule.rewriting.normalize import simplify_bindings
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.statements import blocks_in, only_statement, users_of
from tir_dialect.types import IteratorKind


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
    annotations = _annotations(self, loops)
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


def _annotations(self: ScheduleState, loops: Sequence[Loop]) -> dict[str, Attribute]:
    """What is said about the loops; refuses those of which different things are said."""
    found: dict[str, Attribute] = {}
    for loop in loops:
        if loop.op.annotations is None:
            continue
        for key, value in loop.op.annotations.data.items():
            if (other := found.setdefault(key, value)) != value:
                raise self.error(
                    f'expected one annotation "{key}", got {value} of loop "{loop.name}" and {other} outside of it'
                )
    return found


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
