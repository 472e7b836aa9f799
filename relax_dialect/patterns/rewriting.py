"""Matches in programs, and what replaces them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xdsl.dialects.builtin import UnknownLoc
from xdsl.ir import Operation, OpResult
from xdsl.rewriter import InsertPoint, Rewriter

from relax_dialect.patterns.match import Match
from relax_dialect.patterns.nodes import Pattern

Replacement = Callable[[Match], Sequence[Operation] | None]
"""The ops that replace a match, whose last has one result for each output; `None` to leave it."""


def matches_in(root: Operation, pattern: Pattern) -> Iterator[Match]:
    """The matches inside `root`, none of which share an op: what comes last in the program is matched first."""
    taken: set[Operation] = set()
    for op in root.walk(reverse=True):
        for result in op.results:
            if op in taken:
                continue
            found = pattern.match(result)
            if found is not None and found.ops and taken.isdisjoint(found.ops):
                taken.update(found.ops)
                yield found


def rewrite(root: Operation, pattern: Pattern, replace: Replacement) -> int:
    """Replaces matches inside `root`; gives how many were.

    The new ops stand where the last matched op stood, with its location and the names of the values. Their results
    must have types that the uses accept; the module's verifier says so if not.
    """
    count = 0
    for found in list(matches_in(root, pattern)):
        made = replace(found)
        if made is None:
            continue
        _put(found, made)
        count += 1
    return count


def _put(found: Match, made: Sequence[Operation]) -> None:
    last = found.ops[-1]
    for op in made:
        if isinstance(op.location, UnknownLoc):
            op.location = last.location
    Rewriter.insert_op(made, InsertPoint.before(last))
    for output, new in zip(found.outputs, made[-1].results, strict=True):
        if isinstance(output, OpResult):
            new.name_hint = output.name_hint
            output.replace_all_uses_with(new)
    for op in reversed(found.ops):
        Rewriter.erase_op(op)
