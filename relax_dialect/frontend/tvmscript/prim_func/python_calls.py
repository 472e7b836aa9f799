"""Calls as Python code makes them, with the function as a value: they are read as the call that they make."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.operator_names import function_named, looked_up

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader

_NAMESPACES = {"tirx": "T", "tir": "T"}
_OF_DTYPE = frozenset({"call_extern", "call_pure_extern", "call_llvm_intrin", "call_llvm_pure_intrin", "reinterpret"})
"""Functions whose result has the dtype that the call gives."""


def call_of(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.Call(op, [x], ret_ty="float32")`; `op` is `"tirx.exp"` or `tvm.ir.Op.get("tirx.exp")`."""
    given = Arguments(
        reader.source, node, "T.Call", "op args ret_ty attrs span", {"dtype": "ret_ty", "ret_type": "ret_ty"}
    )
    op, args, kind = given.require("op"), given.require("args"), given.get("ret_ty")
    function = function_named(reader, looked_up(op) or op, _NAMESPACES)
    operands = args.elts if isinstance(args, ast.List | ast.Tuple) else [args]
    is_typed = isinstance(function, ast.Attribute) and function.attr in _OF_DTYPE
    keywords = [ast.copy_location(ast.keyword("dtype", kind), kind)] if kind is not None and is_typed else []
    return reader.value(ast.copy_location(ast.Call(function, operands, keywords), node))
