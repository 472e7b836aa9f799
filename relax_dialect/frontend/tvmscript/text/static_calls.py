"""Calls that give what is known when the text is read: numbers of a dtype, functions on dimensions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.text import evaluator
from relax_dialect.frontend.tvmscript.text.choices import CHOICES, choice
from relax_dialect.frontend.tvmscript.text.declarations import VARIABLES
from relax_dialect.frontend.tvmscript.text.scope import symbol_of
from tir_dialect.dims import Dim

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.text.static import StaticReader

_CASTS = {"cast": (0, 1), "Cast": (1, 0)}
"""Where the value and the dtype of a conversion stand; dimensions have one dtype."""


def static_call(reader: StaticReader, node: ast.Call) -> object:
    """A call of a dtype on a number, of a function on dimensions, or of what Python alone sees."""
    from relax_dialect.frontend.tvmscript.text.static import is_dtype_name

    name = reader.aliases.name_in("tir", node.func) or reader.aliases.name_in("te", node.func)
    place = evaluator.VALUE_AT.get(name or reader.aliases.name_in("ir", node.func) or "")
    if place is not None and place < len(node.args):
        return reader.value(node.args[place])
    if isinstance(node.func, ast.Name) and node.func.id not in reader.scope:
        name = node.func.id if node.func.id in evaluator.DIM_FUNCTIONS else name
    if name is None or node.keywords:
        return reader.unsupported(node)
    if name in CHOICES and len(node.args) == 3:
        if (found := choice(reader, node)) is None:
            reader.fail(node, f"T.{name} expected a comparison of dimensions, as n < 4, and two dimensions")
        return found
    if is_dtype_name(name) and len(node.args) == 1:
        return _typed(reader, node, reader.value(node.args[0]))
    if name in _CASTS and len(node.args) == 2:
        return _typed(reader, node, reader.value(node.args[_CASTS[name][0]]))
    if name in VARIABLES and node.args:
        return symbol_of(reader.text(node.args[0]))
    return _of_dimensions(reader, node, name)


def _of_dimensions(reader: StaticReader, node: ast.Call, name: str) -> object:
    """A function on two dimensions; of more numbers, as Python's `max` takes, it is plain Python."""
    function = evaluator.DIM_FUNCTIONS.get(name)
    if function is None or len(node.args) != 2:
        return reader.unsupported(node)
    left, right = (reader.value(each) for each in node.args)
    if isinstance(left, float) or isinstance(right, float):
        return reader.unsupported(node)
    try:
        return evaluator.simplest(function(reader.to_dim(node.args[0], left), reader.to_dim(node.args[1], right)))
    except ZeroDivisionError:
        reader.fail(node, "division by zero")
    except evaluator.StaticError as error:
        reader.fail(node, str(error))


def _typed(reader: StaticReader, node: ast.Call, value: object) -> object:
    from relax_dialect.frontend.tvmscript.text.static import describe

    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            reader.fail(node, f'expected a number, got "{value}"')
    if not isinstance(value, bool | int | float | Dim):
        reader.fail(node, f"expected a number, got {describe(value)}")
    return value
