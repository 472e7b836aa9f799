"""Custom directives of assembly formats: how properties and types are written."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, SymbolRefAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    OperandVariable,
    ParsingState,
    PrintingState,
    TypeDirective,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from tir_dialect.attributes import DimAttr, parse_dim_expr, parse_dim_list, print_dim, print_dim_list
from tir_dialect.ops.assembly_format import Directive, State


def value_of(operand: OperandVariable, state: ParsingState) -> SSAValue:
    """The operand as it has been read."""
    return State.of(state).values[operand.index][0]


class Text(Directive):
    """A string: `"erff"`."""

    CONTEXT = ""
    """What an error says of the string that was expected."""

    text: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.text.set(state, StringAttr(parser.parse_str_literal(self.CONTEXT)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_string_literal(cast("StringAttr", self.text.get(op)).data)


class Word(Directive):
    """A string that is written as a word: `olt`."""

    word: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.word.set(state, StringAttr(parser.parse_identifier(f" as the {self.word.name}")))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_string(cast("StringAttr", self.word.get(op)).data)


class Number(Directive):
    """An integer of `i64`: `16`."""

    number: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.number.set(state, IntegerAttr(parser.parse_integer(), i64))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_int(cast("IntegerAttr", self.number.get(op)).value.data)


class Symbol(Directive):
    """A reference to a function of the module: `@f`."""

    symbol: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.symbol.set(state, SymbolRefAttr(parser.parse_symbol_name()))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_symbol_name(cast("SymbolRefAttr", self.symbol.get(op)).string_value())


class DimExpr(Directive):
    """A dimension: `4 * n + 1`."""

    dim: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.dim.set(state, DimAttr(parse_dim_expr(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        print_dim(printer, cast("DimAttr", self.dim.get(op)).data)


class Dims(Directive):
    """A list of dimensions: `[n, 4 * m]`."""

    dims: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.dims.set(state, ArrayAttr([DimAttr(dim) for dim in parse_dim_list(parser)]))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        print_dim_list(printer, [dim.data for dim in cast("ArrayAttr[DimAttr]", self.dims.get(op))])


class ResultType(Directive):
    """The type of a result: `f32`. In an optional group, the result is there if its type is."""

    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.type.set(state, (parser.parse_type(),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.type.print(printer, state, op)

    def set_empty(self, state: ParsingState) -> None:
        self.type.set(state, ())


class TypeOf(Directive):
    """The type of an operand, for the reader: `vector<8xf32>`. Any other type is an error."""

    operand: OperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        wanted, start = value_of(self.operand, state).type, parser.pos
        written = parser.parse_type()
        if written != wanted:
            what = self.operand.name if self.operand.name == "sum" else "operand"
            parser.raise_error(f"expected {wanted}, the type of the {what}, got {written}", start, parser.pos)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_attribute(self.operand.get(op).type)


class SameType(Directive):
    """Nothing: the result has the type of an operand."""

    result: TypeDirective
    operand: OperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.result.set(state, (value_of(self.operand, state).type,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        return


class TypeProperty(Directive):
    """A type that is a property: `bf16`."""

    type: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.type.set(state, parser.parse_type())

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_attribute(cast("Attribute", self.type.get(op)))
