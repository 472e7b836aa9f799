"""Dialect conversion: rewrite patterns that translate a function, op by op, into a function of another dialect.

A conversion pattern is a `RewritePattern` about a class of ops. Its rewriter is a `ConversionRewriter`, which has what
the operands became, and appends what the op becomes to a block of the new function. The old function stays as it is.
Every op is visited once, in program order; the pattern of an op with regions visits what is in them.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from lowering.rewriting import PatternIndex


class ConversionRewriter(PatternRewriter):
    """The rewriter of a conversion, with the patterns that it applies."""

    def __init__(self, patterns: PatternIndex, block: Block):
        """`block` is the first one of the new function."""
        super().__init__(InsertPoint.at_end(block))
        self.patterns = patterns

    def apply_pattern(self, op: Operation) -> bool:
        """Converts one op by the first pattern that is about it; whether there is one."""
        rewrite = self.patterns.rewrite_of(type(op))
        if rewrite is None:
            return False
        rewrite(op, self)
        return True
