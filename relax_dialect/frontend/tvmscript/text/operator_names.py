"""Functions of `R` and `T` by the names that TVM registers them under."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.text.names import dotted
from relax_dialect.frontend.tvmscript.text.source import parse_expression

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.text.static import StaticReader


def looked_up(node: ast.expr) -> ast.expr | None:
    """The name in `tvm.ir.Op.get("relax.add")`; `None` for another expression."""
    if isinstance(node, ast.Call) and (dotted(node.func) or ())[-2:] == ("Op", "get") and len(node.args) == 1:
        return node.args[0]
    return None


def function_named(reader: StaticReader, node: ast.expr, namespaces: Mapping[str, str]) -> ast.expr:
    """`R.add` for the string `"relax.add"`, where `namespaces` has `R` for `relax`."""
    name = reader.text(node)
    space, _, rest = name.partition(".")
    if space not in namespaces or not all(part.isidentifier() for part in rest.split(".")):
        known = " or ".join(namespaces)
        reader.fail(
            node, f'expected an operator of {known}, got "{name}"; what Python code registers is not known here'
        )
    made = parse_expression(f"{namespaces[space]}.{rest}")
    for each in ast.walk(made):
        ast.copy_location(each, node)
    return made
