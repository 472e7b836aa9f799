"""What loops have in common: symbols and carried values, how they are verified, and their header in text.

A loop is like a function that is called once per iteration: its symbols, `[%m]`, are bound anew from the carried
values, so that shapes may change from one iteration to the next as far as the carried types allow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from relax_dialect.ops.signature import parse_optional_symbol_arguments, print_symbol_argument
from relax_dialect.scope import BindsBlockSymbols, prover_at
from relax_dialect.struct_info.match import Match, Mismatch, match_types
from relax_dialect.struct_info.symbols import erase_symbols
from relax_dialect.struct_info.types import PrimType, StructInfo, as_struct_infos, parse_struct_info
from relax_dialect.traits import ControlFlow, Loop
from tir_dialect.ops.assembly_format import parse_defined_operand
from tir_dialect.types import SymbolAttr


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
