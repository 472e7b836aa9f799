"""`merge-composites`: neighbouring groups for one backend become one group."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, OpResult
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from lowering.byoc.fuse_ops_by_pattern import CODEGEN, COMPOSITES
from lowering.locations import inherit_location
from relax_dialect.analysis.effects import unchanged_between
from relax_dialect.ops.control_flow import YieldOp
from relax_dialect.ops.fused import FusedOp


class MergeCompositesPass(ModulePass):
    """Merges a group into the one that uses its results, if both are of one backend: fewer calls of the library.

    Before:

    ```mlir
    %1 = relax.fused attributes {codegen = "blas", composites = ["blas.matmul"]} {
      %0 = relax.matmul %x, %w
      relax.yield %0
    }
    %3 = relax.fused attributes {codegen = "blas", composites = ["blas.matmul"]} {
      %2 = relax.matmul %1, %v
      relax.yield %2
    }
    ```

    After:

    ```mlir
    %3 = relax.fused attributes {codegen = "blas", composites = ["blas.matmul", "blas.matmul"]} {
      %0 = relax.matmul %x, %w
      %2 = relax.matmul %0, %v
      relax.yield %2
    }
    ```

    Two groups stay apart if an op between them uses the first. The merged group stands where the last one stood, and
    yields what others use. Idempotent, refuses nothing. Mirrors TVM's
    `MergeCompositeFunctions`.
    """

    name = "merge-composites"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Block by block; what uses the results of two parts joins one, and may find the other when that is done."""
        for block in [block for inner in op.walk() for region in inner.regions for block in region.blocks]:
            while parts := [members for members in _partition(block) if len(members) > 1]:
                for members in parts:
                    _merge(members)


def _partition(block: Block) -> list[list[FusedOp]]:
    """The groups of a block in parts that can be merged, each in program order."""
    position = {op: index for index, op in enumerate(block.ops)}
    parts: list[list[FusedOp]] = []
    part_of: dict[Operation, list[FusedOp]] = {}
    for op in block.ops:
        if not isinstance(op, FusedOp) or CODEGEN not in op.attributes:
            continue
        part = _choose(op, part_of, position)
        if part is None:
            part = list[FusedOp]()
            parts.append(part)
        part.append(op)
        part_of[op] = part
    return parts


def _choose(
    op: FusedOp, part_of: Mapping[Operation, list[FusedOp]], position: Mapping[Operation, int]
) -> list[FusedOp] | None:
    """The part of a producer that `op` can join."""
    for inner in op.body.block.ops:
        for operand in inner.operands:
            part = part_of.get(operand.owner) if isinstance(operand, OpResult) else None
            if part is None or _backend(part[0]) != _backend(op) or _is_used_before(part, op, position):
                continue
            reads = (value for member in part for each in member.body.block.ops for value in each.operands)
            if unchanged_between(reads, part[0], op):  # for the whole part will stand where `op` stands
                return part
    return None


def _backend(group: FusedOp) -> Attribute:
    return group.attributes[CODEGEN]


def _is_used_before(part: list[FusedOp], op: FusedOp, position: Mapping[Operation, int]) -> bool:
    """Whether an op before `op` and in no member uses a result of the part, which will stand where `op` stands."""
    for result in (result for member in part for result in member.results):
        for use in result.uses:
            user: Operation | None = use.operation
            while user is not None and user not in position:
                user = user.parent_op()
            if user is not None and user not in part and position[user] < position[op]:
                return True
    return False


def _merge(members: list[FusedOp]) -> None:
    last = members[-1]
    body = Block()
    for member in members:
        _move_ops(member, body)
    inside = set(body.ops)
    results = [result for op in body.ops for result in op.results]
    outputs = [each for each in results if any(use.operation not in inside for use in each.uses)]
    yielded = YieldOp(*outputs)
    inherit_location(last, yielded)
    body.add_op(yielded)
    group = FusedOp(body)
    composites = ArrayAttr([name for member in members for name in _composites(member)])
    group.attributes |= {CODEGEN: _backend(last), COMPOSITES: composites}
    group.location = last.location
    Rewriter.insert_op(group, InsertPoint.after(last))
    for old, new in zip(outputs, group.res, strict=True):
        new.name_hint = old.name_hint
        old.replace_uses_with_if(new, lambda use: use.operation.parent is not body)
    for member in members:
        Rewriter.erase_op(member)


def _move_ops(member: FusedOp, body: Block) -> None:
    """Moves the ops of a group; what used its results uses theirs."""
    for op in list(member.body.block.ops):
        if isinstance(op, YieldOp):
            for old, new in zip(member.res, op.operands, strict=True):
                new.name_hint = old.name_hint
                old.replace_all_uses_with(new)
            Rewriter.erase_op(op)
        else:
            op.detach()
            body.add_op(op)


def _composites(group: FusedOp) -> tuple[Attribute, ...]:
    names = group.attributes.get(COMPOSITES)
    return names.data if isa(names, ArrayAttr[Attribute]) else ()
