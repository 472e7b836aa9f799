"""`fuse-ops-by-pattern`: ops that a library can compute together become a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from lowering.byoc.backends import FusionPattern, find_backend
from lowering.locations import inherit_location
from relax_dialect.ops.control_flow import YieldOp
from relax_dialect.ops.fused import FusedOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.patterns import Match
from relax_dialect.scope import symbols_witnessed

CODEGEN = "codegen"
"""The attribute that names the backend of a group."""

COMPOSITES = "composites"
"""The attribute with the names of the patterns that a group was made by."""


@dataclass(frozen=True)
class FuseOpsByPatternPass(ModulePass):
    """Puts the matches of a backend's patterns into `relax.fused` groups.

    Before:

    ```mlir
    %0 = relax.matmul %x, %w
    %1 = relax.add %0, %b
    %2 = relax.exp %1
    ```

    After `fuse-ops-by-pattern{backend=blas}`:

    ```mlir
    %1 = relax.fused attributes {codegen = "blas", composites = ["blas.matmul_bias"]} {
      %0 = relax.matmul %x, %w
      %3 = relax.add %0, %b
      relax.yield %3
    }
    %2 = relax.exp %1
    ```

    Patterns are tried in their order; of two matches of one pattern that share ops, the later one in the program wins.
    A group stands where its last op stood. Groups are not looked into, so the pass is idempotent. Mirrors TVM's
    `FuseOpsByPattern`. Refuses a backend that there is not.
    """

    name = "fuse-ops-by-pattern"

    backend: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Function by function."""
        try:
            backend = find_backend(self.backend)
        except ValueError as error:
            raise PassFailedException(f"'{self.name}' {error}") from error
        for func in op.ops:
            if isinstance(func, FuncOp):
                group_matches(func, backend.patterns, backend.name)


def group_matches(root: Operation, patterns: Sequence[FusionPattern], backend: str) -> int:
    """Groups all matches inside `root`; gives how many there were."""
    return sum(_group_pattern(root, pattern, backend) for pattern in patterns)


def _group_pattern(root: Operation, fusion: FusionPattern, backend: str) -> int:
    count = 0
    for op in list(root.walk(reverse=True)):
        for result in op.results:
            if op.parent is None or isinstance(op.parent_op(), FusedOp):
                continue
            match = fusion.pattern.match(result)
            if match is not None and _can_group(match) and fusion.check(match):
                _group(match, fusion.name, backend)
                count += 1
    return count


def _can_group(match: Match) -> bool:
    """Groups have no control flow inside, and bind nothing for others."""
    return bool(match.ops) and not any(op.regions or symbols_witnessed(op) for op in match.ops)


def _group(match: Match, name: str, backend: str) -> None:
    last = match.ops[-1]
    marker = InsertPoint.after(last)
    body = Block()
    for op in match.ops:
        op.detach()
        body.add_op(op)
    yielded = YieldOp(*match.outputs)
    inherit_location(last, yielded)
    body.add_op(yielded)
    group = FusedOp(body)
    group.attributes |= {CODEGEN: StringAttr(backend), COMPOSITES: ArrayAttr([StringAttr(name)])}
    group.location = last.location
    Rewriter.insert_op(group, marker)
    for old, new in zip(match.outputs, group.res, strict=True):
        new.name_hint = old.name_hint
        old.replace_uses_with_if(new, lambda use: use.operation.parent is not body)
