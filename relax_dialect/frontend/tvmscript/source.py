"""The text: where it comes from, its tree, dotted names, arguments of calls, and errors with their positions."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from types import CodeType, FunctionType, MappingProxyType
from typing import NoReturn, TypeVar

T = TypeVar("T")


class TVMScriptError(ValueError):
    """Text that is no module, or one that this reader does not take.

    `str(error)` is `file:line:column: error: message`, the line, and carets under what is meant. Lines and columns
    count from 1, columns in characters. Of several independent errors the first one has the others with it, and its
    text shows all of them.
    """

    def __init__(self, message: str, filename: str, line: int, column: int, source_line: str = "", width: int = 1):
        self.message = message
        self.filename = filename
        self.line = line
        self.column = column
        self.others: tuple[TVMScriptError, ...] = ()
        """Further errors of the same text, which do not follow from this one."""
        super().__init__(_render(message, filename, line, column, source_line, width))

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *map(str, self.others)])

    @classmethod
    def of_all(cls, errors: Sequence[TVMScriptError]) -> TVMScriptError:
        """The first of several errors in the order of the text, with the others."""
        flat = [each for error in errors for each in (error, *error.others)]
        positions = {(error.line, error.column, error.message): error for error in flat}
        first, *others = [positions[key] for key in sorted(positions)]
        for error in others:
            error.others = ()
        first.others = tuple(others)
        return first


class DependentError(TVMScriptError):
    """An error that follows from another one, which has been noted already."""


def _render(message: str, filename: str, line: int, column: int, source_line: str, width: int) -> str:
    text = f"{filename}:{line}:{column}: error: {message}"
    if not source_line.strip():
        return text
    # a tab stays a tab, so that the caret stands under its character however wide it is shown
    indent = "".join("\t" if each == "\t" else " " for each in source_line[: column - 1])
    return f"{text}\n{source_line}\n{indent}{'^' * max(1, min(width, len(source_line) - column + 1))}"


@dataclass(frozen=True)
class Source:
    """Text and where it comes from."""

    text: str
    filename: str
    first_line: int = 1
    """The number of the text's first line in its file."""
    indent: int = 0
    """How many columns were cut off before each line."""

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        """Raises the error at the position of a node."""
        raise self.error(node, message)

    def built(self, node: ast.AST, make: Callable[[], T], errors: tuple[type[Exception], ...]) -> T:
        """What `make` gives; its errors of these kinds are raised at the position of a node."""
        try:
            return make()
        except TVMScriptError:
            raise
        except errors as error:
            self.fail(node, str(error))

    def follows(self, node: ast.AST, message: str) -> DependentError:
        """The error at the position of a node that follows from another one."""
        error = self.error(node, message)
        return DependentError(message, error.filename, error.line, error.column)

    def error(self, node: ast.AST, message: str) -> TVMScriptError:
        """The error at the position of a node."""
        line, start = int(getattr(node, "lineno", 1)), int(getattr(node, "col_offset", 0))
        end_line, end = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
        # the parser counts bytes of UTF-8
        encoded = self._line(line).encode()
        column = len(encoded[:start].decode(errors="replace"))
        stop = end if end_line == line and isinstance(end, int) else len(encoded)
        width = len(encoded[start:stop].decode(errors="replace"))
        return self.error_at(line, column + 1, message, width)

    def error_at(self, line: int, column: int, message: str, width: int = 1) -> TVMScriptError:
        """The error at a line and column of the text, counted from 1."""
        shown = " " * self.indent + self._line(line)
        number = self.first_line + line - 1
        return TVMScriptError(message, self.filename, number, column + self.indent, shown, width)

    def error_of_file(self, line: int, column: int, message: str) -> TVMScriptError:
        """The error at a line and column of the file, as `location` gives them."""
        line, column = line - self.first_line + 1, column - self.indent
        return self.error_at(line, column, message, len(self._line(line)) - column + 1)

    def error_of_line(self, line: int, message: str) -> TVMScriptError:
        """The error at what stands on a line of the file."""
        text = self._line(line - self.first_line + 1)
        blanks = len(text) - len(text.lstrip())
        return self.error_at(line - self.first_line + 1, blanks + 1, message, len(text) - blanks)

    def location(self, node: ast.AST) -> tuple[str, int, int]:
        """File, line and column of a node, counted from 1."""
        line, start = int(getattr(node, "lineno", 1)), int(getattr(node, "col_offset", 0))
        return self.filename, self.first_line + line - 1, start + 1 + self.indent

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.splitlines()

    def _line(self, number: int) -> str:
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""


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
        cell = _class_in_cell(subject) if isinstance(subject, type) else None
        if cell is None:
            name = getattr(subject, "__qualname__", "the object")
            raise Source("", "<unknown>").error_at(1, 1, f"the source of {name} cannot be read: {error}") from None
        lines, first, filename = cell
    text = "".join(lines)
    plain = textwrap.dedent(text)
    indent = len(lines[0]) - len(plain.splitlines(keepends=True)[0]) if lines else 0
    tree = _parse(Source(plain, filename, first, indent))
    # The names that a function or the methods of a class see where they are defined.
    found = dict(vars(sys.modules[subject.__module__])) if subject.__module__ in sys.modules else {}
    members = vars(subject).values() if isinstance(subject, type) else (subject,)
    for member in members:
        if inspect.isfunction(member):
            found |= _nonlocals(member)
    return replace(tree, visible=found | dict(frame or {}))


