"""Kernels that are made of other kernels, each once, and that take their place where all calls want them; and
`copy-constants`: what leaves the program, or is written in place, is a copy of a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.registry import Pass
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.analysis.aliases import Summaries, leaking_uses
from relax_dialect.analysis.effects import may_be_written
from relax_dialect.ops.manipulation import BroadcastToOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.scope import called_functions, symbol_name
from relax_dialect.struct_info.symbols import fresh_name
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.walking import walked


@dataclass
class Variants:
    """The kernels of a module that a pass made of others."""

    module: ModuleOp
    _made: dict[tuple[PrimFuncOp, Hashable], PrimFuncOp] = field(
        default_factory=dict[tuple[PrimFuncOp, Hashable], PrimFuncOp]
    )

    def of(self, func: PrimFuncOp, key: Hashable, suffix: str, make: Callable[[str], PrimFuncOp]) -> PrimFuncOp:
        """The variant of a kernel that a key stands for; `make` is given its name, when it is asked for first."""
        if (func, key) not in self._made:
            names = {found for op in self.module.ops if (found := symbol_name(op)) is not None}
            made = self._made[func, key] = make(fresh_name(f"{func.sym_name.data}_{suffix}", names))
            Rewriter.insert_op(made, InsertPoint.after(func))
        return self._made[func, key]

    def remove_unused(self) -> None:
        """Erases the kernels, and variants, of which only variants are called."""
        if not self._made:
            return
        used = {name for op in walked(self.module) for name in called_functions(op)}
        for func in {*(func for func, _ in self._made), *self._made.values()}:
            if func.sym_name.data not in used:
                Rewriter.erase_op(func)


class CopyConstantsPass(Pass):
    """Copies constants where others get hold of their memory.

    Before:

    ```mlir
    %c = relax.constant dense<0.0> : tensor<4xf32>
    %0 = relax.add %x, %c
    %1 = relax.tuple(%0, %c)
    relax.return %1
    ```

    After:

    ```mlir
    %c = relax.constant dense<0.0> : tensor<4xf32>
    %0 = relax.add %x, %c
    %shape = relax.shape [4]
    %copy = relax.broadcast_to %c, %shape
    %1 = relax.tuple(%0, %copy)
    relax.return %1
    ```

    A constant is the program's own: each run has to find it as it was. Others get hold of it where a function returns
    it or a closure captures it, where a packed function that may have effects gets it, and where `call_tir_inplace`
    writes into it, here or in a function that is called. Operators, kernels and pure packed functions only read. Where
    somebody may write into it before the function returns, all uses are of one copy: what is read after a write is what
    was written.

    Expects that constants are folded already, which would undo it. Idempotent.
    """

    name = "copy-constants"
    requires = ("relax.constant",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, [CopyLeakingConstant()])


class CopyLeakingConstant(RewritePattern):
    """Who may write into a constant or keep it gets a copy: `return c  ->  return broadcast_to(c, shape of c)`."""

    def __init__(self) -> None:
        self._summaries = Summaries()

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ConstantOp, rewriter: PatternRewriter) -> None:
        """Copies at each use, so that what only reads goes on with the constant."""
        uses = list(leaking_uses(op.result, self._summaries))
        if uses and may_be_written(op.result):
            uses = list(op.result.uses)
            copy = _copy(op, InsertPoint.after(op), rewriter)
            for use in uses:
                use.operation.operands[use.index] = copy
            return
        for use in uses:
            use.operation.operands[use.index] = _copy(op, InsertPoint.before(use.operation), rewriter)


def _copy(constant: ConstantOp, where: InsertPoint, rewriter: PatternRewriter) -> SSAValue:
    shape = ShapeOp(constant.result.type.known_dims or ())
    copy = BroadcastToOp(constant.result, shape)
    copy.result.name_hint = constant.result.name_hint
    made: list[Operation] = [shape, copy]
    inherit_location(constant, made)
    rewriter.insert(made, where)
    return copy.result
