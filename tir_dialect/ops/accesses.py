"""The text of buffers and accesses: types, elements `%A[%i, %j]` and regions `%A[%i, %lo to %hi]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from tir_dialect.ops.syntax import parse_defined_operand
from tir_dialect.types import BufferType


def parse_buffer(parser: Parser) -> SSAValue[BufferType]:
    """Parses a reference to a buffer that is already defined."""
    start = parser.pos
    value = parse_defined_operand(parser)
    if not isinstance(value.type, BufferType):
        parser.raise_error(f"expected a buffer, got a value of type {value.type}", start, parser.pos)
    return SSAValue.get(value, type=BufferType)


def parse_buffer_type(parser: Parser) -> tuple[BufferType, dict[str, Attribute]]:
    """Parses the end of an op whose result is a buffer: optional attributes and `: !tir.buffer<[n], f32>`."""
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    start = parser.pos
    type = parser.parse_type()
    if not isinstance(type, BufferType):
        parser.raise_error(f"expected a buffer type, got {type}", start, parser.pos)
    return type, attributes


def print_buffer_type(printer: Printer, type: Attribute, attributes: Mapping[str, Attribute]) -> None:
    """Prints attributes if there are any, and ` : !tir.buffer<[n], f32>`."""
    printer.print_op_attributes(attributes)
    printer.print_string(" : ")
    printer.print_attribute(type)


def parse_access(parser: Parser) -> tuple[SSAValue[BufferType], list[SSAValue]]:
    """Parses `%A[%i, %j]`."""
    buffer = parse_buffer(parser)
    indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_defined_operand(parser))
    return buffer, indices


def print_access(printer: Printer, buffer: SSAValue, indices: Sequence[SSAValue]) -> None:
    """Prints `%A[%i, %j]`."""
    printer.print_ssa_value(buffer)
    with printer.in_square_brackets():
        printer.print_list(indices, printer.print_ssa_value)


def parse_numbered_access(
    parser: Parser, word: str
) -> tuple[SSAValue[BufferType], list[SSAValue], int, dict[str, Attribute]]:
    """Parses `%A[%i, %j] word 2 {..}`: an element, a keyword with a number, and attributes."""
    buffer, indices = parse_access(parser)
    parser.parse_keyword(word)
    return buffer, indices, parser.parse_integer(), parser.parse_optional_attr_dict()


def print_numbered_access(printer: Printer, op: Operation, word: str, number: int) -> None:
    """Prints what `parse_numbered_access` parses, for an op whose operands are a buffer and indices."""
    printer.print_string(" ")
    print_access(printer, op.operands[0], op.operands[1:])
    printer.print_string(f" {word} {number}")
    printer.print_op_attributes(op.attributes)


@dataclass(frozen=True)
class RegionAxis:
    """One dimension of a region: the point `lower`, or the half-open range from `lower` to `upper`."""

    lower: SSAValue
    upper: SSAValue | None = None


def parse_buffer_region(parser: Parser) -> tuple[SSAValue[BufferType], list[RegionAxis]]:
    """Parses `%A[%i, %lo to %hi]`."""
    buffer = parse_buffer(parser)
    return buffer, parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_axis(parser))


def print_buffer_region(printer: Printer, buffer: SSAValue, axes: Sequence[RegionAxis]) -> None:
    """Prints `%A[%i, %lo to %hi]`."""
    printer.print_ssa_value(buffer)
    with printer.in_square_brackets():
        printer.print_list(axes, lambda axis: _print_axis(printer, axis))


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
