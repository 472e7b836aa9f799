"""`R.add(n, 1)` and the like of two prim values: a prim value, as of `n + 1`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.tvmscript.relax_func.operators import call_operator
from relax_dialect.struct_info.types import PrimType
from tir_dialect.dims import Dim

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader

_NAMES = ("add", "floor_divide", "floor_mod", "multiply", "subtract")


def _arithmetic(name: str) -> Callable[[ExpressionReader, ast.Call], object]:
    def read(reader: ExpressionReader, node: ast.Call) -> object:
        if len(node.args) != 2 or node.keywords or not any(_names_prim(reader, each) for each in node.args):
            return call_operator(reader, node, name)
        left, right = (reader.value(each) for each in node.args)
        one, other = (reader.expr(node, each) if isinstance(each, Dim) else each for each in (left, right))
        return reader.arithmetic(node, name, one, other)

    return read


def _names_prim(reader: ExpressionReader, node: ast.expr) -> bool:
    """Whether an argument is the name of a prim value or dimension."""
    found = reader.scope.find(node.id) if isinstance(node, ast.Name) else None
    return isinstance(found, Dim) or (isinstance(found, Expr) and isinstance(found.type, PrimType))


PRIM_FORMS: Mapping[str, Callable[[ExpressionReader, ast.Call], object]] = {name: _arithmetic(name) for name in _NAMES}
