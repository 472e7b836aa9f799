"""Calls as Python code makes them, with the operator as a value: they are read as the call that they make."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.names import dotted
from relax_dialect.frontend.tvmscript.text.source import parse_expression

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader

_TYPES = {"sinfo_args": "ty_args", "op_name": "op"}


def _call(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.Call(op, [x, y], ty_args=...)`; `op` is a function or `tvm.ir.Op.get("relax.add")`."""
    given = Arguments(reader.source, node, "R.Call", "op args attrs ty_args span", _TYPES)
    callee = given.require("op")
    if isinstance(callee, ast.Call) and (dotted(callee.func) or ())[-2:] == ("Op", "get") and len(callee.args) == 1:
        callee = _operator(reader, callee.args[0])
    return _made(reader, given, callee)


def _emit_with_ty(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.emit_with_ty("relax.add", (x, y), (type,))`."""
    given = Arguments(reader.source, node, "R.emit_with_ty", "op args ty_args", _TYPES)
    return _made(reader, given, _operator(reader, given.require("op")))


def _operator(reader: ExpressionReader, node: ast.expr) -> ast.expr:
    """`R.add` for the string `"relax.add"`."""
    name = reader.text(node)
    if not name.startswith("relax.") or not all(part.isidentifier() for part in name.split(".")):
        reader.fail(node, f'expected an operator of relax, got "{name}"; what Python code registers is not known here')
    made = parse_expression(f"R.{name.removeprefix('relax.')}")
    for each in ast.walk(made):
        ast.copy_location(each, node)
    return made


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
