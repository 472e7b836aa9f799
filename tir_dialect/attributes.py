"""Dimensions in IR text: the attribute `#tir.dim<...>`, and parsing and printing of dimensions in types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tir_dialect.dims import Dim, DimLike, to_dim
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
