"""`legalize-ops`: operators become calls of kernels."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from lowering.diagnostics import Finding, InvalidModule, fail, refuse
from lowering.relax.shapes.fresh import FreshSymbols
from lowering.relax_to_tir.context import KERNELS, REWRITES
from lowering.relax_to_tir.kernel import Kernel
from lowering.relax_to_tir.kernels import Kernels
from lowering.relax_to_tir.measure import measure, stem
from relax_dialect.ops.structure import FuncOp


class LegalizeOpsPass(ModulePass):
    """Replaces every operator by a `relax.call_tir` of a PrimFunc made from its tensor expression.

    Before:

    ```mlir
    %y = relax.exp %x : !relax.tensor<[n], f32>
    ```

    After:

    ```mlir
    tir.prim_func @exp[%n](%x: !tir.buffer<[n], f32>, %exp: !tir.buffer<[n], f32>) { ... }
    ...
    %y = relax.call_tir @exp(%x) : !relax.tensor<[n], f32>
    ```

    Equal kernels are made once. An op whose result has a size that depends on data (`relax.unique`) becomes two calls:
    the first finds out the sizes, which are bound to new symbols. Ops that only look at memory in another way
    (`relax.reshape` and its kin) stay. All operators that have no legalisation, or whose shapes are not known, are
    reported at once. Idempotent.
    """

    name = "legalize-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Legalises every function."""
        kernels = Kernels(op)
        findings: list[Finding] = []
        for func in [inner for inner in op.ops if isinstance(inner, FuncOp)]:
            names = FreshSymbols(func)
            for inner in list(func.walk()):
                try:
                    _legalize(inner, kernels, names)
                except InvalidModule as error:
                    findings += error.findings
        refuse(findings)


def _legalize(op: Operation, kernels: Kernels, names: FreshSymbols) -> None:
    rewrite, before = REWRITES[type(op)], op.prev_op
    values = None if rewrite is None else rewrite(op)
    if values is not None:
        made = _between(before, op)
        Rewriter.replace_op(op, [], values)
        for new in made:
            _legalize(new, kernels, names)
        return
    rule = KERNELS[type(op)]
    if rule is None:
        return
    kept = measure(op, kernels, names)  # which gives the op new results
    kernel = Kernel(op, op.results, kept)
    try:
        call = kernels.call(kernel, lambda: rule(kernel, op), stem(op))
    except (TypeError, ValueError) as error:
        if not str(error).startswith("te"):  # what the tensor expressions refuse; anything else is a bug of the rule
            raise
        types = ", ".join(str(operand.type) for operand in op.operands)
        fail(op, f"cannot be computed for ({types}): {error}", "convert the operands with relax.astype first")
    Rewriter.replace_op(op, call)


def _between(before: Operation | None, op: Operation) -> list[Operation]:
    """The ops that a rewrite has put in front of an op; `before` stood there until then."""
    found: list[Operation] = []
    while (previous := op.prev_op) is not before and previous is not None:
        found.insert(0, previous)
        op = previous
    return found
