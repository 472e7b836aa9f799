"""How many bits TVM has for an index expression, where that matters: 32, unless the text says `int64` in it."""

from __future__ import annotations

import ast
from collections.abc import Container
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.names import Aliases
from tir_dialect import te
from tir_dialect.dims import Dim
from tir_dialect.te import nodes
from tir_dialect.te.coerce import is_index
from tir_dialect.te.expr import Expr as Scalar

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader

_WIDE = "int64"


def is_wide(aliases: Aliases, node: ast.AST, names: Container[str]) -> bool:
    """Whether an expression mentions `int64`, or one of the names that have 64 bits."""
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and each.value == _WIDE:
            return True
        if isinstance(each, ast.Name) and each.id in names:
            return True
        if isinstance(each, ast.Attribute) and aliases.name_in("tir", each) == _WIDE:
            return True
    return False


def of_bits(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.clz(x)`, `T.popcount(x)`: what depends on how many bits there are."""
    name = reader.aliases.name_in("tir", node.func) or ""
    operand = Arguments(reader.source, node, f"T.{name}", "x").require("x")
    value = reader.value(operand)
    if isinstance(value, bool | int | Dim) or (isinstance(value, Scalar) and is_index(value.dtype)):
        width = "i64" if is_wide(reader.aliases, operand, reader.wide) else "i32"
        index = reader.index(operand, value)
        scalar = nodes.size(index) if isinstance(index, Dim) else index
        value = reader.emit(node, lambda: te.cast(scalar, width))
    return reader.apply(node, name, value)
