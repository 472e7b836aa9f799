"""`R.macro`: functions whose statements are read in the place of a call, and what they return is its value."""

from __future__ import annotations

import ast

from relax_dialect.frontend.tvmscript.prim_func.inline import Inline, arguments_of
from relax_dialect.frontend.tvmscript.relax_func.statements import StatementReader


class MacroReader(StatementReader):
    """Reads the body of one function, with the macros that it calls."""

    def call(self, node: ast.Call) -> object:
        found = self.scope.find(node.func.id) if isinstance(node.func, ast.Name) else None
        return self._expanded(node, found) if isinstance(found, Inline) else super().call(node)

    def _expanded(self, node: ast.Call, macro: Inline) -> object:
        """What a macro returns; nothing if it returns nothing."""
        if not macro.of_relax:
            self.fail(node.func, f"{macro.node.name} belongs into a PrimFunc; functions of relax call R.macro")
        values = arguments_of(self, node, macro.node)
        before, source, statements = self.scope, self.source, macro.node.body
        self.scope = before if macro.scope is None else macro.scope.shared()
        self.source = macro.source or source
        try:
            with self.scope.inner():
                for name, value in values.items():
                    self.scope.bind(name, value)
                return self.body(statements, statements)
        finally:
            self.scope, self.source = before, source
