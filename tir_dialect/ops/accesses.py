"""The text of buffers and accesses: types, elements `%A[%i, %j]` and regions `%A[%i, %lo to %hi]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, i1
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    OperandVariable,
    ParsingState,
    PrintingState,
    TypeDirective,
    VariadicOperandVariable,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from tir_dialect.ops.assembly_format import Directive, State, parse_defined_operand
from tir_dialect.types import BufferType


def parse_buffer(parser: Parser) -> SSAValue[BufferType]:
    """Parses a reference to a buffer that is already defined."""
    start = parser.pos
    value = parse_defined_operand(parser)
    if not isinstance(value.type, BufferType):
        parser.raise_error(f"expected a buffer, got a value of type {value.type}", start, parser.pos)
    return SSAValue.get(value, type=BufferType)


class Buffer(Directive):
    """A buffer: `%A`."""

    buffer: OperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        State.of(state).values[self.buffer.index] = (parse_buffer(parser),)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.buffer.print(printer, state, op)


class BufferResult(Directive):
    """The type of a result that is a buffer: `!tir.buffer<[n], f32>`."""

    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        start = parser.pos
        type = parser.parse_type()
        if not isinstance(type, BufferType):
            parser.raise_error(f"expected a buffer type, got {type}", start, parser.pos)
        self.type.set(state, (type,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.type.print(printer, state, op)


class Access(Directive):
    """An element of a buffer: `%A[%i, %j]`."""

    buffer: OperandVariable
    indices: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        values = State.of(state).values
        values[self.buffer.index] = (parse_buffer(parser),)
        values[self.indices.index] = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parse_defined_operand(parser)
        )

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.buffer.print(printer, state, op)
        with printer.in_square_brackets():
            printer.print_list(self.indices.get(op), printer.print_ssa_value)


@dataclass(frozen=True)
class RegionAxis:
    """One dimension of a region: the point `lower`, or the half-open range from `lower` to `upper`."""

    lower: SSAValue
    upper: SSAValue | None = None


class BufferRegion(Directive):
    """A region of a buffer, in each dimension a point or a range: `%A[%i, %lo to %hi]`."""

    buffer: OperandVariable
    lower: VariadicOperandVariable
    upper: VariadicOperandVariable
    is_range: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        values = State.of(state).values
        values[self.buffer.index] = (parse_buffer(parser),)
        axes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_axis(parser))
        values[self.lower.index], values[self.upper.index] = starts_and_ends(axes)
        self.is_range.set(state, ranges(axes))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.buffer.print(printer, state, op)
        flags = cast("DenseArrayBase[IntegerType]", self.is_range.get(op)).get_values()
        with printer.in_square_brackets():
            printer.print_list(
                axes_of(self.lower.get(op), self.upper.get(op), flags), lambda axis: _print_axis(printer, axis)
            )


def starts_and_ends(axes: Sequence[RegionAxis]) -> tuple[list[SSAValue], list[SSAValue]]:
    """The points and starts of ranges, one per dimension, and the ends of the ranges."""
    return [axis.lower for axis in axes], [axis.upper for axis in axes if axis.upper is not None]


def ranges(axes: Sequence[RegionAxis]) -> DenseArrayBase:
    """Which dimensions have a range."""
    return DenseArrayBase.from_list(i1, [int(axis.upper is not None) for axis in axes])


def axes_of(lower: Sequence[SSAValue], upper: Sequence[SSAValue], flags: Sequence[int]) -> list[RegionAxis]:
    """The dimensions of a region, of what `starts_and_ends` and `ranges` give."""
    ends = iter(upper)
    return [RegionAxis(start, next(ends) if ranged else None) for start, ranged in zip(lower, flags, strict=True)]


def _parse_axis(parser: Parser) -> RegionAxis:
    lower = parse_defined_operand(parser)
    if parser.parse_optional_keyword("to") is None:
        return RegionAxis(lower)
    return RegionAxis(lower, parse_defined_operand(parser))


def _print_axis(printer: Printer, axis: RegionAxis) -> None:
    printer.print_ssa_value(axis.lower)
    if axis.upper is not None:
        printer.print_string(" to ")
        printer.print_ssa_value(axis.upper)
