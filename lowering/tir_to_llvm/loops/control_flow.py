"""Loops and branches, as basic blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.rewriting import op_rewrite_pattern
from lowering.tir_to_llvm.emitter import Emitter
from lowering.tir_to_llvm.loops.lane_values import Lanes, LaneValue, is_varying
from lowering.tir_to_llvm.loops.parallel import lower_parallel
from lowering.tir_to_llvm.loops.serial import lower_serial, with_memory
from lowering.tir_to_llvm.loops.vectorized import lower_vectorized, runs_for_no_lane
from lowering.tir_to_llvm.memory.allocation import release
from tir_dialect.ops.control_flow import ConditionOp, IfOp, WhileOp, YieldOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.types import LoopKind


def lower_block(e: Emitter, block: Block) -> None:
    """Lowers the ops of a region and releases the memory that they allocate."""
    mark = len(e.state.heap)
    e.lower(block)
    release(e, mark)


class LowerFor(RewritePattern):
    """A loop of any kind; loops bound to GPU threads run serially."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ForOp, e: Emitter) -> None:
        match op.kind.data:
            case LoopKind.PARALLEL if not e.state.in_parallel and e.lanes is None:
                lower_parallel(e, op)
            case LoopKind.VECTORIZED if e.lanes is None:
                lower_vectorized(e, op)
            case _:
                lower_serial(e, op)


class LowerWhile(RewritePattern):
    """A while loop."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: WhileOp, e: Emitter) -> None:

        def emit() -> None:
            b = e.b
            head, inside, after = b.new_block(), b.new_block(), b.new_block()
            b.branch(head)
            b.start(head)
            e.lower(op.before.block)
            last = cast(ConditionOp, op.before.block.last_op)
            b.branch_if(e.scalar(last.condition), inside, after)
            b.start(inside)
            e.lower(op.body.block)
            b.branch(head)
            b.start(after)

        with_memory(e, op, emit)


class LowerTerminator(RewritePattern):
    """Nothing: the parent op reads the operands of its terminators."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ConditionOp | YieldOp, e: Emitter) -> None:
        return


class LowerIf(RewritePattern):
    """A branch; if the condition differs between lanes, both regions, each masked to its lanes."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: IfOp, e: Emitter) -> None:
        if e.varies(op.condition):
            _lower_masked_if(e, op)
            return
        b = e.b
        then_block, else_block, after = b.new_block(), b.new_block(), b.new_block()
        b.branch_if(e.scalar(op.condition), then_block, else_block if op.has_else else after)
        ends: list[tuple[Block, list[LaneValue]]] = []
        for block, region in ((then_block, op.then_body), (else_block, op.else_body)):
            if block is then_block or op.has_else:
                b.start(block)
                lower_block(e, region.block)
                ends.append((b.block, _yielded(e, region.block)))
        _merge(e, op, ends, after)


def _yielded(e: Emitter, block: Block) -> list[LaneValue]:
    last = block.last_op
    return [e.values[value] for value in last.values] if isinstance(last, YieldOp) else []


def _merge(e: Emitter, branch: IfOp, ends: Sequence[tuple[Block, list[LaneValue]]], after: Block) -> None:
    """Joins branches; a result is a vector if one of the branches yields a different value for each lane."""
    b = e.b
    varying = [any(is_varying(values[index]) for _, values in ends) for index in range(len(branch.outputs))]
    for block, values in ends:
        b.block = block
        plain = [
            e.vector(value) if varies and e.lanes is not None else cast(SSAValue, value)
            for value, varies in zip(values, varying, strict=True)
        ]
        for index, value in enumerate(plain):
            if len(after.args) <= index:
                after.insert_arg(value.type, index)
        b.branch(after, *plain)
    b.start(after)
    for output, argument in zip(branch.outputs, after.args, strict=True):
        e.define(output, argument)


def _lower_masked_if(e: Emitter, branch: IfOp) -> None:
    outer = cast(Lanes, e.lanes)
    condition = e.vector(e.values[branch.condition])
    opposite = e.b.once(llvm.XOrOp, (condition, e.b.integer(1, condition.type)), condition.type)
    chosen = _run_masked(e, branch.then_body.block, outer, condition)
    others = _run_masked(e, branch.else_body.block, outer, opposite) if branch.has_else else []
    for output, then, otherwise in zip(branch.outputs, chosen, others, strict=True):
        e.define(output, e.b.select(condition, then, otherwise))


def _run_masked(e: Emitter, block: Block, outer: Lanes, condition: SSAValue) -> list[SSAValue]:
    """A region for the lanes in which the condition holds; unless it is short, it is skipped if there are none.

    Gives what it yields as vectors; the lanes that do not take part have unspecified values.
    """
    b = e.b
    inner = outer.restricted(b, condition)
    assert inner.mask is not None  # restricted lanes have a mask
    if runs_for_no_lane(e, block):
        return _yielded_by_lanes(e, block, outer, inner)
    some = b.intrinsic(f"llvm.vector.reduce.or.v{inner.count}i1", (inner.mask,), i1)
    inside, skipped, after = b.new_block(), b.new_block(), b.new_block()
    b.branch_if(some, inside, skipped)
    b.start(inside)
    values = _yielded_by_lanes(e, block, outer, inner)
    for index, value in enumerate(values):
        after.insert_arg(value.type, index)
    b.branch(after, *values)
    b.start(skipped)
    b.branch(after, *[b.zero(value.type) for value in values])
    b.start(after)
    return list(after.args)


def _yielded_by_lanes(e: Emitter, block: Block, outer: Lanes, inner: Lanes) -> list[SSAValue]:
    """The region for some lanes, and what it yields, as vectors."""
    e.lanes = inner
    lower_block(e, block)
    values = [e.vector(value) for value in _yielded(e, block)]
    e.lanes = outer
    return values
