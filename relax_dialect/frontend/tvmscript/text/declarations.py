"""Declarations of dimensions: `n = T.int64()`, `n = T.var("int64")`, `n = TypeVar("n")`, `n: T.int64`."""

from __future__ import annotations

import ast

from relax_dialect.frontend.tvmscript.text.names import Aliases, dotted
from relax_dialect.frontend.tvmscript.text.static import is_dtype_name

VARIABLES = frozenset({"var", "Var", "SizeVar", "size_var"})
"""Functions that make a dimension, whose name they are given."""


def declares_dimension(aliases: Aliases, node: ast.expr) -> bool:
    """Whether an expression makes a new dimension, which is named by what it is assigned to."""
    if not isinstance(node, ast.Call):
        return False
    parts = dotted(node.func)
    if parts is not None and parts[-1] == "TypeVar":
        return True
    name = aliases.name_in("tir", node.func) or aliases.name_in("te", node.func)
    if name is None:
        return False
    if name in VARIABLES:
        return all(isinstance(each, ast.Constant) for each in node.args)
    keywords_only_mark = all(each.arg in ("is_size_var", "size_var") for each in node.keywords)
    return is_dtype_name(name) and not node.args and keywords_only_mark


def declared_name(aliases: Aliases, target: ast.expr, node: ast.expr) -> str | None:
    """The name of the dimension that `target = node` declares; `None` if it is no declaration."""
    if not isinstance(target, ast.Name) or not declares_dimension(aliases, node):
        return None
    return target.id


def declared_dtype(aliases: Aliases, node: ast.expr) -> str:
    """The dtype that a declaration names; `int64` if none."""
    if isinstance(node, ast.Call):
        name = aliases.name_in("tir", node.func)
        if name is not None and is_dtype_name(name):
            return name
        texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        return next((text for text in texts if is_dtype_name(text)), "int64")
    return "int64"


def declarations(aliases: Aliases, target: ast.expr, node: ast.expr) -> list[tuple[ast.expr, str, ast.expr]]:
    """All declarations of `n = T.int64()` or `n, m = T.int64(), T.int64()`, with the place of each; or none at all."""
    if isinstance(target, ast.Tuple) and isinstance(node, ast.Tuple) and len(target.elts) == len(node.elts):
        pairs = list(zip(target.elts, node.elts, strict=True))
    else:
        pairs = [(target, node)]
    found = [(place, declared_name(aliases, place, value), value) for place, value in pairs]
    named = [(place, name, value) for place, name, value in found if name is not None]
    return named if len(named) == len(found) else []
