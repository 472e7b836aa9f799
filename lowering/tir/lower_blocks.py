"""`lower-blocks`: blocks are inlined, iterators become their bindings, predicates become branches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint

from lowering.locations import inherit_location
from lowering.passes import Pass
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from lowering.tir.lower_init_blocks import LowerInitBlocksPass
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.regions import ReadsOp, WritesOp


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
            _lower_init(op, init, rewriter)
        point = InsertPoint.before(op)
        if op.condition is not None:
            guard = IfOp(op.condition)
            guard.location = op.location
            rewriter.insert(guard, point)
            point = InsertPoint.at_end(guard.then_body.block)
        rewriter.inline_block(op.body.block, point, list(op.bindings))
        rewriter.erase(op)


def _lower_init(op: BlockOp, init: InitOp, rewriter: PatternRewriter) -> None:
    """Guards the init by a branch that is taken if all reduce and scan iterators are 0."""
    at_zero = [iterator.binding for iterator in op.iterators if iterator.kind.is_reduced]
    conditions = [binding for binding in at_zero if not _is_zero(binding)]
    if not conditions:
        rewriter.inline_block(init.body.block, InsertPoint.before(init))
        rewriter.erase(init)
        return
    ops = _all_zero(conditions)
    body = Region(Block())
    rewriter.inline_block(init.body.block, InsertPoint.at_end(body.block))
    branch = IfOp(ops[-1], body)
    inherit_location(init, [*ops, branch])
    rewriter.replace(init, [*ops, branch], [])


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
