"""`hoist-branch-results`: both branches of an `if` write their result into memory that is made before it."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.registry import Pass
from relax_dialect.analysis.aliases import leaves
from relax_dialect.ops.control_flow import IfOp, YieldOp
from relax_dialect.ops.memory import AllocTensorOp
from relax_dialect.struct_info.types import as_struct_infos


class HoistBranchResultsPass(Pass):
    """Hoists the allocation of a branch's result out of the branch, so that `plan-memory` can place it.

    Before:

    ```mlir
    %r = relax.if %c {
      %a = relax.alloc_tensor : !relax.tensor<[n], f32>
      relax.call_kernel @exp(%x, %a) sizes [n]
      relax.yield %a
    } else {
      %b = relax.alloc_tensor : !relax.tensor<[n], f32>
      relax.call_kernel @sin(%x, %b) sizes [n]
      relax.yield %b
    }
    relax.call_kernel @sum(%r, %s) sizes [n]
    ```

    After:

    ```mlir
    %r = relax.alloc_tensor : !relax.tensor<[n], f32>
    relax.if %c {
      relax.call_kernel @exp(%x, %r) sizes [n]
      relax.yield
    } else {
      relax.call_kernel @sin(%x, %r) sizes [n]
      relax.yield
    }
    relax.call_kernel @sum(%r, %s) sizes [n]
    ```

    Both branches yield a tensor that they make, each once and of the result's own type, and nobody else may keep the
    result; then it needs no memory of its own. An `if` whose results witness symbols stays, and so do results that
    leave the function: where these are returned at once, a branch returns by itself. Inner branches come first.
    Expects `lower-call-tir`, before `use-inplace-calls`. Idempotent.
    """

    name = "hoist-branch-results"
    requires = ("relax.if",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """From the inside outwards."""
        for inner in list(op.walk(region_first=True)):
            if isinstance(inner, IfOp) and not inner.result_witnesses:
                _hoist(inner)


def _hoist(op: IfOp) -> None:
    hoisted = {result: made for result in op.res if (made := _made(op, result)) is not None}
    if not hoisted:
        return
    for result, made in hoisted.items():
        alloc = AllocTensorOp(made[0].result.type)
        alloc.result.name_hint = result.name_hint
        inherit_location(op, alloc)
        Rewriter.insert_op(alloc, InsertPoint.before(op))
        result.replace_all_uses_with(alloc.result)
        for old in made:
            old.result.replace_uses_with_if(alloc.result, lambda use: not isinstance(use.operation, YieldOp))
    kept = [result for result in op.res if result not in hoisted]
    for region in (op.then_region, op.else_region):
        indices = [result.index for result in kept]
        end = region.block.last_op
        if isinstance(end, YieldOp):
            new = YieldOp(*(end.operands[index] for index in indices))
            inherit_location(end, new)
            Rewriter.replace_op(end, new)
    for old in (each for made in hoisted.values() for each in made):
        Rewriter.erase_op(old)
    types = as_struct_infos(result.type for result in kept)
    one, other = (op.detach_region(region) for region in (op.then_region, op.else_region))
    new = IfOp(op.condition, one, other, types)
    new.attributes |= op.attributes
    inherit_location(op, new)
    for old, result in zip(kept, new.res, strict=True):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    Rewriter.insert_op(new, InsertPoint.before(op))
    Rewriter.erase_op(op)


def _made(op: IfOp, result: OpResult) -> tuple[AllocTensorOp, AllocTensorOp] | None:
    """The tensors that the branches make for a result, if it may be made before them."""
    if leaves(result, past_branches=True):
        return None
    found = [_alloc(region, result) for region in (op.then_region, op.else_region)]
    one, other = found
    return None if one is None or other is None else (one, other)


def _alloc(region: Region, result: OpResult) -> AllocTensorOp | None:
    end = region.block.last_op
    value: SSAValue | None = end.operands[result.index] if isinstance(end, YieldOp) else None
    made = None if value is None else value.owner
    if not isinstance(made, AllocTensorOp) or made.shape is not None or made.result.type != result.type:
        return None
    once = sum(isinstance(use.operation, YieldOp) for use in made.result.uses) == 1
    return made if once and made.parent is region.block else None
