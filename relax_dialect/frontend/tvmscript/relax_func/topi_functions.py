"""`topi.<name>`, which is an operator, and functions of those for `R.emit_te`."""

from __future__ import annotations

import ast

from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader
from relax_dialect.frontend.tvmscript.relax_func.operators import call_operator
from relax_dialect.frontend.tvmscript.text import plain_functions
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.names import Aliases

_ORDER = {"full": (0, 2, 1)}
"""Where the arguments of the operator stand in topi's function."""


def call_topi(reader: ExpressionReader, node: ast.Call) -> object:
    """`topi.<name>(x, ...)` as the operator."""
    name, order = reader.aliases.name_in("topi", node.func) or "", range(len(node.args))
    if len(node.args) == len(_ORDER.get(name, ())):
        order = _ORDER[name]
    arguments, keywords = [node.args[place] for place in order], node.keywords
    if name == "trilu":
        given = Arguments(reader.source, node, "topi.trilu", "data k upper")
        name = "triu" if reader.value(given.require("upper")) else "tril"
        arguments, keywords = [given.require("data"), given.require("k")], []
    return call_operator(reader, ast.copy_location(ast.Call(node.func, arguments, keywords), node), name)


def uses_topi(aliases: Aliases, node: ast.AST) -> bool:
    """Whether a function calls one of `topi`."""
    return any(aliases.name_in("topi", each) is not None for each in ast.walk(node))


class TopiReader(ExpressionReader):
    """Reads functions of `topi` and arithmetic: what they compute of tensors are operators of the program."""

    def call(self, node: ast.Call) -> object:
        if self.aliases.name_in("topi", node.func) is not None:
            return call_topi(self, node)
        if self.aliases.name_in("te", node.func) is not None:
            self.fail(node, "functions of topi are operators, those of te are not; use R.emit_te for each of them")
        helper = plain_functions.call_helper(self, node)
        return super().call(node) if helper is None else helper[0]
