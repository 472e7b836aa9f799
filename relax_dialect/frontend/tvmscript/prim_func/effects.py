"""Calls that are statements: stores, bindings, assertions, what a text evaluates for its effect."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.prim_func.masks import store_at
from relax_dialect.frontend.tvmscript.prim_func.values import Buffer
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from tir_dialect.ops.scalars import AssertOp
from tir_dialect.te.expr import Expr as Scalar

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.statements import TirStatementReader


def read_effect(reader: TirStatementReader, node: ast.expr) -> None:
    """Reads an expression that is a statement."""
    name = reader.aliases.name_in("tir", node.func) if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Call) and name is not None and (read := _EFFECTS.get(name)) is not None:
        read(reader, node)
    elif not isinstance(node, ast.Constant):
        evaluate(reader, node)


def evaluate(reader: TirStatementReader, node: ast.expr) -> None:
    """Evaluates an expression for what its calls do."""
    reader.wants_value = False
    try:
        value = reader.value(node)
    finally:
        reader.wants_value = True
    if isinstance(value, Scalar):
        reader.values(node, value)


def _evaluate(reader: TirStatementReader, node: ast.Call) -> None:
    """`T.evaluate(value)`."""
    evaluate(reader, Arguments(reader.source, node, "T.evaluate", "value").require("value"))


def _bind(reader: TirStatementReader, node: ast.Call) -> None:
    """`T.bind(value, var=x)`."""
    var = Arguments(reader.source, node, "T.bind", "value type_annotation var").get("var")
    if not isinstance(var, ast.Name):
        reader.fail(node, "expected a name to bind: x = T.bind(value)")
    reader.scope.bind(var.id, reader.named(var.id, node))


def _buffer(reader: TirStatementReader, node: ast.expr) -> Buffer:
    found = reader.value(node)
    if not isinstance(found, Buffer):
        reader.fail(node, "expected a buffer to store to")
    return found


def _buffer_store(reader: TirStatementReader, node: ast.Call) -> None:
    """`T.buffer_store(A, value, [i, j], predicate)`."""
    given = Arguments(reader.source, node, "T.buffer_store", "buffer value indices predicate")
    buffer, value = _buffer(reader, given.require("buffer")), reader.value(given.require("value"))
    store_at(reader, node, buffer, given.require("indices"), value, given.get("predicate"))


def _masked_store(reader: TirStatementReader, node: ast.Call) -> None:
    """`T.masked_store(A, value, i, j, mask)`."""
    given = Arguments(reader.source, node, "T.masked_store", "buffer value *places")
    if len(given.rest) < 2:
        reader.fail(node, "T.masked_store expected a buffer, a value, the place and a mask")
    *places, mask = given.rest
    begin = ast.copy_location(ast.List(places, ast.Load()), node)
    buffer, value = _buffer(reader, given.require("buffer")), reader.value(given.require("value"))
    store_at(reader, node, buffer, begin, value, mask)


def _static_assert(reader: TirStatementReader, node: ast.Call) -> None:
    """`T.static_assert(condition, message)`: at once if it is known, else when the program runs."""
    given = Arguments(reader.source, node, "T.static_assert", "condition message")
    condition, message = given.require("condition"), given.get("message")
    text = "the assertion does not hold" if message is None else reader.text(message)
    known = reader.value(condition)
    if isinstance(known, bool | int):
        if not known:
            reader.fail(condition, text or "the assertion does not hold")
        return
    reader.block.add_op(AssertOp(reader.condition(condition), text))


def _hint(reader: TirStatementReader, node: ast.Call) -> None:
    """What passes of TVM are told, which does not change what the function computes."""


def _of_block(reader: TirStatementReader, node: ast.Call) -> None:
    reader.fail(node, f"T.{reader.aliases.name_in('tir', node.func)} belongs into a block")


_EFFECTS: Mapping[str, Callable[[TirStatementReader, ast.Call], None]] = {
    "evaluate": _evaluate,
    "bind": _bind,
    "buffer_store": _buffer_store,
    "masked_store": _masked_store,
    "static_assert": _static_assert,
    **dict.fromkeys(("func_attr", "attr", "assume", "hint", "prefetch"), _hint),
    **dict.fromkeys(("reads", "writes", "where", "sblock_attr", "block_attr"), _of_block),
}
