"""Signatures, as text and as the arguments of a body: of functions and closures, `[%n in [1, 2048], %k](%x: T, ...) ->
R impure`, and of loops, with what loops have in common: symbols and carried values, and how they are verified.

A loop is like a function that is called once per iteration: its symbols, `[%m]`, are bound anew from the carried
values, so that shapes may change from one iteration to the next as far as the carried types allow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue
from xdsl.irdl import IRDLOperation, prop_def, traits_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from relax_dialect.scope import BindsBlockSymbols, prover_at, symbols_witnessed
from relax_dialect.struct_info.match import Match, Mismatch, match_types
from relax_dialect.struct_info.symbols import erase_symbols, fresh_name
from relax_dialect.struct_info.types import FuncType, PrimType, StructInfo, as_struct_infos, parse_struct_info
from relax_dialect.traits import ControlFlow, Loop
from tir_dialect.dims import is_symbol_name
from tir_dialect.ops.assembly_format import parse_defined_operand
from tir_dialect.types import SymbolAttr, as_name_hint, parse_symbol, print_bounds


@dataclass(frozen=True)
class Signature:
    """A parsed signature: the function type, and the block arguments that stand for symbols and parameters."""

    type: FuncType
    arguments: tuple[Parser.Argument, ...]
    says_result: bool = True
    """Whether the result type is written; if not, it is an object in `type`."""
    names: tuple[str, ...] = ()
    """The parameters as they are written, without `%`."""

    def type_with(self, body: Region, inferred: StructInfo) -> FuncType:
        """The function type; a result that is not written is `inferred`, without the symbols that `body` binds."""
        if self.says_result:
            return self.type
        inner = {name for block in body.blocks for op in block.ops for name in symbols_witnessed(op)}
        ret = erase_symbols(inferred, inner)
        return FuncType(self.type.params, ret, pure=self.type.pure, symbols=self.type.symbols)


def witness_types(func: FuncType) -> tuple[PrimType, ...]:
    """The types of the leading block arguments, one witness per bound symbol."""
    return tuple(PrimType(value=name) for name in func.symbol_names)


def entry_region(func: FuncType, leading: Sequence[tuple[str, Attribute]] = ()) -> Region:
    """A region with one empty block whose arguments are `leading`, the witnesses and the parameters of `func`."""
    block = Block(arg_types=[*(info for _, info in leading), *witness_types(func), *func.params])
    for argument, name in zip(block.args, [*(name for name, _ in leading), *func.symbol_names], strict=False):
        argument.name_hint = as_name_hint(name)
    return Region(block)


def parse_signature(parser: Parser) -> Signature:
    """Parses a signature; a symbol argument is called `%n`, or `%x as n` if the value has another name.

    The result type may be left out: then it is that of the value which the function returns.
    """
    symbols = parse_optional_symbol_arguments(parser)
    names = list[str]()
    params = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_parameter(parser, names))
    ret = parse_struct_info(parser) if parser.parse_optional_punctuation("->") else None
    pure = not parser.parse_optional_keyword("impure")
    func = FuncType([info for _, info in params], ret, pure=pure, symbols=[symbol for _, symbol in symbols])
    witnesses = (argument.resolve(witness) for (argument, _), witness in zip(symbols, witness_types(func), strict=True))
    arguments = (*witnesses, *(argument for argument, _ in params))
    return Signature(func, arguments, ret is not None, tuple(names))


def print_signature(printer: Printer, func: FuncType, block: Block, leading: int = 0) -> tuple[str, ...]:
    """Prints what `parse_signature` reads, and gives the parameters as they are printed, without `%`.

    `leading` block arguments come before the witnesses.
    """
    witnesses = block.args[leading : leading + len(func.symbols)]
    if witnesses:
        with printer.in_square_brackets():
            printer.print_list(
                tuple(zip(witnesses, func.symbols, strict=True)), lambda pair: print_symbol_argument(printer, *pair)
            )
    names = list[str]()
    with printer.in_parens():
        params = block.args[leading + len(func.symbols) :]
        printer.print_list(params, lambda param: names.append(_print_parameter(printer, param)))
    printer.print_string(" -> ")
    printer.print_attribute(func.ret)
    if not func.pure:
        printer.print_string(" impure")
    return tuple(names)


def names_of(params: Sequence[BlockArgument], witnesses: Sequence[BlockArgument] = ()) -> tuple[str, ...]:
    """A name for each parameter, from the hints: `arg0` where there is none, and `x`, `x_1` of equal ones, as text has
    them; `witnesses` come before.
    """
    names = [witness.name_hint or "" for witness in witnesses]
    for index, param in enumerate(params):
        names.append(fresh_name(param.name_hint or f"arg{index}", names))
    return tuple(names[len(witnesses) :])


def names_as_written(written: Sequence[str], hinted: Sequence[str]) -> tuple[str, ...]:
    """The names of parameters that are called `written` in text, where a number is no name: what `hinted` says then."""
    return tuple(hint if name.isdecimal() else name for name, hint in zip(written, hinted, strict=True))


def parse_optional_symbol_arguments(parser: Parser) -> list[tuple[Parser.UnresolvedArgument, SymbolAttr]]:
    """Parses `[%n in [1, 2048], %k]` if present."""
    symbols = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_symbol_argument(parser))
    return symbols or []


def parse_symbol_argument(parser: Parser) -> tuple[Parser.UnresolvedArgument, SymbolAttr]:
    """Parses `%n`, `%x as n`, `%n in [1, 2048]`: a block argument that witnesses a symbol."""
    argument = parser.parse_argument(expect_type=False)
    name = argument.name.text[1:]
    if parser.parse_optional_keyword("as"):
        name = parser.parse_identifier(" as a symbol")
    if not is_symbol_name(name):
        parser.raise_error(f"{name} cannot name a symbol; write %{name} as <symbol>", argument.name)
    return argument, parse_symbol(parser, name)


def _parse_parameter(parser: Parser, names: list[str]) -> tuple[Parser.Argument, StructInfo]:
    argument = parser.parse_argument(expect_type=False)
    names.append(argument.name.text[1:])
    parser.parse_punctuation(":")
    info = parse_struct_info(parser)
    resolved = argument.resolve(info)
    resolved.location = parser.parse_optional_location()
    return resolved, info


def _print_parameter(printer: Printer, param: BlockArgument) -> str:
    name = printer.print_ssa_value(param)
    printer.print_string(": ")
    printer.print_attribute(param.type)
    if printer.print_debuginfo:
        printer.print_string(" ")
        printer.print_attribute(param.location)
    return name


def print_symbol_argument(printer: Printer, witness: BlockArgument, symbol: SymbolAttr) -> None:
    """Prints what `parse_symbol_argument` reads."""
    if printer.print_ssa_value(witness) != symbol.symbol.data:
        printer.print_string(f" as {symbol.symbol.data}")
    print_bounds(printer, symbol)


def signature_mismatch(func: FuncType, arguments: Sequence[BlockArgument]) -> str | None:
    """How the block arguments differ from the witnesses and parameters of the type, or `None`."""
    if func.opaque:
        return f"expected a type with parameters, got {func}"
    expected = (*witness_types(func), *func.params)
    if len(expected) != len(arguments):
        return f"expected {len(expected)} block arguments, got {len(arguments)}"
    for index, (info, argument) in enumerate(zip(expected, arguments, strict=True)):
        if argument.type != info:
            return f"block argument #{index} expected {info}, got {argument.type}"
    return None


class LoopOp(IRDLOperation, BindsBlockSymbols, ABC):
    """What loops have in common: carried values, and symbols that each iteration binds from them."""

    symbols_attr = prop_def(ArrayAttr[SymbolAttr], prop_name="symbols")
    inits = var_operand_def(StructInfo)
    res = var_result_def(StructInfo)

    traits = traits_def(ControlFlow(), Loop(), RecursiveMemoryEffect())

    @property
    @abstractmethod
    def leading(self) -> int:
        """How many block arguments come before the witnesses."""

    @property
    def symbols(self) -> Sequence[SymbolAttr]:
        return self.symbols_attr.data

    @property
    def symbol_names(self) -> tuple[str, ...]:
        """The names of the symbols that each iteration binds."""
        return tuple(symbol.symbol.data for symbol in self.symbols_attr)

    def block_witnesses(self, block: Block) -> dict[str, BlockArgument]:
        return dict(zip(self.symbol_names, self.witnesses(block), strict=False))

    def witnesses(self, block: Block) -> Sequence[BlockArgument]:
        """The arguments of a block of the loop that carry the symbols."""
        return block.args[self.leading : self.leading + len(self.symbols_attr)]

    def carried(self, block: Block) -> Sequence[BlockArgument]:
        """The arguments of a block of the loop that carry values from iteration to iteration."""
        return block.args[self.leading + len(self.symbols_attr) :]

    def match(self, values: Sequence[SSAValue]) -> Match:
        """How values meet the carried types: the symbols, and the checks to make at run time. Raises `Mismatch`."""
        carried = as_struct_infos(argument.type for argument in self.carried(self.regions[0].block))
        actual = as_struct_infos(value.type for value in values)
        return match_types(carried, actual, self.symbols, prover_at(self))

    def verify_block(self, block: Block) -> None:
        """Raises `VerifyException` unless the arguments of a block of the loop are as its header says."""
        witnesses = [PrimType(value=name) for name in self.symbol_names]
        carried = [argument.type for argument in self.carried(self.regions[0].block)]
        if [argument.type for argument in block.args[self.leading :]] != [*witnesses, *carried]:
            raise VerifyException(
                f"'{self.name}' op expected block arguments for {len(witnesses)} symbols and {len(carried)} carried "
                f"values, got ({', '.join(str(argument.type) for argument in block.args)})"
            )

    def verify_carried(self, values: Sequence[SSAValue], what: str) -> None:
        """Raises `VerifyException` if values cannot be carried."""
        count = len(self.carried(self.regions[0].block))
        if len(values) != count:
            raise VerifyException(f"'{self.name}' op expected {count} {what}s, got {len(values)}")
        try:
            self.match(values)
        except Mismatch as mismatch:
            raise VerifyException(f"'{self.name}' op {what} {mismatch}") from mismatch

    def verify_results(self, hidden: Sequence[str] = ()) -> None:
        """Raises `VerifyException` unless the results are the carried values without the loop's own symbols."""
        expected = final_types(self.regions[0].block, self.leading, self.symbol_names, hidden)
        if tuple(self.result_types) != expected:
            raise VerifyException(
                f"'{self.name}' op expected results ({', '.join(map(str, expected))}) as the carried values have, "
                f"got ({', '.join(map(str, self.result_types))})"
            )


