"""Calls as Python code makes them, with the operator as a value: they are read as the call that they make."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.operator_names import function_named, looked_up

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader

_NAMESPACES = {"relax": "R"}
_TYPES = {"sinfo_args": "ty_args", "op_name": "op"}


def _call(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.Call(op, [x, y], ty_args=...)`; `op` is a function or `tvm.ir.Op.get("relax.add")`."""
    given = Arguments(reader.source, node, "R.Call", "op args attrs ty_args span", _TYPES)
    callee = given.require("op")
    if (name := looked_up(callee)) is not None:
        callee = function_named(reader, name, _NAMESPACES)
    return _made(reader, given, callee)


def _emit_with_ty(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.emit_with_ty("relax.add", (x, y), (type,))`."""
    given = Arguments(reader.source, node, "R.emit_with_ty", "op args ty_args", _TYPES)
    return _made(reader, given, function_named(reader, given.require("op"), _NAMESPACES))


def _made(reader: ExpressionReader, given: Arguments, callee: ast.expr) -> object:
    args, types = given.require("args"), given.get("ty_args")
    operands = args.elts if isinstance(args, ast.List | ast.Tuple) else [args]
    keywords = [] if types is None else [ast.copy_location(ast.keyword("ty_args", types), types)]
    return reader.value(ast.copy_location(ast.Call(callee, operands, keywords), given.node))


PYTHON_FORMS: Mapping[str, Callable[[ExpressionReader, ast.Call], object]] = {
    "Call": _call,
    "emit_with_ty": _emit_with_ty,
    "emit_with_type": _emit_with_ty,
}
