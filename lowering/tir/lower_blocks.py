"""`lower-init-blocks`: inits become blocks of their own; `lower-blocks`: blocks are inlined, iterators become their
bindings, predicates become branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.registry import Pass
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from tir_dialect.analysis.init import InitPlacement, init_placement
from tir_dialect.analysis.structure import blocks_in
from tir_dialect.ops.blocks import BlockOp, InitOp, ReadsOp, WritesOp
from tir_dialect.ops.control_flow import ForOp, IfOp


class LowerInitBlocksPass(ModulePass):
    """Hoists every `tir.init`, where possible, into a block `<name>_init` before the loops of its reduction.

    ```mlir
    tir.for (%i, %j, %r) in (%m, %k, %n) {
      tir.block "matmul" (%vi = spatial %i in %m, %vj = spatial %j in %k, %vr = reduce %r in %n) {
        tir.init { init(%vi, %vj) }
        ...
    // becomes
    tir.for (%i, %j) in (%m, %k) {
      tir.block "matmul_init" (%vi = spatial %i in %m, %vj = spatial %j in %k) {
        init(%vi, %vj)
      }
      tir.for (%r) in (%n) {
        tir.block "matmul" (%vi = spatial %i in %m, %vj = spatial %j in %k, %vr = reduce %r in %n) {
          ...
    ```

    An empty reduction is initialized too. An init stays where its reduction shares a loop with a spatial iterator; then
    `lower-blocks` puts it after a branch. Running it again changes nothing. Accepts every valid module.
    """

    name = "lower-init-blocks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Outermost blocks first."""
        for block in blocks_in(op.body):
            init = block.init
            placement = init_placement(block) if init is not None else None
            if init is not None and placement is not None:
                _move(block, init, placement)


def _move(block: BlockOp, init: InitOp, placement: InitPlacement) -> None:
    values: dict[SSAValue, SSAValue] = {}
    point = InsertPoint.before(placement.loop)
    wanted = {*placement.loops, *placement.ops}
    for op in placement.loop.walk():
        if op not in wanted:
            continue
        if isinstance(op, ForOp):
            # The loop without its body.
            copy = ForOp(
                values.get(op.upper, op.upper),
                lower=None if op.lower is None else values.get(op.lower, op.lower),
                kind=op.kind.data,
                annotations=None if op.annotations is None else op.annotations.data,
                name_hint=op.induction_var.name_hint,
            )
            copy.location = op.location
            values[op.induction_var] = copy.induction_var
            Rewriter.insert_op(copy, point)
            point = InsertPoint.at_end(copy.body.block)
        else:
            Rewriter.insert_op(op.clone(values), point)
    for op in _init_block(block, init, placement, values):
        Rewriter.insert_op(op, point)
    Rewriter.erase_op(init)


def _init_block(
    block: BlockOp, init: InitOp, placement: InitPlacement, values: dict[SSAValue, SSAValue]
) -> list[Operation]:
    """The block that runs the init, after the ops that its condition takes."""
    spatial = [iterator for iterator in block.iterators if not iterator.kind.is_reduced]
    conditions = [values.get(condition, condition) for condition in placement.conditions]
    ops: list[Operation] = []

    def both(lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        ops.append(arith.AndIOp(lhs, rhs, IntegerType(1)))
        return ops[-1].results[0]

    new = BlockOp(
        f"{block.block_name.data}_init",
        [(it.kind, values.get(it.binding, it.binding), values.get(it.extent, it.extent)) for it in spatial],
        where=reduce(both, conditions) if conditions else None,
        name_hints=[iterator.value.name_hint for iterator in spatial],
    )
    inside = dict(values)
    for iterator, argument in zip(spatial, new.body.block.args, strict=True):
        inside[iterator.value] = argument
    # The ops of the init; an iterator that is reduced over is 0 there.
    used = {operand for op in init.body.block.walk() for operand in op.operands}
    for iterator in block.iterators:
        if iterator.kind.is_reduced and iterator.value in used:
            zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
            new.body.block.add_op(zero)
            inside[iterator.value] = zero.result
    for op in init.body.block.ops:
        new.body.block.add_op(op.clone(inside))
    ops.append(new)
    inherit_location(init, ops)
    return ops


class LowerBlocksPass(Pass):
    """Inlines every `tir.block`.

    ```mlir
    tir.block "sum" (%vi = spatial %i in %n, %vr = reduce %r in %m) where %inside {
      tir.init { init(%vi) }
      update(%vi, %vr)
    }
    // becomes
    tir.if %inside {
      %zero = arith.constant 0 : index
      %first = arith.cmpi eq, %r, %zero : index
      tir.if %first { init(%i) }
      update(%i, %r)
    }
    ```

    `tir.reads` and `tir.writes` are erased. Inits that can run before their reduction are first hoisted there, as by
    `lower-init-blocks`, so that empty reductions are initialised, too. Afterwards no block is left; run it again and
    nothing changes. Accepts every valid module.
    """

    name = "lower-blocks"
    removes = ("tir.block", "tir.init", "tir.reads", "tir.writes")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Innermost blocks first, so that each op moves once for every block around it."""
        LowerInitBlocksPass().apply(ctx, op)
        apply_patterns(op, [LowerBlock()], reverse=True)


class LowerBlock(RewritePattern):
    """A block without nested blocks is its body: `block (v = spatial i) where c { f(v) }  ->  if c { f(i) }`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: BlockOp, rewriter: PatternRewriter) -> None:
        for inner in list(op.body.block.ops):
            if isinstance(inner, ReadsOp | WritesOp):
                rewriter.erase(inner)
        init = op.init
        if init is not None:
            # Guards the init by a branch that is taken if all reduce and scan iterators are 0.
            at_zero = [iterator.binding for iterator in op.iterators if iterator.kind.is_reduced]
            conditions = [binding for binding in at_zero if not _is_zero(binding)]
            if not conditions:
                rewriter.inline_block(init.body.block, InsertPoint.before(init))
                rewriter.erase(init)
            else:
                ops = _all_zero(conditions)
                body = Region(Block())
                rewriter.inline_block(init.body.block, InsertPoint.at_end(body.block))
                branch = IfOp(ops[-1], body)
                inherit_location(init, [*ops, branch])
                rewriter.replace(init, [*ops, branch], [])
        point = InsertPoint.before(op)
        if op.condition is not None:
            guard = IfOp(op.condition)
            guard.location = op.location
            rewriter.insert(guard, point)
            point = InsertPoint.at_end(guard.then_body.block)
        rewriter.inline_block(op.body.block, point, list(op.bindings))
        rewriter.erase(op)


def _is_zero(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr) and owner.value.value.data == 0


def _all_zero(values: Sequence[SSAValue]) -> list[Operation]:
    """Ops of which the last one tells whether all values are 0."""
    zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
    tests = [arith.CmpiOp(value, zero, "eq") for value in values]
    ops: list[Operation] = [zero, *tests]

    def both(lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        ops.append(arith.AndIOp(lhs, rhs, IntegerType(1)))
        return ops[-1].results[0]

    reduce(both, (test.result for test in tests))
    return ops
