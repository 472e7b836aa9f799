"""`T.inline`, `T.macro` and `R.macro`: functions whose body is read in the place of a call."""

from __future__ import annotations

import ast
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.prim_func.elsewhere import Elsewhere
from relax_dialect.frontend.tvmscript.prim_func.jumps import jumps_of
from relax_dialect.frontend.tvmscript.prim_func.loops import place_of
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.errors import Source
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.frontend.tvmscript.text.names import Aliases
from relax_dialect.frontend.tvmscript.text.scope import Scope
from relax_dialect.frontend.tvmscript.text.static import StaticReader

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.statements import TirStatementReader

_DECORATORS = (("tir", "inline"), ("tir", "macro"), ("relax", "macro"))
_HEAD = frozenset({"where", "reads", "writes", "sblock_attr", "block_attr"})
"""What a block says of itself besides its iterators."""


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
    hygienic = Arguments(reader.source, decorator, "the macro", "hygienic").get("hygienic")
    return hygienic is None or bool(reader.value(hygienic))


@contextmanager
def standing_for(reader: TirStatementReader, node: ast.Call, inline: Inline) -> Generator[Sequence[ast.stmt]]:
    """The body of a function, to be read in the place of its call; parameters stand for the arguments."""
    definition = inline.node
    if jumps_of(reader.aliases, definition.body):
        reader.fail(node, f"{definition.name} leaves its body early, which the place of a call cannot")
    if inline.of_relax:
        reader.fail(node, f"{definition.name} belongs into a function of relax; PrimFuncs call T.inline or T.macro")
    values = arguments_of(reader, node, definition)
    # a parameter that stands for a loop variable has its domain
    domains = {id(reader.scope.find(name)): domain for name, domain in reader.extents.items() if name in reader.scope}
    scope = reader.scope if inline.scope is None else inline.scope.shared()
    with reader.reading_in(scope), reader.inside():
        for name, value in values.items():
            reader.scope.bind(name, value)
            items = items_of(value) or ()
            for place, item in ((name, value), *((place_of(name, index), item) for index, item in enumerate(items))):
                if (domain := domains.get(id(item))) is not None:
                    reader.scope.bind(place, item)
                    reader.extents[place] = domain
        yield definition.body


@contextmanager
def block_body(reader: TirStatementReader, statements: Sequence[ast.stmt]) -> Generator[Sequence[ast.stmt]]:
    """What a block consists of: if that is one call of a function that begins with the head of a block, its body.

    The function may also call another one that does, and other statements may stand beside the call.
    """
    match statements:
        case [ast.Expr(value=ast.Call() as call)] if (inline := reader.inline_of(call.func)) is not None:
            if _stands_for_head(reader, inline, ()):
                with standing_for(reader, call, inline) as body, block_body(reader, body) as inner:
                    yield inner
                return
        case _:
            pass
    with ExitStack() as stack:
        yield [_opened(reader, each, stack) for each in statements]


def _opened(reader: TirStatementReader, statement: ast.stmt, stack: ExitStack) -> ast.stmt:
    """The body of a function that begins with the head of a block, for its call among other statements of the block."""
    match statement:
        case ast.Expr(value=ast.Call() as call) if (inline := reader.inline_of(call.func)) is not None:
            if not _stands_for_head(reader, inline, ()):
                return statement
            around = reader.scope
            body = stack.enter_context(standing_for(reader, call, inline))
            inner = [_opened(reader, each, stack) for each in body]
            there, reader.scope = reader.scope, around
            return Elsewhere(there, inner, statement)
        case _:
            return statement


def _stands_for_head(reader: TirStatementReader, inline: Inline, callers: tuple[Inline, ...]) -> bool:
    """Whether the body of a function begins with the head of a block, or is one call of a function whose body does."""
    match inline.node.body:
        case [ast.Expr(value=ast.Call(func=ast.Name(id=name)))] if inline not in callers:
            called = (inline.scope or reader.scope).find(name)
            if isinstance(called, Inline):
                return _stands_for_head(reader, called, (*callers, inline))
        case _:
            pass
    return _begins_with_head(reader.aliases, inline.node.body)


def _begins_with_head(aliases: Aliases, statements: Sequence[ast.stmt]) -> bool:
    match statements[0]:
        case ast.Assign(value=ast.Tuple(elts=[ast.Call(func=func), *_])):
            pass
        case ast.Assign(value=ast.Call(func=func)) | ast.Expr(value=ast.Call(func=func)):
            pass
        case _:
            return False
    name = aliases.name_in("tir", func) or ""
    return name.startswith("axis.") or name in _HEAD


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
    given = Arguments(reader.source, node, definition.name, [*positional, *rest], keywords=[*named, *others])
    values: dict[str, object] = {}
    for name in (*positional, *named):
        argument = given.get(name) or defaults.get(name)
        values[name] = reader.value(given.require(name) if argument is None else argument)
    if parameters.vararg is not None:
        values[parameters.vararg.arg] = tuple(map(reader.value, given.rest))
    if parameters.kwarg is not None:
        values[parameters.kwarg.arg] = {name: reader.value(given.require(name)) for name in others}
    return values
