"""`defer-unknown-types`: ops on values of unknown rank or dtype are compiled when the values are known."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from lowering.diagnostics import fail
from lowering.relax.deferred.outline import defer, groups, is_static
from relax_dialect.ops.structure import FuncOp


class DeferUnknownTypesPass(ModulePass):
    """Outlines operators on values of unknown rank or dtype, as text that is compiled when it is called.

    Before:

    ```mlir
    %y = relax.exp %x : !relax.tensor<*, f32>
    %z = relax.add %y, %w : !relax.tensor<*, f32>
    ```

    After:

    ```mlir
    %0 = relax.string "relax.func @main(%x: ..., %w: ...) -> !relax.object { ... }"
    %z = relax.call_pure_packed "vm.builtin.run_deferred"(%0, %x, %w) : !relax.tensor<*, f32>
    ```

    At run time the function is compiled once for each combination of ranks and dtypes, or of shapes if its ranks follow
    from these only. Operators that follow each other are in one function. What is known stays as it is. Refuses an op
    whose result has an unknown rank though everything is known about its operands. Idempotent.
    """

    name = "defer-unknown-types"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Visits every function in program order."""
        for func in op.ops:
            if isinstance(func, FuncOp):
                _defer_in(func.body.block, func.sym_name.data)


def _defer_in(block: Block, function: str) -> None:
    for op in block.ops:
        for inner in (inner for region in op.regions for inner in region.blocks):
            _defer_in(inner, function)
    for group in list(groups(block)):
        for op in group:
            _refuse_hopeless(op)
        defer(group, function)


def _refuse_hopeless(op: Operation) -> None:
    if all(map(is_static, op.operand_types)):
        got = ", ".join(map(str, op.result_types))
        hint = "refine the result with 'relax.match_cast' of a packed function, or another operator"
        fail(op, f"expected a rank and dtype that follow from the operands, got {got}", hint)
