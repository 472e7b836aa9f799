"""Loops with carried values.

A loop is like a function that is called once per iteration: its symbols, `[%m]`, are bound anew from the carried
values, so that shapes may change from one iteration to the next as far as the carried types allow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Block, BlockArgument, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.pattern_rewriter import RewritePattern
from xdsl.printer import Printer
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from relax_dialect.ops.control_flow import CONDITION_TYPES, is_condition, yielded
from relax_dialect.ops.signature import parse_optional_symbol_arguments, print_symbol_argument
from relax_dialect.scope import BindsBlockSymbols, prover_at
from relax_dialect.struct_info.base import StructInfo, as_struct_infos, parse_struct_info
from relax_dialect.struct_info.erase import erase_symbols
from relax_dialect.struct_info.match import Match, Mismatch, match_types
from relax_dialect.struct_info.symbols import free_symbols
from relax_dialect.struct_info.types import PrimType
from relax_dialect.traits import ControlFlow, Loop
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.syntax import parse_defined_operand
from tir_dialect.symbols import SymbolAttr


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


class _Header:
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


def _parse_symbol_names(parser: Parser, header: _Header) -> list[Parser.Argument]:
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


def _print_symbols(printer: Printer, op: LoopOp, block: Block) -> None:
    if op.symbols:
        pairs = tuple(zip(op.witnesses(block), op.symbols, strict=True))
        with printer.in_square_brackets():
            printer.print_list(pairs, lambda pair: print_symbol_argument(printer, *pair))


def _print_header(printer: Printer, op: LoopOp, block: Block) -> None:
    _print_symbols(printer, op, block)

    def carried(pair: tuple[BlockArgument, SSAValue]) -> None:
        printer.print_block_argument(pair[0])
        printer.print_string(" = ")
        printer.print_operand(pair[1])

    with printer.in_parens():
        printer.print_list(tuple(zip(op.carried(block), op.inits, strict=True)), carried)


@irdl_op_definition
class WhileOp(LoopOp):
    """Runs its second region as long as its first yields true.

    ```mlir
    %r = relax.while [%m](%x: !relax.tensor<[m, 4], f32> = %init) {
      %c = relax.call_pure_packed "go_on"(%x) : !relax.tensor<[], i1>
      relax.yield %c
    } do [%m_1 as m](%y) {
      %0 = relax.concat %y, %y axis = 0
      relax.yield %0
    }
    ```

    Both regions have the symbols and the carried values as arguments. The results are the carried values for which the
    condition was false; dimensions that use the loop's symbols are unknown after it.

    C1: both blocks have the symbols and the carried values as arguments.
    C2: the initial values can be carried.
    C3: the first region yields a truth value.
    C4: what the second region yields can be carried.
    C5: the results have the carried types, without the loop's symbols.
    """

    name = "relax.while"

    condition_region = region_def("single_block")
    body = region_def("single_block")

    def __init__(
        self, inits: Sequence[SSAValue], condition: Region, body: Region, symbols: Sequence[SymbolAttr | str] = ()
    ):
        attrs = [SymbolAttr(symbol) if isinstance(symbol, str) else symbol for symbol in symbols]
        names = [symbol.symbol.data for symbol in attrs]
        super().__init__(
            operands=[inits],
            properties={"symbols": ArrayAttr(attrs)},
            regions=[condition, body],
            result_types=[final_types(condition.block, 0, names)],
        )

    @property
    def leading(self) -> int:
        return 0

    @classmethod
    def parse(cls, parser: Parser) -> WhileOp:
        header = _Header(parser)
        condition = parser.parse_region(header.arguments)
        parser.parse_keyword("do")
        body = parser.parse_region(_parse_symbol_names(parser, header))
        op = cls(header.inits, condition, body, header.symbols)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        _print_header(printer, self, self.condition_region.block)
        printer.print_string(" ")
        printer.print_region(self.condition_region, print_entry_block_args=False)
        printer.print_string(" do ")
        _print_symbols(printer, self, self.body.block)
        with printer.in_parens():
            printer.print_list(self.carried(self.body.block), printer.print_ssa_value)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        for region in self.regions:
            self.verify_block(region.block)  # C1
        self.verify_carried(self.inits, "initial value")  # C2
        condition = yielded(self.condition_region)
        if len(condition) != 1 or not is_condition(condition[0].type):
            got = ", ".join(str(value.type) for value in condition)
            raise VerifyException(f"'relax.while' op condition expected {CONDITION_TYPES}, got ({got})")  # C3
        self.verify_carried(yielded(self.body), "yielded value")  # C4
        self.verify_results()  # C5


@irdl_op_definition
class ForOp(LoopOp, HasCanonicalizationPatternsInterface):
    """Runs its region for `lower`, `lower + step`, ... below `upper`.

    ```mlir
    %r = relax.for %i = %lower to %upper (%acc: !relax.tensor<[4], f32> = %init) {
      %0 = relax.add %acc, %x
      relax.yield %0
    }
    %s = relax.for %i as i = %zero to %n step %two (%acc: !relax.object = %init) { ... }
    ```

    With `as i` the counter is also a symbol of the body. Without `step` it is 1; a step below 1 is an error at run
    time.

    C1: the block has the counter, the symbols and the carried values as arguments.
    C2: the bounds and the step are prims of `i64`.
    C3: the counter is a symbol only if the lower bound is provably not negative.
    C4: the initial values can be carried.
    C5: what the region yields can be carried.
    C6: the results have the carried types, without the loop's symbols.
    C7: the step is not provably below 1.
    C8: no carried type names the counter, which is another number in the next iteration.
    """

    name = "relax.for"

    counter_symbol = opt_prop_def(StringAttr)
    lower = operand_def(PrimType)
    upper = operand_def(PrimType)
    step = opt_operand_def(PrimType)
    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        lower: SSAValue,
        upper: SSAValue,
        inits: Sequence[SSAValue],
        body: Region,
        *,
        step: SSAValue | None = None,
        symbols: Sequence[SymbolAttr | str] = (),
        counter_symbol: str | None = None,
    ):
        attrs = [SymbolAttr(symbol) if isinstance(symbol, str) else symbol for symbol in symbols]
        names = [symbol.symbol.data for symbol in attrs]
        hidden = () if counter_symbol is None else (counter_symbol,)
        super().__init__(
            operands=[lower, upper, step, inits],
            properties={
                "symbols": ArrayAttr(attrs),
                "counter_symbol": None if counter_symbol is None else StringAttr(counter_symbol),
            },
            regions=[body],
            result_types=[final_types(body.block, 1, names, hidden)],
        )

    @property
    def leading(self) -> int:
        return 1

    @property
    def counter(self) -> BlockArgument:
        """The block argument that is `lower`, `lower + step`, ..."""
        return self.body.block.args[0]

    def block_witnesses(self, block: Block) -> dict[str, BlockArgument]:
        own = {} if self.counter_symbol is None else {self.counter_symbol.data: block.args[0]}
        return {**own, **super().block_witnesses(block)}

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from relax_dialect.canonicalization.control_flow import SkipEmptyLoop

        return (SkipEmptyLoop(),)

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        counter = parser.parse_argument(expect_type=False)
        symbol = parser.parse_identifier() if parser.parse_optional_keyword("as") else None
        parser.parse_punctuation("=")
        lower = parse_defined_operand(parser)
        parser.parse_keyword("to")
        upper = parse_defined_operand(parser)
        step = parse_defined_operand(parser) if parser.parse_optional_keyword("step") else None
        header = _Header(parser)
        body = parser.parse_region([counter.resolve(PrimType(value=symbol)), *header.arguments])
        op = cls(lower, upper, header.inits, body, step=step, symbols=header.symbols, counter_symbol=symbol)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.counter)
        if self.counter_symbol is not None:
            printer.print_string(f" as {self.counter_symbol.data}")
        for word, value in (("=", self.lower), ("to", self.upper), ("step", self.step)):
            if value is not None:
                printer.print_string(f" {word} ")
                printer.print_operand(value)
        printer.print_string(" ")
        _print_header(printer, self, self.body.block)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        symbol = None if self.counter_symbol is None else self.counter_symbol.data
        if not self.body.block.args or self.counter.type != PrimType(value=symbol):
            raise VerifyException(
                f"'relax.for' op expected the counter as first argument, a {PrimType(value=symbol)}"
            )  # C1
        self.verify_block(self.body.block)  # C1
        for argument in self.carried(self.body.block):
            if symbol is not None and symbol in free_symbols(argument.type):
                raise VerifyException(
                    f"'relax.for' op expected carried types that do not name the counter {symbol}, got {argument.type}"
                )  # C8
        self._verify_bounds()
        self.verify_carried(self.inits, "initial value")  # C4
        self.verify_carried(yielded(self.body), "yielded value")  # C5
        self.verify_results(() if symbol is None else (symbol,))  # C6

    def _bound(self, value: SSAValue | None) -> Dim | None:
        """What is known of a bound or of the step."""
        if value is None:
            return constant(1)
        if not isinstance(value.type, PrimType) or value.type.dtype != i64:
            raise VerifyException(f"'relax.for' op expected bounds and step of i64, got {value.type}")  # C2
        return value.type.value

    def _verify_bounds(self) -> None:
        first, _, step = (self._bound(value) for value in (self.lower, self.upper, self.step))
        prover = prover_at(self)
        if self.counter_symbol is not None and (first is None or prover.less_equal(0, first) is not True):
            raise VerifyException(
                f"'relax.for' op counts by a symbol, so expected a lower bound that is provably not negative, "
                f"got {self.lower.type}"
            )  # C3
        if step is not None and prover.less_equal(1, step) is False:
            raise VerifyException(f"'relax.for' op expected a step of at least 1, got {step}")  # C7
