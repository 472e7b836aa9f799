"""A pass that finds the operator in graphs which spell it out; builds run it before they optimise the graph."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from relax_dialect.ops.structure import FuncOp
from relax_dialect.patterns import Match, is_const, is_op, wildcard
from smooth.ops import SoftSignOp
from xdsl_relax.extend import RewriteMatch, apply_patterns, register_pass


class FoldIntoSoftsign(RewriteMatch):
    """`x / (abs(x) + 1)  ->  smooth.softsign(x)`."""

    def __init__(self):
        self.x = wildcard()
        super().__init__(is_op("relax.divide")(self.x, is_op("relax.abs")(self.x) + is_const(1.0)))

    def replacement(self, found: Match) -> Sequence[Operation]:
        """One op."""
        return [SoftSignOp(found[self.x])]


class FindSoftsignPass(ModulePass):
    """Makes `smooth.softsign` of `x / (abs(x) + 1)`."""

    name = "find-softsign"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every function."""
        for func in op.ops:
            if isinstance(func, FuncOp):
                apply_patterns(func, [FoldIntoSoftsign()], reverse=True)


register_pass(FindSoftsignPass, before="optimize-graph")
