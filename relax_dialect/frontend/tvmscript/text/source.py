"""From text, or from a decorated object, to a tree. Nothing is executed."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import cast

from relax_dialect.frontend.tvmscript.text.errors import Source

PythonObject = Callable[..., object] | type
"""A function or a class, of which the source can be read."""

_HEADER = re.compile(r"^([ \t]*(?:async[ \t]+)?def[ \t]+(\w+)[ \t]*)(\[)", re.MULTILINE)


@dataclass(frozen=True)
class Tree:
    """A parsed text, with what the text alone does not say."""

    source: Source
    body: list[ast.stmt]
    type_params: Mapping[int, str] = field(default_factory=dict[int, str])
    """What stands in brackets after the name of a function, by the line of its `def`."""
    visible: Mapping[str, object] = field(default_factory=dict[str, object])
    """The names of the Python program around a text, with what they stand for."""
    vscale: int = 1
    """What `T.vscale()` is."""


def read_text(text: str, filename: str = "<tvmscript>", visible: Mapping[str, object] | None = None) -> Tree:
    """The tree of a text; `TVMScriptError` for what Python cannot parse."""
    return replace(_parse(Source(text, filename)), visible=visible or {})


def read_object(subject: PythonObject, frame: Mapping[str, object] | None = None) -> Tree:
    """The tree of a function or class, by its source; `frame` has names that are visible there."""
    try:
        lines, first = inspect.getsourcelines(subject)
        filename = inspect.getsourcefile(subject) or "<unknown>"
    except (OSError, TypeError) as error:
        name = getattr(subject, "__qualname__", "the object")
        raise Source("", "<unknown>").error_at(1, 1, f"the source of {name} cannot be read: {error}") from None
    text = "".join(lines)
    plain = textwrap.dedent(text)
    indent = len(lines[0]) - len(plain.splitlines(keepends=True)[0]) if lines else 0
    tree = _parse(Source(plain, filename, first, indent))
    return replace(tree, visible=_visible(subject) | dict(frame or {}))


def _visible(subject: PythonObject) -> dict[str, object]:
    """The names that a function or the methods of a class see where they are defined."""
    found = dict(vars(sys.modules[subject.__module__])) if subject.__module__ in sys.modules else {}
    members = vars(subject).values() if isinstance(subject, type) else (subject,)
    for member in members:
        if inspect.isfunction(member):
            found |= _nonlocals(member)
    return found


def _nonlocals(function: FunctionType) -> dict[str, object]:
    """The variables of outer functions that a function uses; one that has no value yet is left out."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    found: dict[str, object] = {}
    for name, cell in cells:
        with suppress(ValueError):  # an empty cell
            found[name] = cell.cell_contents
    return found


def _parse(source: Source) -> Tree:
    plain, params = _without_type_params(source.text)
    try:
        tree = _ast(plain)
    except SyntaxError as error:
        raise source.error_at(error.lineno or 1, error.offset or 1, f"this is no Python: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise source.error_at(1, 1, f"this is no Python: {error or 'nested too deeply'}") from None
    return Tree(source, cast("ast.Module", tree).body, params)


def parse_expression(text: str) -> ast.expr:
    """The tree of one expression; `SyntaxError`, `ValueError`, `RecursionError` or `MemoryError` if it is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return ast.parse(text, mode="eval").body


def _ast(text: str) -> ast.AST:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return _statements(text)


def _statements(text: str) -> ast.AST:
    try:
        return ast.parse(text)
    except TabError:
        # pages that were pasted together mix tabs and spaces; a tab goes to the next column of eight, or of four
        try:
            return ast.parse(text.expandtabs(8))
        except SyntaxError:
            return ast.parse(text.expandtabs(4))


def _without_type_params(text: str) -> tuple[str, dict[int, str]]:
    """The text with blanks for the brackets in `def f[n: int](x)`, which Python reads from 3.12 on only."""
    params: dict[int, str] = {}
    for match in reversed(list(_HEADER.finditer(text))):
        start = match.start(3)
        end = text.find("](", start)
        if end < 0:
            continue
        inside = text[start + 1 : end]
        params[text.count("\n", 0, start) + 1] = inside
        blank = "".join(each if each == "\n" else " " for each in text[start : end + 1])
        text = text[:start] + blank + text[end + 1 :]
    return text, params
