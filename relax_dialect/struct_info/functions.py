"""The function kind: closures with a signature, and opaque packed functions with an optional derive function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from relax_dialect.struct_info.base import StructInfo, parse_struct_info
from relax_dialect.struct_info.types import ObjectType


@irdl_attr_definition
class SymbolAttr(ParametrizedAttribute):
    """`#relax.symbol<n in [1, 2048]>`: a symbol that a function binds, with its inclusive bounds.

    Without bounds the value is any integer >= 0; `[1, _]` has no upper bound.
    """

    name = "relax.symbol"

    symbol: StringAttr
    lower_attr: IntAttr
    upper_attr: Attribute

    def __init__(self, symbol: str, lower: int = 0, upper: int | None = None):
        super().__init__(StringAttr(symbol), IntAttr(lower), NoneAttr() if upper is None else IntAttr(upper))

    @property
    def lower(self) -> int:
        """The least value."""
        return self.lower_attr.data

    @property
    def upper(self) -> int | None:
        """The greatest value, if there is one."""
        return self.upper_attr.data if isa(self.upper_attr, IntAttr) else None

    @property
    def interval(self) -> tuple[int, int | None]:
        """Least and greatest value, both inclusive."""
        return self.lower, self.upper

    def verify(self) -> None:
        if self.upper is not None and self.upper < self.lower:
            raise VerifyException(f"symbol {self.symbol.data} has no value in [{self.lower}, {self.upper}]")
        if self.lower < 0:
            raise VerifyException(f"symbol {self.symbol.data} expected a lower bound of at least 0, got {self.lower}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return parse_symbol(parser).parameters

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_symbol(printer, self)


def parse_symbol(parser: AttrParser, name: str | None = None) -> SymbolAttr:
    """Parses `n` or `n in [1, 2048]`; the name is not parsed if it is given."""
    symbol = parser.parse_identifier(" as a symbol") if name is None else name
    lower, upper = parse_optional_bounds(parser)
    return SymbolAttr(symbol, lower, upper)


def parse_optional_bounds(parser: AttrParser) -> tuple[int, int | None]:
    """Parses `in [1, 2048]` if present; `_` leaves the upper end open. Default: `(0, None)`."""
    if not parser.parse_optional_keyword("in"):
        return 0, None
    with parser.in_square_brackets():
        lower = parser.parse_integer()
        parser.parse_punctuation(",")
        upper = None if parser.parse_optional_keyword("_") else parser.parse_integer()
    return lower, upper


def print_symbol(printer: Printer, symbol: SymbolAttr) -> None:
    """Prints what `parse_symbol` reads."""
    printer.print_string(symbol.symbol.data)
    print_bounds(printer, symbol)


def print_bounds(printer: Printer, symbol: SymbolAttr) -> None:
    """Prints ` in [1, 2048]`, or nothing if the symbol is any integer >= 0."""
    if symbol.lower == 0 and symbol.upper is None:
        return
    upper = "_" if symbol.upper is None else str(symbol.upper)
    printer.print_string(f" in [{symbol.lower}, {upper}]")


@irdl_attr_definition
class FuncType(ParametrizedAttribute, StructInfo):
    """`!relax.func<[n](!relax.tensor<[n], f32>) -> !relax.tensor<[n], f32>, pure>`: a function value.

    The bracketed symbols are bound by the call, hence local to the type; every other symbol is the surrounding
    scope's. A packed function, of which no parameters are known, is written `!relax.func<* -> R, impure>`, or
    `!relax.func<* derive "name", impure>` if its result is computed by the derive function of that name.
    """

    name = "relax.func"

    symbols_attr: ArrayAttr[SymbolAttr]
    params_attr: ArrayAttr[StructInfo]
    ret: StructInfo
    opaque_attr: IntAttr
    pure_attr: IntAttr
    derive_attr: Attribute

    def __init__(
        self,
        params: Iterable[StructInfo] | None,
        ret: StructInfo | None = None,
        *,
        pure: bool | None = None,
        symbols: Iterable[SymbolAttr | str] = (),
        derive: str | None = None,
    ):
        """Parameters `None` means opaque; then the default is impure, otherwise pure."""
        super().__init__(
            ArrayAttr(tuple(SymbolAttr(symbol) if isinstance(symbol, str) else symbol for symbol in symbols)),
            ArrayAttr(tuple(params or ())),
            ObjectType() if ret is None else ret,
            IntAttr(int(params is None)),
            IntAttr(int(params is not None if pure is None else pure)),
            NoneAttr() if derive is None else StringAttr(derive),
        )

    @property
    def opaque(self) -> bool:
        """Whether nothing is known of the parameters, as of a packed function."""
        return self.opaque_attr.data != 0

    @property
    def pure(self) -> bool:
        """Whether calls have no visible effect but their result."""
        return self.pure_attr.data != 0

    @property
    def params(self) -> tuple[StructInfo, ...]:
        """The parameter types; empty if the function is opaque."""
        return self.params_attr.data

    @property
    def symbols(self) -> tuple[SymbolAttr, ...]:
        """The symbols that a call binds."""
        return self.symbols_attr.data

    @property
    def symbol_names(self) -> tuple[str, ...]:
        """The names of the symbols that a call binds."""
        return tuple(symbol.symbol.data for symbol in self.symbols_attr)

    @property
    def derive(self) -> str | None:
        """The name of the derive function that computes the result of a call, if there is one."""
        return self.derive_attr.data if isinstance(self.derive_attr, StringAttr) else None

    def verify(self) -> None:
        if len(set(self.symbol_names)) != len(self.symbols):
            raise VerifyException(f"'relax.func' type binds a symbol twice: {', '.join(self.symbol_names)}")
        if self.opaque and (self.params or self.symbols):
            raise VerifyException("'relax.func' type is opaque, so it has neither parameters nor symbols")
        if self.derive is not None and not self.opaque:  # specification, well-formedness 17
            raise VerifyException("'relax.func' type has both parameters and a derive function, expected one of them")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return parse_func_type_body(parser).parameters

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_signature(printer, self)
            printer.print_string(", pure" if self.pure else ", impure")


def _parse_optional_purity(parser: AttrParser) -> bool | None:
    if not parser.parse_optional_punctuation(","):
        return None
    return parser.parse_keyword_in(("pure", "impure")) == "pure"


def parse_func_type_body(parser: AttrParser) -> FuncType:
    """Parses what stands between the angle brackets of a function type."""
    if parser.parse_optional_punctuation("*"):
        derive = parser.parse_str_literal() if parser.parse_optional_keyword("derive") else None
        ret = parse_struct_info(parser) if parser.parse_optional_punctuation("->") else None
        return FuncType(None, ret, pure=_parse_optional_purity(parser), derive=derive)
    symbols = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_symbol(parser))
    params = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_struct_info(parser))
    parser.parse_punctuation("->")
    ret = parse_struct_info(parser)
    return FuncType(params, ret, pure=_parse_optional_purity(parser), symbols=symbols or ())


def _print_signature(printer: Printer, func: FuncType) -> None:
    if func.opaque:
        printer.print_string("*")
        if func.derive is not None:
            printer.print_string(" derive ")
            printer.print_string_literal(func.derive)
    else:
        if func.symbols:
            with printer.in_square_brackets():
                printer.print_list(func.symbols, lambda symbol: print_symbol(printer, symbol))
        with printer.in_parens():
            printer.print_list(func.params, printer.print_attribute)
    printer.print_string(" -> ")
    printer.print_attribute(func.ret)
