"""What is said about text that is no program: file, line, column, the line itself, and a caret under the place."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
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
        places = {(error.line, error.column, error.message): error for error in flat}
        first, *others = [places[key] for key in sorted(places)]
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
    """How many columns were cut off in front of each line."""

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        """Raises the error at the place of a node."""
        raise self.error(node, message)

    def built(self, node: ast.AST, make: Callable[[], T], errors: tuple[type[Exception], ...]) -> T:
        """What `make` gives; its errors of these kinds are raised at the place of a node."""
        try:
            return make()
        except TVMScriptError:
            raise
        except errors as error:
            self.fail(node, str(error))

    def follows(self, node: ast.AST, message: str) -> DependentError:
        """The error at the place of a node that follows from another one."""
        error = self.error(node, message)
        return DependentError(message, error.filename, error.line, error.column)

    def error(self, node: ast.AST, message: str) -> TVMScriptError:
        """The error at the place of a node."""
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
