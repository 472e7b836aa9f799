"""Dimensions in IR text, the attribute `#tir.dim<...>`; the attribute of a symbol that a function binds; and names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn, TypeAlias

from xdsl.dialects.builtin import IntAttr, NoneAttr, StringAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tir_dialect.dims import Dim, DimLike, is_symbol_name, to_dim
from tir_dialect.dims.expr import parse_tokens


class _ParserSource:
    """The tokens of an MLIR parser, for the grammar of dimensions."""

    def __init__(self, parser: AttrParser) -> None:
        self._parser = parser

    def take(self, punctuation: str) -> bool:
        return self._parser.parse_optional_characters(punctuation) is not None

    def integer(self) -> int | None:
        return self._parser.parse_optional_integer(allow_boolean=False, allow_negative=False)

    def identifier(self) -> str | None:
        return self._parser.parse_optional_identifier()

    def mark(self) -> int:
        return self._parser.pos

    def error(self, message: str, mark: int) -> NoReturn:
        if mark == self._parser.pos:
            self._parser.raise_error(message)
        self._parser.raise_error(message, mark, self._parser.pos)


def parse_dim_expr(parser: AttrParser) -> Dim:
    """Parses a bare dimension, `4 * n + 1`; ParseError at the token that does not fit."""
    return parse_tokens(_ParserSource(parser))


def parse_dim_list(parser: AttrParser) -> tuple[Dim, ...]:
    """Parses `[n, 4 * m]`; the list may be empty."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_dim_expr(parser)))


def parse_optional_dim_list(parser: AttrParser) -> tuple[Dim, ...] | None:
    """Parses `[n, 4 * m]` if the next token is `[`."""
    dims = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_dim_expr(parser))
    return None if dims is None else tuple(dims)


def print_dim(printer: Printer, dim: Dim) -> None:
    """Prints a bare dimension, `4 * n + 1`."""
    printer.print_string(str(dim))


def print_dim_list(printer: Printer, dims: Sequence[Dim]) -> None:
    """Prints `[n, 4 * m]`."""
    with printer.in_square_brackets():
        printer.print_list(dims, lambda dim: print_dim(printer, dim))


@irdl_attr_definition
class DimAttr(Data[Dim]):
    """A symbolic dimension: `#tir.dim<4 * n + 1>`. Attributes of equal dimensions are equal."""

    name = "tir.dim"

    def __init__(self, dim: DimLike) -> None:
        super().__init__(to_dim(dim))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Dim:
        """Parses `<4 * n + 1>`."""
        with parser.in_angle_brackets():
            return parse_dim_expr(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Prints `<4 * n + 1>`."""
        with printer.in_angle_brackets():
            print_dim(printer, self.data)


Interval: TypeAlias = tuple[int, int | None]


@irdl_attr_definition
class SymbolAttr(ParametrizedAttribute):
    """`#tir.symbol<n in [1, 2048]>`: a symbol that a prim_func binds, with its inclusive bounds.

    Without bounds the value is any integer >= 0; in `[1, _]` there is no upper bound.
    """

    name = "tir.symbol"

    symbol: StringAttr
    lower_attr: IntAttr
    upper_attr: IntAttr | NoneAttr

    def __init__(self, symbol: str, lower: int = 0, upper: int | None = None):
        super().__init__(StringAttr(symbol), IntAttr(lower), NoneAttr() if upper is None else IntAttr(upper))

    @property
    def interval(self) -> Interval:
        """Least and greatest value, both inclusive; `None` is unbounded."""
        return self.lower_attr.data, self.upper_attr.data if isinstance(self.upper_attr, IntAttr) else None

    def verify(self) -> None:
        if not is_symbol_name(self.symbol.data):
            raise VerifyException(f"'{self.symbol.data}' cannot name a symbol")
        lower, upper = self.interval
        if lower < 0 or (upper is not None and upper < lower):
            raise VerifyException(f"symbol {self.symbol.data} has empty or negative bounds [{lower}, {upper}]")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return parse_symbol(parser, parser.parse_identifier(" as a symbol")).parameters

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.symbol.data)
            print_bounds(printer, self)


def parse_symbol(parser: AttrParser, name: str) -> SymbolAttr:
    """Parses the bounds of a symbol, `in [1, 2048]`, if there are any."""
    if parser.parse_optional_keyword("in") is None:
        return SymbolAttr(name)
    with parser.in_square_brackets():
        lower = parser.parse_integer(allow_boolean=False)
        parser.parse_punctuation(",")
        upper = None if parser.parse_optional_keyword("_") else parser.parse_integer(allow_boolean=False)
    return SymbolAttr(name, lower, upper)


def print_bounds(printer: Printer, symbol: SymbolAttr) -> None:
    """Prints ` in [1, 2048]`, or nothing if the symbol is any integer >= 0."""
    lower, upper = symbol.interval
    if (lower, upper) != (0, None):
        printer.print_string(f" in [{lower}, {'_' if upper is None else upper}]")


_NUMBER = re.compile(r"(_\d+)+$")
"""What xDSL takes off a name, once each time that it is copied."""


def as_name_hint(name: str | None) -> str | None:
    """The name as the hint of a value, without numbers at its end; `None` if nothing is left, or it is no identifier of
    MLIR's, which is ASCII.

    xDSL makes an empty hint of `_1`, which it then refuses to copy.
    """
    if name is None or not name.isascii() or not SSAValue.is_valid_name(name):
        return None
    return _NUMBER.sub("", name) or None