def _class_in_cell(cls: type) -> tuple[list[str], int, str] | None:
    """The lines of a class, the number of the first, and the file, which a function in the class knows.

    Classes of a notebook are of `__main__`, which is no file: the cell is among the lines that tracebacks show.
    """
    for member in vars(cls).values():
        code = getattr(member, "__code__", None)
        if not isinstance(code, CodeType):
            continue
        lines = linecache.getlines(code.co_filename)
        with suppress(SyntaxError):
            for node in ast.walk(ast.parse("".join(lines))):
                first = min((each.lineno for each in getattr(node, "decorator_list", ())), default=0)
                last = getattr(node, "end_lineno", None)
                if isinstance(node, ast.ClassDef) and node.name == cls.__name__ and last is not None:
                    first = first or node.lineno
                    if first <= code.co_firstlineno <= last:
                        return lines[first - 1 : last], first, code.co_filename
    return None


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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = _statements(plain)
    except SyntaxError as error:
        raise source.error_at(error.lineno or 1, error.offset or 1, f"this is no Python: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise source.error_at(1, 1, f"this is no Python: {error or 'nested too deeply'}") from None
    return Tree(source, tree.body, params)


def parse_expression(text: str, at: ast.AST | None = None) -> ast.expr:
    """The tree of one expression, where another node stands if one is given.

    `SyntaxError`, `ValueError`, `RecursionError` or `MemoryError` if the text is none.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        tree = ast.parse(text, mode="eval").body
    if at is not None:
        for each in ast.walk(tree):
            ast.copy_location(each, at)
    return tree


def _statements(text: str) -> ast.Module:
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


DEFAULT_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "I": "ir",
        "R": "relax",
        "T": "tir",
        "relax": "relax",
        "rx": "relax",
        "tir": "tir",
        "tirx": "tir",
        "ty": "tir",
        "te": "te",
        "topi": "topi",
    }
)
"""The names that texts use without importing them; imports add to these."""

_MODULES = MappingProxyType({"ir": "ir", "relax": "relax", "tir": "tir", "tirx": "tir", "te": "te", "topi": "topi"})

_PYTHON_MODULES = frozenset({"math", "numpy"})
"""Modules of which constants and functions on plain data are known."""

_PACKAGES = frozenset({"tvm", "tvm.script", "tvm.script.parser", "relax_dialect.frontend.tvmscript"})

_TOP_LEVEL = MappingProxyType({"ir_module": "ir", "prim_func": "tir"})
"""Decorators that `tvm.script` itself has."""


def dotted(node: ast.AST) -> tuple[str, ...] | None:
    """`a.b.c` as its parts; `None` for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return (node.id, *reversed(parts))


def spelled(node: ast.AST) -> str:
    """A dotted name as the text has it, for messages."""
    parts = dotted(node)
    return "an expression" if parts is None else ".".join(parts)


class Aliases:
    """Which names stand for a namespace."""

    def __init__(self) -> None:
        self._names: dict[str, str] = dict(DEFAULT_ALIASES)
        self._members: dict[str, tuple[str, str]] = {}

    def read(self, statement: ast.Import | ast.ImportFrom) -> None:
        """Learns from an import; nothing is imported."""
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.asname is not None or alias.name in _PYTHON_MODULES:
                    self.learn(alias.asname or alias.name, alias.name)
            return
        package = statement.module or ""
        for alias in statement.names:
            name = alias.asname or alias.name
            outer, _, last = package.rpartition(".")
            if alias.name == "op" and last == "relax" and outer in _PACKAGES:
                self._names[name] = "relax"  # from tvm.relax import op
            elif package in _PACKAGES and alias.name in _MODULES:
                self._names[name] = _MODULES[alias.name]
            elif package in _PACKAGES and alias.name in _TOP_LEVEL:
                self._members[name] = (_TOP_LEVEL[alias.name], alias.name)
            elif outer in _PACKAGES and last in _MODULES:
                self._members[name] = (_MODULES[last], alias.name)

    def learn(self, name: str, module: str) -> bool:
        """Makes a name stand for a module, if texts can use that; whether they can."""
        package, _, last = module.rpartition(".")
        if module in _PYTHON_MODULES:
            self._names[name] = module
        elif package in _PACKAGES and last in _MODULES:
            self._names[name] = _MODULES[last]
        else:
            return False
        return True

    def resolve(self, node: ast.AST) -> tuple[str, str] | None:
        """The namespace and the name in it, as `("relax", "nn.relu")`; `None` for other expressions."""
        parts = dotted(node)
        if parts is None:
            return None
        if len(parts) == 1:
            return self._members.get(parts[0])
        if parts[0] == "tvm":
            rest = [part for part in parts[1:] if part not in ("script", "parser")]
            if len(rest) == 1 and rest[0] in _TOP_LEVEL:
                return _TOP_LEVEL[rest[0]], rest[0]
            if len(rest) > 1 and rest[0] in _MODULES:
                return _MODULES[rest[0]], _in_namespace(_MODULES[rest[0]], rest[1:])
            return None
        namespace = self._names.get(parts[0])
        return None if namespace is None else (namespace, _in_namespace(namespace, parts[1:]))

    def name_in(self, namespace: str, node: ast.AST) -> str | None:
        """The name of an intrinsic of `namespace`; `None` if the node is none."""
        found = self.resolve(node)
        return found[1] if found is not None and found[0] == namespace else None


def _in_namespace(namespace: str, parts: Sequence[str]) -> str:
    """A name as texts write it; `relax.op.add` is `R.add`."""
    inner = parts[1:] if namespace == "relax" and len(parts) > 1 and parts[0] == "op" else parts
    return ".".join(inner)


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean x`, or nothing."""
    close = get_close_matches(name, known, n=2)
    return f"; did you mean {' or '.join(close)}" if close else ""


def is_none(node: ast.expr) -> bool:
    """Whether an argument is written as `None`."""
    return isinstance(node, ast.Constant) and node.value is None


class Arguments:
    """The argument expressions of a call, matched to parameters as Python does it.

    `parameters` are names apart by blanks; one that begins with `*` takes all further positional arguments. `renamed`
    has other names of parameters, as callers may write them, `keywords` parameters that only keywords give.
    """

    def __init__(
        self,
        source: Source,
        node: ast.Call,
        what: str,
        parameters: str | Sequence[str],
        renamed: Mapping[str, str] | None = None,
        keywords: Sequence[str] = (),
    ):
        self._source = source
        self.node = node
        self.what = what
        names = parameters.split() if isinstance(parameters, str) else list(parameters)
        self.rest: list[ast.expr] = []
        self._given: dict[str, ast.expr] = {}
        position = 0
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                self._source.fail(argument, f"{self.what}: expected arguments one by one, got *")
            name = names[position] if position < len(names) else None
            if name is None:
                self._source.fail(
                    argument, f"{self.what} expected at most {len(names)} positional arguments, got {len(node.args)}"
                )
            if name.startswith("*"):
                self.rest.append(argument)
            else:
                self._given[name] = argument
                position += 1
        known = [*(name for name in names if not name.startswith("*")), *keywords]
        for keyword in node.keywords:
            if keyword.arg is None:
                source.fail(keyword.value, f"{what}: expected keywords one by one, got **")
            name = keyword.arg
            target = name if name in known else (renamed or {}).get(name, name)
            if target not in known:
                others = f"; it has {', '.join(known)}" if known else "; it has none"
                self._source.fail(keyword, f"{self.what} has no argument {name}{suggestion(name, known) or others}")
            if target in self._given:
                self._source.fail(keyword.value, f"{self.what} got the argument {name} twice")
            self._given[target] = keyword.value

    def get(self, name: str) -> ast.expr | None:
        """The expression for a parameter; `None` if it was not given."""
        return self._given.get(name)

    def first(self, *names: str) -> ast.expr | None:
        """The expression for the first of several parameters that was given."""
        return next((self._given[name] for name in names if name in self._given), None)

    def require(self, name: str) -> ast.expr:
        """The expression for a parameter; `TVMScriptError` if it was not given."""
        found = self._given.get(name)
        if found is None:
            self._source.fail(self.node, f"{self.what} expected the argument {name}")
        return found
