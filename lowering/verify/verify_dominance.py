"""The pass `verify-dominance`."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowering.diagnostics import refuse
from lowering.verify.dominance import dominance_findings


class VerifyDominancePass(ModulePass):
    """Rejects a module in which a use is not dominated by its definition; changes nothing.

    Values: the definition dominates the use, over blocks, nested regions and isolation. Symbols: a symbol named in a
    type or attribute is used only where a witness dominates, and no symbol is bound again where it is in scope.

    ```mlir
    %b = arith.addi %a, %a : i32     // error: 'arith.addi' op operand #0 (%a) is used before it is defined
    %a = arith.constant 1 : i32
    ```

    Expects ops whose own verifiers hold. Reports all independent errors at once, each at its op.
    """

    name = "verify-dominance"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        refuse(dominance_findings(op))
