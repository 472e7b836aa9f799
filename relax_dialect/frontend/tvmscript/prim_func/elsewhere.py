"""Statements with the names of another place: the rest of a macro's body, beside the statements of its caller."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from relax_dialect.frontend.tvmscript.text.scope import Scope


class Elsewhere(ast.stmt):
    """Statements that are read in a scope of their own; in a tree, they are where they run."""

    _fields = ("body",)

    def __init__(self, scope: Scope, body: Sequence[ast.stmt], place: ast.AST):
        super().__init__()
        self.scope = scope
        self.body = list(body)
        ast.copy_location(self, place)

    def of(self, body: Sequence[ast.stmt]) -> Elsewhere:
        """Other statements of the same scope."""
        return Elsewhere(self.scope, body, self)


def walk_here(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, but not what is elsewhere."""
    if isinstance(node, Elsewhere):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from walk_here(child)
