"""Pieces of text format shared by the ops.

Operands print without their type. A use that stands before its definition in the text, which only block order can
cause, prints as `(%v : type)`, so that every text parses back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import NoneAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    OperandVariable,
    OptionalOperandVariable,
    ParsingState,
    PrintingState,
    SuccessorVariable,
    TypeDirective,
    VariadicOperandVariable,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from vm_dialect.ops.base import Directive
from vm_dialect.types import ShapeType, TensorType


class TypedOperand(NamedTuple):
    """An operand as parsed, with its type."""

    operand: UnresolvedOperand
    type: Attribute


def parse_optional_value(parser: Parser) -> TypedOperand | None:
    """`%v` or `(%v : type)`, if the text goes on with one."""
    if parser.parse_optional_punctuation("(") is not None:
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        value_type = parser.parse_type()
        parser.parse_punctuation(")")
        return TypedOperand(operand, value_type)
    operand = parser.parse_optional_unresolved_operand()
    if operand is None:
        return None
    values = parser.ssa_values.get(operand.operand_name)
    if values is None:
        parser.raise_error(
            f"'%{operand.operand_name}' is used before its definition: write (%{operand.operand_name} : type)",
            operand.span,
        )
    if operand.index >= len(values):
        parser.raise_error(f"'%{operand.operand_name}' has {len(values)} values", operand.span)
    return TypedOperand(operand, values[operand.index].type)


def parse_value(parser: Parser) -> TypedOperand:
    """`%v` or `(%v : type)`."""
    value = parse_optional_value(parser)
    if value is None:
        parser.raise_error("expected an operand")
    return value


def parse_values(parser: Parser) -> list[TypedOperand]:
    """`%a, %b)`: the rest of a list in parentheses, the closing one included."""
    first = parse_optional_value(parser)
    values = [] if first is None else [first]
    while values and parser.parse_optional_punctuation(",") is not None:
        values.append(parse_value(parser))
    parser.parse_punctuation(")")
    return values


def resolve(parser: Parser, values: Sequence[TypedOperand]) -> list[SSAValue]:
    """The SSA values of parsed operands."""
    return [parser.resolve_operand(value.operand, value.type) for value in values]


def print_value(printer: Printer, value: SSAValue, user: Operation) -> None:
    """The value's name, with its type if `user` stands before the definition."""
    if _is_defined_before(value, user):
        printer.print_ssa_value(value)
        return
    with printer.in_parens():
        printer.print_ssa_value(value)
        printer.print_string(" : ")
        printer.print_attribute(value.type)


def print_values(printer: Printer, values: Sequence[SSAValue], user: Operation) -> None:
    """`(%a, %b)`."""
    with printer.in_parens():
        printer.print_list(values, lambda value: print_value(printer, value, user))


def _is_defined_before(value: SSAValue, user: Operation) -> bool:
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    use_block = user.parent
    if block is None or use_block is None or block is use_block:
        return True
    region = block.parent
    if region is None or region is not use_block.parent:
        return True
    return region.get_block_index(block) < region.get_block_index(use_block)


class Value(Directive):
    """One operand, without its type."""

    value: OperandVariable
    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Reads `%v`."""
        operand, value_type = parse_value(parser)
        self.value.set(state, operand)
        self.type.set(state, (value_type,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Writes `%v`."""
        state.print_whitespace(printer)
        print_value(printer, self.value.get(op), op)


class OptionalValue(Directive):
    """An operand that may be absent, without its type."""

    value: OptionalOperandVariable
    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Reads `%v`, or nothing."""
        parsed = parse_optional_value(parser)
        self.value.set(state, None if parsed is None else parsed.operand)
        self.type.set(state, () if parsed is None else (parsed.type,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Writes `%v`, or nothing."""
        value = self.value.get(op)
        if value is not None:
            state.print_whitespace(printer)
            print_value(printer, value, op)


class Values(Directive):
    """The operands in parentheses, without their types."""

    values: VariadicOperandVariable
    types: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Reads `(%a, %b)`."""
        parser.parse_punctuation("(")
        values = parse_values(parser)
        self.values.set(state, [value.operand for value in values])
        self.types.set(state, [value.type for value in values])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Writes `(%a, %b)`."""
        print_values(printer, self.values.get(op), op)
        state.should_emit_space = True
        state.last_was_punctuation = False


class RankAndDtype(Directive):
    """A tensor type as `rank 2 dtype f32`; a part that is unknown is left out."""

    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Reads `rank 2 dtype f32`."""
        rank = parser.parse_integer() if parser.parse_optional_keyword("rank") is not None else None
        dtype = parser.parse_type() if parser.parse_optional_keyword("dtype") is not None else None
        self.type.set(state, (TensorType(rank, dtype),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Writes `rank 2 dtype f32`."""
        (tensor,) = self.type.get(op)
        if not isinstance(tensor, TensorType):
            return
        if tensor.rank is not None:
            state.print_whitespace(printer)
            printer.print_string(f"rank {tensor.rank}")
        if not isinstance(tensor.dtype, NoneAttr):
            state.print_whitespace(printer)
            printer.print_string("dtype ")
            printer.print_attribute(tensor.dtype)


class Rank(Directive):
    """A shape type as `rank 2`; nothing if unknown."""

    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Reads `rank 2`."""
        rank = parser.parse_integer() if parser.parse_optional_keyword("rank") is not None else None
        self.type.set(state, (ShapeType(rank),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Writes `rank 2`."""
        (shape,) = self.type.get(op)
        if isinstance(shape, ShapeType) and shape.rank is not None:
            state.print_whitespace(printer)
            printer.print_string(f"rank {shape.rank}")


class Target(Directive):
    """A successor and what its block arguments receive: `^b` or `^b(%a, %b)`."""

    block: SuccessorVariable
    values: VariadicOperandVariable
    types: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Reads `^b(%a)`."""
        self.block.set(state, parser.parse_successor())
        values = parse_values(parser) if parser.parse_optional_punctuation("(") is not None else []
        self.values.set(state, [value.operand for value in values])
        self.types.set(state, [value.type for value in values])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Writes `^b(%a)`."""
        state.print_whitespace(printer)
        printer.print_block_name(self.block.get(op))
        if values := self.values.get(op):
            print_values(printer, values, op)
