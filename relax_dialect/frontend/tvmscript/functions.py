"""Functions that are read where they are called: those without a decorator, `T.inline`, `R.macro`, templates."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from relax_dialect.frontend.tvmscript.scopes import Macro, PythonFunction, Scope, captured_names
from relax_dialect.frontend.tvmscript.source import Aliases, Source, dotted, parse_expression, read_object
from relax_dialect.frontend.tvmscript.static import StaticReader, bind_target


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
    # Fails at a call that gives too many arguments, unknown ones, or one twice, or leaves one out.
    function = found
    positional = len(values)
    args = function.node.args
    names = [each.arg for each in (*args.posonlyargs, *args.args)]
    if positional > len(names) and args.vararg is None:
        reader.fail(node, f"{function.name} expected at most {len(names)} positional arguments, got {positional}")
    known = {*names[positional:], *(each.arg for each in args.kwonlyargs)}
    if (wrong := next((name for name in named if name not in known), None)) is not None:
        reader.fail(node, f"{function.name} has no argument {wrong} beside those before it")
    if missing := [name for name in names[positional:] if name not in {*named, *_defaults(args)}]:
        reader.fail(node, f"{function.name} expected the argument {missing[0]}")
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
        if isinstance(node, ast.Lambda):
            return reader.value(node.body)
        if (returned := _run(reader, node.body)) is None:
            reader.fail(node, f"expected a return at the end of {node.name}")
        return returned[0]


def _run(reader: StaticReader, statements: Sequence[ast.stmt]) -> tuple[object] | None:
    """What statements return; `None` if they return nothing. Branches are taken as the text is read."""
    for statement in statements:
        match statement:
            case ast.Return(value=ast.expr() as value):
                return (reader.value(value),)
            case ast.Assign(targets=[target]):
                bind_target(reader, target, reader.value(statement.value))
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


_DECORATORS = (("tir", "inline"), ("tir", "macro"), ("relax", "macro"))


@dataclass(frozen=True, eq=False)
class Inline:
    """A function with the names that are visible where it stands; `None` for those of the caller."""

    node: ast.FunctionDef
    scope: Scope | None
    of_relax: bool
    """Whether it has statements of relax functions."""
    source: Source | None = None
    """The text that it stands in; `None` for that of the program."""


def read_inline(reader: StaticReader, node: ast.FunctionDef) -> Inline | None:
    """The function of a definition under `@T.inline` or `@T.macro(hygienic=False)`; `None` for another one."""
    for decorator in node.decorator_list:
        if is_inline(reader.aliases, decorator):
            scope = reader.scope.shared() if _is_hygienic(reader, decorator) else None
            return Inline(node, scope, reader.aliases.name_in("relax", _head(decorator)) is not None)
    return None


def _head(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def is_inline(aliases: Aliases, decorator: ast.expr) -> bool:
    """Whether a decorator makes a function whose body stands for its calls."""
    return aliases.resolve(_head(decorator)) in _DECORATORS


def _is_hygienic(reader: StaticReader, decorator: ast.expr) -> bool:
    if not isinstance(decorator, ast.Call):
        return True
    hygienic = reader.arguments(decorator, "the macro", "hygienic").get("hygienic")
    return hygienic is None or bool(reader.value(hygienic))


def arguments_of(reader: StaticReader, node: ast.Call, definition: ast.FunctionDef) -> dict[str, object]:
    """What the parameters stand for."""
    parameters = definition.args
    positional = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    named = [each.arg for each in parameters.kwonlyargs]
    defaults = dict(zip(reversed(positional), reversed(parameters.defaults), strict=False))
    defaults |= {
        each.arg: value
        for each, value in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
        if value is not None
    }
    others: list[str] = []
    if parameters.kwarg is not None:
        others = [each.arg for each in node.keywords if each.arg is not None and each.arg not in (*positional, *named)]
    rest = [] if parameters.vararg is None else [f"*{parameters.vararg.arg}"]
    given = reader.arguments(node, definition.name, [*positional, *rest], keywords=[*named, *others])
    values: dict[str, object] = {}
    for name in (*positional, *named):
        argument = given.get(name) or defaults.get(name)
        values[name] = reader.value(given.require(name) if argument is None else argument)
    if parameters.vararg is not None:
        values[parameters.vararg.arg] = tuple(map(reader.value, given.rest))
    if parameters.kwarg is not None:
        values[parameters.kwarg.arg] = {name: reader.value(given.require(name)) for name in others}
    return values


_Known = dict[Macro, Inline]


def with_inlines(names: Mapping[str, object], aliases: Aliases, known: _Known | None = None) -> dict[str, object]:
    """Names with what they stand for: decorated functions as the body that is read for a call of them.

    They see the names of where they stand, and the functions that they call are such ones, too.
    """
    found = {} if known is None else known
    return {name: _inline(each, aliases, found) if isinstance(each, Macro) else each for name, each in names.items()}


def _inline(macro: Macro, aliases: Aliases, known: _Known) -> Inline:
    if (found := known.get(macro)) is not None:
        return found
    tree, name = read_object(macro.function, macro.frame), macro.function.__name__
    node = next((each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == name), None)
    if node is None:
        raise tree.source.error_at(1, 1, f"expected the definition of {name}")
    scope = Scope(source=tree.source)
    known[macro] = made = Inline(node, scope if macro.hygienic else None, macro.of_relax, tree.source)
    for each, value in with_inlines(captured_names(tree, aliases), aliases, known).items():
        scope.bind(each, value)
    return made


def reachable(names: Mapping[str, object]) -> Iterator[tuple[str, Inline]]:
    """The functions among names, and those that they see, each once."""
    seen: set[Inline] = set()
    pending = list(names.items())
    while pending:
        name, value = pending.pop()
        if isinstance(value, Inline) and value not in seen:
            seen.add(value)
            yield name, value
            if value.source is not None and value.scope is not None:
                pending += ((each, value.scope.find(each)) for each in value.scope.names())


def specialized(reader: StaticReader, node: ast.FunctionDef) -> ast.FunctionDef:
    """The function without these parameters: what surrounds the text gives their values, else their defaults."""
    args = node.args
    annotations = [each.annotation for each in args.kwonlyargs]
    known = [each is not None and reader.aliases.name_in("tir", each) == "constexpr" for each in annotations]
    defaults: dict[str, ast.expr] = {}
    for each, value, is_known in zip(args.kwonlyargs, args.kw_defaults, known, strict=True):
        if not is_known or each.arg in reader.scope:
            continue
        if value is None:
            reader.fail(
                each, f"{each.arg} is known when the text is read: give it, as parse(text, {{'{each.arg}': 4}}) does"
            )
        defaults[each.arg] = value
    made = copy.deepcopy(node)
    made.args.kwonlyargs = [each for each, is_known in zip(made.args.kwonlyargs, known, strict=True) if not is_known]
    made.args.kw_defaults = [value for value, is_known in zip(args.kw_defaults, known, strict=True) if not is_known]
    return _Defaults(defaults).visit(made) if defaults else made


class _Defaults(ast.NodeTransformer):
    """Puts default values instead of names."""

    def __init__(self, values: dict[str, ast.expr]):
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name, or what stands for it."""
        value = self._values.get(node.id)
        return node if value is None else ast.copy_location(copy.copy(value), node)


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
    return parse_expression(f"{namespaces[space]}.{rest}", node)
