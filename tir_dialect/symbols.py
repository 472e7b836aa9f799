"""Names: the attribute of a symbol that a function binds, with its bounds, and name hints of values from external
names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import IntAttr, NoneAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tir_dialect.dims import is_symbol_name

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
