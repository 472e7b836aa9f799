"""Dimensions as text.

    sum     ::= product (('+' | '-') product)*
    product ::= unary (('*' | '//' | '%') unary)*
    unary   ::= '-' unary | primary
    primary ::= integer | symbol | function '(' sum (',' sum)* ')' | '(' sum ')'

`floordiv`, `mod`, `ceildiv` take two arguments, `min`, `max`, `broadcast` one or more. `//` and `%` are for Python
callers: MLIR text has no such tokens, so printing uses the functions. The grammar is written over a `TokenSource`;
MLIR parsers give theirs in `tir_dialect.attributes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NoReturn, Protocol, TypeAlias

from tir_dialect.dims.atoms import MAX_NESTING, FunctionAtom, SymbolAtom, is_symbol_name
from tir_dialect.dims.division import ceildiv, floordiv, mod
from tir_dialect.dims.expr import Dim, Monomial, Term, constant, multiply, symbol, total
from tir_dialect.dims.lattice import broadcast, maximum, minimum

DimLike: TypeAlias = Dim | int | str
"""A dimension, an integer, or text: the name of a symbol or an expression."""

MAX_NUMBER = 1 << 63
"""The greatest number in a text, for a minus may stand before it."""

_BINARY: dict[str, Callable[[Dim, Dim], Dim]] = {"floordiv": floordiv, "mod": mod, "ceildiv": ceildiv}
_VARIADIC: dict[str, Callable[..., Dim]] = {"min": minimum, "max": maximum, "broadcast": broadcast}


class DimSyntaxError(ValueError):
    """Text that is no dimension; the message shows the text and the column."""


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
        """The place of the next token, for `error`."""
        ...

    def error(self, message: str, mark: int) -> NoReturn:
        """Raises the error of this source at `mark`."""
        ...


def parse_sum(source: TokenSource, depth: int = 0) -> Dim:
    """Parses one expression and stops at the first token that does not continue it."""
    start = source.mark()
    parts = [_parse_product(source, depth)]
    while True:
        if source.take("+"):
            parts.append(_parse_product(source, depth))
        elif source.take("-"):
            parts.append(-_parse_product(source, depth))
        else:
            return parts[0] if len(parts) == 1 else _build(source, start, _total, *parts)


def _total(*parts: Dim) -> Dim:
    return total(parts)


def _parse_product(source: TokenSource, depth: int) -> Dim:
    result = _parse_unary(source, depth)
    while True:
        mark = source.mark()
        if source.take("*"):
            result = _build(source, mark, multiply, result, _parse_unary(source, depth))
        elif source.take("//"):
            result = _build(source, mark, floordiv, result, _parse_unary(source, depth))
        elif source.take("%"):
            result = _build(source, mark, mod, result, _parse_unary(source, depth))
        else:
            return result


def _parse_unary(source: TokenSource, depth: int) -> Dim:
    negative = False
    while source.take("-"):
        negative = not negative
    result = _parse_primary(source, depth)
    return -result if negative else result


def _parse_primary(source: TokenSource, depth: int) -> Dim:
    mark = source.mark()
    if depth > MAX_NESTING:
        source.error(f"dimension is nested deeper than {MAX_NESTING} levels", mark)
    if source.take("("):
        inner = parse_sum(source, depth + 1)
        _expect(source, ")")
        return inner
    value = source.integer()
    if value is not None:
        if value > MAX_NUMBER:
            source.error(f"{value} is too large for a dimension, which has 64 bits and a sign", mark)
        return constant(value)
    name = source.identifier()
    if name is None:
        source.error("expected a dimension: an integer, a symbol, a function or '('", mark)
    if name in _BINARY or name in _VARIADIC:
        return _parse_call(source, name, mark, depth + 1)
    if not is_symbol_name(name):
        source.error(f"'{name}' cannot name a symbol", mark)
    return symbol(name)


def _parse_call(source: TokenSource, name: str, mark: int, depth: int) -> Dim:
    _expect(source, "(")
    arguments = [parse_sum(source, depth)]
    while source.take(","):
        arguments.append(parse_sum(source, depth))
    _expect(source, ")")
    if name in _VARIADIC:
        return _build(source, mark, _VARIADIC[name], *arguments)
    if len(arguments) != 2:
        source.error(f"'{name}' expected 2 arguments, got {len(arguments)}", mark)
    return _build(source, mark, _BINARY[name], *arguments)


def _expect(source: TokenSource, punctuation: str) -> None:
    mark = source.mark()
    if not source.take(punctuation):
        source.error(f"expected '{punctuation}' in dimension", mark)


def _build(source: TokenSource, mark: int, function: Callable[..., Dim], *arguments: Dim) -> Dim:
    """Applies a function that has no value for some constants."""
    try:
        return function(*arguments)
    except (ZeroDivisionError, ValueError) as error:
        source.error(str(error), mark)


class _StringSource:
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


@lru_cache(maxsize=1024)
def parse_dim(text: str) -> Dim:
    """The dimension that `text` is; DimSyntaxError (a ValueError) where it is none."""
    source = _StringSource(text)
    result = parse_sum(source)
    source.expect_end()
    return result


def to_dim(value: DimLike) -> Dim:
    """`value` as a dimension."""
    if isinstance(value, Dim):
        return value
    return parse_dim(value) if isinstance(value, str) else constant(value)


def format_dim(dim: Dim) -> str:
    """The text of `dim`, which parses back to it: positive terms first, high degrees before low ones."""
    if not dim.terms:
        return "0"
    ordered = sorted(dim.terms, key=lambda term: term[0] < 0)
    pieces = [_format_term(ordered[0])]
    for coefficient, monomial in ordered[1:]:
        sign = "-" if coefficient < 0 else "+"
        pieces.append(f"{sign} {_format_term((abs(coefficient), monomial))}")
    return " ".join(pieces)


def _format_term(term: Term) -> str:
    coefficient, monomial = term
    if not monomial:
        return str(coefficient)
    factors = _format_monomial(monomial)
    if coefficient == 1:
        return factors
    return f"-{factors}" if coefficient == -1 else f"{coefficient} * {factors}"


def _format_monomial(monomial: Monomial) -> str:
    factors: list[str] = []
    for atom, power in monomial:
        if isinstance(atom, SymbolAtom):
            text = atom.name
        elif isinstance(atom, FunctionAtom):
            text = f"{atom.spelling}({', '.join(map(str, atom.operands))})"
        else:
            raise TypeError(f"unknown atom class {type(atom).__name__}")
        factors.extend([text] * power)
    return " * ".join(factors)
