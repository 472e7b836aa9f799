"""The function kind: closures with a signature, and opaque packed functions with an optional derive function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from relax_dialect.struct_info.base import StructInfo, parse_struct_info
from relax_dialect.struct_info.types import ObjectType
from tir_dialect.attributes import SymbolAttr, parse_symbol, print_bounds


def parse_symbol_declaration(parser: AttrParser) -> SymbolAttr:
    """Parses `n` or `n in [1, 2048]`."""
    return parse_symbol(parser, parser.parse_identifier(" as a symbol"))


def parse_symbol_declarations(parser: AttrParser) -> list[SymbolAttr]:
    """Parses `[n, m in [1, 2048]]`."""
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_symbol_declaration(parser))


def print_symbol_declaration(printer: Printer, symbol: SymbolAttr) -> None:
    """Prints what `parse_symbol_declaration` reads."""
    printer.print_string(symbol.symbol.data)
    print_bounds(printer, symbol)


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
        """Whether nothing is known about the parameters, as of a packed function."""
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
    symbols = parser.parse_optional_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: parse_symbol_declaration(parser)
    )
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
                printer.print_list(func.symbols, lambda symbol: print_symbol_declaration(printer, symbol))
        with printer.in_parens():
            printer.print_list(func.params, printer.print_attribute)
    printer.print_string(" -> ")
    printer.print_attribute(func.ret)