def final_types(
    block: Block, leading: int, symbols: Sequence[str], hidden: Sequence[str] = ()
) -> tuple[StructInfo, ...]:
    """The types of the carried values after the loop: its symbols mean nothing there."""
    carried = as_struct_infos(argument.type for argument in block.args[leading + len(symbols) :])
    return tuple(erase_symbols(info, (*symbols, *hidden)) for info in carried)


class LoopHeader:
    """The parsed `[%m](%x: T = %init, ...)` of a loop."""

    def __init__(self, parser: Parser):
        symbols = parse_optional_symbol_arguments(parser)
        self.symbols = [symbol for _, symbol in symbols]
        carried = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: self._parse_carried(parser))
        self.inits = [init for _, init in carried]
        witnesses = [argument.resolve(PrimType(value=symbol.symbol.data)) for argument, symbol in symbols]
        self.arguments = [*witnesses, *(argument for argument, _ in carried)]

    def _parse_carried(self, parser: Parser) -> tuple[Parser.Argument, SSAValue]:
        argument = parser.parse_argument(expect_type=False)
        parser.parse_punctuation(":")
        info = parse_struct_info(parser)
        parser.parse_punctuation("=")
        return argument.resolve(info), parse_defined_operand(parser)


def parse_symbol_names(parser: Parser, header: LoopHeader) -> list[Parser.Argument]:
    """Parses `[%m](%x, ...)`: new names for the block arguments of a second region."""
    symbols = parse_optional_symbol_arguments(parser)
    position = parser.pos
    carried = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
    )
    arguments = [*(argument for argument, _ in symbols), *carried]
    if len(arguments) != len(header.arguments) or [symbol for _, symbol in symbols] != header.symbols:
        parser.raise_error("expected the symbols and carried values of the loop", position, parser.pos)
    return [argument.resolve(first.type) for argument, first in zip(arguments, header.arguments, strict=True)]


def print_symbols(printer: Printer, op: LoopOp, block: Block) -> None:
    """Prints the `[%m]` of a block of the loop, if it has symbols."""
    if op.symbols:
        pairs = tuple(zip(op.witnesses(block), op.symbols, strict=True))
        with printer.in_square_brackets():
            printer.print_list(pairs, lambda pair: print_symbol_argument(printer, *pair))


def print_header(printer: Printer, op: LoopOp, block: Block) -> None:
    """Prints what `LoopHeader` parses."""
    print_symbols(printer, op, block)

    def carried(pair: tuple[BlockArgument, SSAValue]) -> None:
        printer.print_block_argument(pair[0])
        printer.print_string(" = ")
        printer.print_operand(pair[1])

    with printer.in_parens():
        printer.print_list(tuple(zip(op.carried(block), op.inits, strict=True)), carried)
