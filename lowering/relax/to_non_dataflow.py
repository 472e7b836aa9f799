"""`to-non-dataflow`: dataflow regions dissolve into the code around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint

from lowering.diagnostics import Finding, refuse
from lowering.passes import Pass
from lowering.relax.substitution import all_symbols, bindings, substitute_in
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.ops.dataflow import DataflowOp
from relax_dialect.ops.fused import FusedOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.scope import symbols_witnessed
from relax_dialect.struct_info.symbols import fresh_name
from tir_dialect.dims import symbol


class ToNonDataflowPass(Pass):
    """Inlines every dataflow region into the function.

    Before:

    ```mlir
    %gv = relax.dataflow {
      %lv = relax.exp %x
      relax.output %lv
    }
    relax.return %gv
    ```

    After:

    ```mlir
    %lv = relax.exp %x
    relax.return %lv
    ```

    Later passes insert ops with effects, which a dataflow region must not hold. A symbol that a region binds for itself
    gets another name if the function binds one of that name elsewhere too. Idempotent; touches nothing else.
    """

    name = "to-non-dataflow"
    removes = ("relax.dataflow", "relax.output")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.ops:
            if isinstance(func, FuncOp) and any(isinstance(inner, DataflowOp) for inner in func.walk()):
                apply_patterns(func, [InlineDataflow(SymbolScopes((func,), all_symbols(func)))])


class InlineDataflow(RewritePattern):
    """A dataflow region is the ops in it: `y = dataflow { v = exp(x); output v }  ->  y = exp(x)`."""

    def __init__(self, scopes: SymbolScopes):
        self._scopes = scopes

    @op_rewrite_pattern
    def match_and_rewrite(self, op: DataflowOp, rewriter: PatternRewriter) -> None:
        self._scopes.open(op)
        output = op.output
        values = output.values
        for result, value in zip(op.results, values, strict=True):
            value.name_hint = value.name_hint or result.name_hint
            rewriter.replace_all_uses_with(result, value)
        rewriter.erase(output)
        rewriter.inline_block(op.body.block, InsertPoint.before(op))
        rewriter.erase(op)


class SymbolScopes:
    """How often the symbols of a function are bound, so that those of a region may leave it."""

    def __init__(self, ops: Iterable[Operation], taken: set[str]):
        """The symbols that are bound in `ops`; new ones are none of `taken`, to which they are added."""
        self._taken = taken
        self._count = Counter(name for op in ops for name in bindings(op))

    def open(self, dataflow: DataflowOp) -> None:
        """Gives the symbols that a region binds for itself names that are bound nowhere else."""
        passed_on = dataflow.result_witnesses
        renamed: dict[str, str] = {}
        for op in dataflow.body.ops:
            for name, witness in symbols_witnessed(op).items():
                if name not in passed_on and self._count[name] > 1:
                    renamed[name] = witness.name_hint = fresh_name(name, self._taken)
                    self._taken.add(renamed[name])
                    self._count.subtract([name])
        substitute_in(dataflow.body.ops, {old: symbol(new) for old, new in renamed.items()})


def dissolve(dataflow: DataflowOp, scopes: SymbolScopes) -> None:
    """Puts the ops of one region instead of it, and its outputs in that of its results."""
    InlineDataflow(scopes).match_and_rewrite(dataflow, PatternRewriter(dataflow))


def refuse_pure_regions(ops: Iterable[Operation], why: str) -> None:
    """Refuses ops that are in a dataflow region or a group, which hold pure ops only, where effects are to be put."""
    regions = {op: region for op in ops if isinstance(region := op.parent_op(), DataflowOp | FusedOp)}
    refuse(
        Finding.at(
            op, f"is in a '{region.name}', whose ops are pure, but {why}", f"run '{_DISSOLVED_BY[type(region)]}' before"
        )
        for op, region in regions.items()
    )


_DISSOLVED_BY: dict[type[Operation], str] = {DataflowOp: "to-non-dataflow", FusedOp: "fuse-tir"}
