"""Functions without a decorator, which are read where they are applied: bindings, and what they return."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from relax_dialect.frontend.tvmscript.text.captured import PythonFunction, captured_names
from relax_dialect.frontend.tvmscript.text.errors import Source
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.frontend.tvmscript.text.names import Aliases
from relax_dialect.frontend.tvmscript.text.scope import Scope
from relax_dialect.frontend.tvmscript.text.static import StaticReader


@dataclass(frozen=True, eq=False)
class PlainFunction:
    """A function, its text, and the names that it sees."""

    node: ast.Lambda | ast.FunctionDef
    source: Source
    scope: Scope

    @property
    def name(self) -> str:
        """What messages call it."""
        return "the lambda" if isinstance(self.node, ast.Lambda) else self.node.name

    @staticmethod
    def of_surroundings(function: PythonFunction, aliases: Aliases) -> PlainFunction:
        """A function of the Python program around the text."""
        node, tree = function.definition()
        return PlainFunction(node, tree.source, Scope(captured_names(tree, aliases)))


def call_helper(reader: StaticReader, node: ast.Call) -> tuple[object] | None:
    """What a call of a function without a decorator gives; `None` if it is a call of something else."""
    found = _function_of(reader, node.func)
    if found is None:
        return None
    values = reader.elements(node.args)
    named = {each.arg: reader.value(each.value) for each in node.keywords if each.arg is not None}
    _require_all(reader, node, found, len(values), named)
    around = reader.source, reader.scope
    reader.source, reader.scope = found.source, found.scope.shared()
    try:
        return (evaluate(reader, found.node, values, named),)
    finally:
        reader.source, reader.scope = around


def _function_of(reader: StaticReader, node: ast.expr) -> PlainFunction | None:
    """The function of a name, or the one that another one returns; `None` for anything else."""
    if isinstance(node, ast.Call):
        (found,) = call_helper(reader, node) or (None,)
    else:
        found = reader.scope.find(node.id) if isinstance(node, ast.Name) else None
    if isinstance(found, PythonFunction):
        return PlainFunction.of_surroundings(found, reader.aliases)
    return found if isinstance(found, PlainFunction) else None


def _require_all(
    reader: StaticReader, node: ast.Call, function: PlainFunction, positional: int, named: Mapping[str, object]
) -> None:
    """Fails at a call that gives too many arguments, unknown ones, or one twice, or leaves one out."""
    args = function.node.args
    names = [each.arg for each in (*args.posonlyargs, *args.args)]
    if positional > len(names) and args.vararg is None:
        reader.fail(node, f"{function.name} expected at most {len(names)} positional arguments, got {positional}")
    known = {*names[positional:], *(each.arg for each in args.kwonlyargs)}
    if (wrong := next((name for name in named if name not in known), None)) is not None:
        reader.fail(node, f"{function.name} has no argument {wrong} beside those in front of it")
    if missing := [name for name in names[positional:] if name not in {*named, *_defaults(args)}]:
        reader.fail(node, f"{function.name} expected the argument {missing[0]}")


def _defaults(args: ast.arguments) -> dict[str, ast.expr]:
    """The values of parameters that a call leaves out."""
    names = [each.arg for each in (*args.posonlyargs, *args.args)]
    found = dict(zip(reversed(names), reversed(args.defaults), strict=False))
    pairs = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return found | {each.arg: value for each, value in pairs if value is not None}


def evaluate(
    reader: StaticReader, node: ast.Lambda | ast.FunctionDef, values: Sequence[object], named: Mapping[str, object]
) -> object:
    """What a function gives for arguments."""
    args = node.args
    names = [each.arg for each in (*args.posonlyargs, *args.args)]
    defaults = {name: reader.value(value) for name, value in _defaults(args).items()}
    with reader.scope.inner():
        for name, value in (*defaults.items(), *zip(names, values, strict=False), *named.items()):
            reader.scope.bind(name, value)
        if args.vararg is not None:
            reader.scope.bind(args.vararg.arg, tuple(values[len(names) :]))
        return reader.value(node.body) if isinstance(node, ast.Lambda) else _returned(reader, node)


def _returned(reader: StaticReader, node: ast.FunctionDef) -> object:
    found = _run(reader, node.body)
    if found is None:
        reader.fail(node, f"expected a return at the end of {node.name}")
    return found[0]


def _run(reader: StaticReader, statements: Sequence[ast.stmt]) -> tuple[object] | None:
    """What statements return; `None` if they return nothing. Branches are taken as the text is read."""
    for statement in statements:
        match statement:
            case ast.Return(value=ast.expr() as value):
                return (reader.value(value),)
            case ast.Assign(targets=[target]):
                _bind(reader, target, reader.value(statement.value))
            case ast.FunctionDef(decorator_list=[]):
                reader.scope.bind(statement.name, PlainFunction(statement, reader.source, reader.scope.shared()))
            case ast.If():
                found = _run(reader, statement.body if _holds(reader, statement.test) else statement.orelse)
                if found is not None:
                    return found
            case ast.Assert():
                if not _holds(reader, statement.test):
                    reader.fail(statement, "the assertion does not hold")
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                continue
            case _:
                reader.fail(statement, "expected a binding, a branch, an assertion or a return")
    return None


def _holds(reader: StaticReader, test: ast.expr) -> bool:
    value = reader.value(test)
    if not isinstance(value, bool | int | float | str | tuple | None):
        reader.fail(test, "expected what is true or false when the text is read")
    return bool(cast("object", value))


def _bind(reader: StaticReader, target: ast.expr, value: object) -> None:
    if isinstance(target, ast.Name):
        reader.scope.bind(target.id, value)
        return
    items = items_of(value)
    if not isinstance(target, ast.Tuple | ast.List) or items is None or len(items) != len(target.elts):
        reader.fail(target, "expected a name, or as many names as there are values")
    for each, item in zip(target.elts, items, strict=True):
        _bind(reader, each, item)
