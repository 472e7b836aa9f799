"""`insert-kills`: every value that owns memory is ended after its last use; `remove-kills`: the compiler decides for
itself where values end.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from lowering.diagnostics import fail
from lowering.locations import inherit_location
from lowering.registry import Pass
from lowering.relax.convert_dataflow import refuse_pure_regions
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.analysis.aliases import views
from relax_dialect.ops.binding import CheckArgsOp, GuardOp, MatchCastOp
from relax_dialect.ops.control_flow import IfOp, YieldOp
from relax_dialect.ops.memory import KillOp, StorageTensorOp
from relax_dialect.ops.structure import ClosureOp, FuncOp, ReturnOp
from relax_dialect.struct_info.types import PrimType


class InsertKillsPass(ModulePass):
    """Inserts a `relax.kill` after the last use of every value that holds memory.

    Before:

    ```mlir
    %a = relax.alloc_tensor : !relax.tensor<[n], f32>
    relax.call_kernel @exp(%x, %a) sizes [n]
    relax.call_packed "print"(%a)
    relax.return %x
    ```

    After:

    ```mlir
    %a = relax.alloc_tensor : !relax.tensor<[n], f32>
    relax.call_kernel @exp(%x, %a) sizes [n]
    relax.call_packed "print"(%a)
    relax.kill %a
    relax.return %x
    ```

    Ended are results of ops, in the block that made them; a use in a nested region counts as a use by the op that has
    the region. Not ended: what is used last right before the function returns, which ends it too; prim values, tensors
    inside a storage (the storage is, after the last of them), parameters, also when checked (they are
    the caller's), and what the block's terminator passes on. Expects `lambda-lift`, `to-non-dataflow` and `fuse-tir`:
    closures and regions of pure ops are refused. Idempotent.
    """

    name = "insert-kills"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Visits every block of every function."""
        functions = [func for func in op.ops if isinstance(func, FuncOp)]
        inner = [each for func in functions for each in func.walk()]
        refuse_pure_regions((each for each in inner if each.has_trait(IsTerminator)), "the memory of values ends in it")
        for func in functions:
            for inner in func.walk():
                if isinstance(inner, ClosureOp):
                    fail(inner, "has values that end with its own calls", "run 'lambda-lift' before")
            for block in [block for op in func.walk() for region in op.regions for block in region.blocks]:
                _end_values(block)
            if func.function_type.pure and any(isinstance(each, KillOp) for each in func.walk()):
                # To free what the function made itself is no effect that a caller sees.
                func.properties["force_pure"] = UnitAttr()


def _end_values(block: Block) -> None:
    order = {op: index for index, op in enumerate(block.ops)}
    for op in list(block.ops):
        if isinstance(op, KillOp | StorageTensorOp | CheckArgsOp | MatchCastOp | GuardOp):
            continue
        for result in op.results:
            if not isinstance(result.type, PrimType) and not any(
                isinstance(use.operation, KillOp) for use in result.uses
            ):
                _end(result, order, block)


def _ends_function(op: Operation) -> bool:
    """Whether the function returns right after `op`: its frame ends all values, and a call stays in tail position."""
    after = op.next_op
    while isinstance(after, KillOp):
        after = after.next_op
    if isinstance(after, YieldOp):
        parent = after.parent_op()
        return isinstance(parent, IfOp) and _ends_function(parent)
    return isinstance(after, ReturnOp)


def _end(value: SSAValue, order: dict[Operation, int], block: Block) -> None:
    last = value.owner
    if not isinstance(last, Operation):
        return
    for alias in views(value):
        for use in alias.uses:
            user = block.find_ancestor_op_in_block(use.operation)
            if user is not None and user in order and order[user] > order[last]:
                last = user
    if last.has_trait(IsTerminator) or _ends_function(last):
        return
    kill = KillOp(value)
    inherit_location(last, kill)
    Rewriter.insert_op(kill, InsertPoint.after(last))


class RemoveKillsPass(Pass):
    """Removes every `relax.kill`.

    Before:

    ```mlir
    %y = relax.add %x, %zero
    relax.kill %x
    relax.return %y
    ```

    After:

    ```mlir
    %y = relax.add %x, %zero
    relax.return %y
    ```

    A kill speaks of the values as they are written. Passes let values share memory and put one instead of another
    (here `%x` in that of `%y`), so `insert-kills` ends what is left after them. Idempotent; refuses nothing.
    """

    name = "remove-kills"
    requires = ("relax.kill",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, [EraseKill()])


class EraseKill(RewritePattern):
    """A kill says nothing once values are replaced by others: `kill(x)  ->`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: KillOp, rewriter: PatternRewriter) -> None:
        rewriter.erase(op)
