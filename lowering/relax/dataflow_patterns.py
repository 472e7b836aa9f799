"""Dataflow patterns (`relax_dialect.patterns`) as rewrite patterns of the driver."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from typing_extensions import override
from xdsl.dialects.builtin import UnknownLoc
from xdsl.ir import Operation, OpResult
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from lowering.rewriting import IndexedPattern
from relax_dialect.patterns import Match, Pattern


class RewriteMatch(IndexedPattern):
    """A value that matches a dataflow pattern is made by other ops.

    The new ops are inserted before the last matched op, with its location and the names of the outputs. Their results
    need types that the uses accept. Apply it in reverse order: a match contains the ops before its last one, which may
    match alone, too.
    """

    def __init__(self, pattern: Pattern):
        self._pattern = pattern
        self._names = pattern.op_names

    @abstractmethod
    def replacement(self, found: Match) -> Sequence[Operation] | None:
        """The ops that replace a match, the last of which has one result for each output; `None` to leave it."""

    @override
    def may_match(self, op_class: type[Operation]) -> bool:
        return self._names is None or op_class.name in self._names

    @override
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        for result in op.results:
            found = self._pattern.match(result)
            made = self.replacement(found) if found is not None and found.ops else None
            if found is not None and made is not None:
                _replace_match(found, made, rewriter)
                return


def _replace_match(found: Match, made: Sequence[Operation], rewriter: PatternRewriter) -> None:
    last = found.ops[-1]
    for op in made:
        if isinstance(op.location, UnknownLoc):
            op.location = last.location
    rewriter.insert(made, InsertPoint.before(last))
    for output, new in zip(found.outputs, made[-1].results, strict=True):
        if isinstance(output, OpResult):
            new.name_hint = output.name_hint
            rewriter.handle_operation_replacement(
                output.op, [new if each is output else None for each in output.op.results]
            )
            rewriter.replace_all_uses_with(output, new)
    for op in reversed(found.ops):
        rewriter.erase(op)
