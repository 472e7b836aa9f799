"""The text of dimensions: their grammar, and the lexer of strings.

    sum     ::= product (('+' | '-') product)*
    product ::= unary (('*' | '//' | '%') unary)*
    unary   ::= '-' unary | primary
    primary ::= integer | symbol | function '(' sum (',' sum)* ')' | '(' sum ')'

`floordiv`, `mod`, `ceildiv` take two arguments, `min`, `max`, `broadcast` one or more. `//` and `%` are for Python
callers: MLIR text has no such tokens, so printing uses the functions. The grammar is written over a `TokenSource` (MLIR
parsers give theirs in `tir_dialect.types`) and builds its results with a `Builder`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Generic, NoReturn, Protocol, TypeVar

BINARY_FUNCTIONS = ("ceildiv", "floordiv", "mod")
VARIADIC_FUNCTIONS = ("broadcast", "max", "min")

MAX_NESTING = 100
"""Deepest nesting of functions. What is deeper is refused, so that recursion over dimensions always ends well."""

MAX_NUMBER = 1 << 63
"""The greatest number in a text, for a minus may stand before it."""

T = TypeVar("T")

_SYMBOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")


class DimSyntaxError(ValueError):
    """Text that is no dimension; the message shows the text and the column."""


def is_symbol_name(text: str) -> bool:
    """Whether `text` can name a symbol: an MLIR bare identifier, but not `_` and not the name of a function."""
    if text == "_" or text in BINARY_FUNCTIONS or text in VARIADIC_FUNCTIONS:
        return False
    return _SYMBOL_NAME.fullmatch(text) is not None


class TokenSource(Protocol):
    """What the grammar needs of a lexer."""

    def take(self, punctuation: str) -> bool:
        """Whether the next token is this punctuation, which is then consumed."""
        ...

    def integer(self) -> int | None:
        """The next token if it is an unsigned integer, consumed."""
        ...

    def identifier(self) -> str | None:
        """The next token if it is an identifier, consumed."""
        ...

    def mark(self) -> int:
        """The position of the next token, for `error`."""
        ...

    def error(self, message: str, mark: int) -> NoReturn:
        """Raises the error of this source at `mark`."""
        ...


class Builder(Protocol[T]):
    """What the grammar makes results with."""

    def constant(self, value: int, /) -> T:
        """The result for an integer."""
        ...

    def symbol(self, name: str, /) -> T:
        """The result for a symbol."""
        ...

    def apply(self, function: str, operands: Sequence[T], /) -> T:
        """The result for a function, `+` or `*` of operands, or `-` of one; ValueError, ZeroDivisionError for none."""
        ...


class Parser(Generic[T]):
    """A recursive-descent parser of the grammar above."""

    def __init__(self, source: TokenSource, builder: Builder[T]) -> None:
        self._source = source
        self._builder = builder

    def sum(self, depth: int = 0) -> T:
        """Parses one expression and stops at the first token that does not continue it."""
        start = self._source.mark()
        addends = [self._product(depth)]
        while True:
            if self._source.take("+"):
                addends.append(self._product(depth))
            elif self._source.take("-"):
                addends.append(self._builder.apply("-", [self._product(depth)]))
            else:
                return addends[0] if len(addends) == 1 else self._apply(start, "+", *addends)

    def _product(self, depth: int) -> T:
        result = self._unary(depth)
        while True:
            mark = self._source.mark()
            if self._source.take("*"):
                result = self._apply(mark, "*", result, self._unary(depth))
            elif self._source.take("//"):
                result = self._apply(mark, "floordiv", result, self._unary(depth))
            elif self._source.take("%"):
                result = self._apply(mark, "mod", result, self._unary(depth))
            else:
                return result

    def _unary(self, depth: int) -> T:
        negative = False
        while self._source.take("-"):
            negative = not negative
        result = self._primary(depth)
        return self._builder.apply("-", [result]) if negative else result

    def _primary(self, depth: int) -> T:
        source = self._source
        mark = source.mark()
        if depth > MAX_NESTING:
            source.error(f"dimension is nested deeper than {MAX_NESTING} levels", mark)
        if source.take("("):
            inner = self.sum(depth + 1)
            self._expect(")")
            return inner
        value = source.integer()
        if value is not None:
            if value > MAX_NUMBER:
                source.error(f"{value} is too large for a dimension, which has 64 bits and a sign", mark)
            return self._builder.constant(value)
        name = source.identifier()
        if name is None:
            source.error("expected a dimension: an integer, a symbol, a function or '('", mark)
        if name in BINARY_FUNCTIONS or name in VARIADIC_FUNCTIONS:
            return self._call(name, mark, depth + 1)
        if not is_symbol_name(name):
            source.error(f"'{name}' cannot name a symbol", mark)
        return self._builder.symbol(name)

    def _call(self, name: str, mark: int, depth: int) -> T:
        self._expect("(")
        arguments = [self.sum(depth)]
        while self._source.take(","):
            arguments.append(self.sum(depth))
        self._expect(")")
        if name in BINARY_FUNCTIONS and len(arguments) != 2:
            self._source.error(f"'{name}' expected 2 arguments, got {len(arguments)}", mark)
        return self._apply(mark, name, *arguments)

    def _expect(self, punctuation: str) -> None:
        mark = self._source.mark()
        if not self._source.take(punctuation):
            self._source.error(f"expected '{punctuation}' in dimension", mark)

    def _apply(self, mark: int, function: str, *operands: T) -> T:
        """Applies a function that has no value for some constants."""
        try:
            return self._builder.apply(function, operands)
        except (ZeroDivisionError, ValueError) as error:
            self._source.error(str(error), mark)


class StringSource:
    """The tokens of a Python string."""

    _TOKEN = re.compile(
        r"\s*(?:(?P<int>\d+)|(?P<name>[A-Za-z_][A-Za-z0-9_$.]*)|(?P<punctuation>//|[-+*%(),])|(?P<end>$))"
    )

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._advance()

    def _advance(self) -> None:
        match = self._TOKEN.match(self._text, self._position)
        if match is None:
            rest = self._text[self._position :]
            self.error(f"unexpected character '{rest.strip()[0]}'", self._position + len(rest) - len(rest.lstrip()))
        self._kind = match.lastgroup or "end"
        self._token = match.group(self._kind)
        self._start = match.start(self._kind)
        self._position = match.end()

    def _take_kind(self, kind: str) -> str | None:
        if self._kind != kind:
            return None
        token = self._token
        self._advance()
        return token

    def take(self, punctuation: str) -> bool:
        return self._token == punctuation and self._take_kind("punctuation") is not None

    def integer(self) -> int | None:
        token = self._take_kind("int")
        return None if token is None else int(token)

    def identifier(self) -> str | None:
        return self._take_kind("name")

    def mark(self) -> int:
        return self._start

    def error(self, message: str, mark: int) -> NoReturn:
        raise DimSyntaxError(f"{message}, in '{self._text}' at column {mark + 1}")

    def expect_end(self) -> None:
        if self._kind != "end":
            self.error(f"unexpected '{self._token}'", self._start)
