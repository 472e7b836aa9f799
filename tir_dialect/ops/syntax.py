"""Parsing and printing of operands, shared by the op files."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer


def parse_optional_defined_operand(parser: Parser) -> SSAValue | None:
    """Parses `%x` or `%x#1` if present; the value must be defined already, so its type need not be written."""
    unresolved = parser.parse_optional_unresolved_operand()
    if unresolved is None:
        return None
    values = parser.ssa_values.get(unresolved.operand_name)
    if values is None:
        parser.raise_error(f"value %{unresolved.operand_name} is used before its definition", unresolved.span)
    if unresolved.index >= len(values):
        parser.raise_error(
            f"value %{unresolved.operand_name} has {len(values)} results, got index {unresolved.index}", unresolved.span
        )
    return values[unresolved.index]


def parse_defined_operand(parser: Parser) -> SSAValue:
    """Parses `%x` or `%x#1`; the value has to be defined already, so its type need not be written."""
    return parser.expect(lambda: parse_optional_defined_operand(parser), "expected a value")


def parse_defined_operands(parser: Parser) -> list[SSAValue]:
    """Parses `%x, %y`, possibly nothing; the values have to be defined already."""
    first = parse_optional_defined_operand(parser)
    if first is None:
        return []
    operands = [first]
    while parser.parse_optional_punctuation(","):
        operands.append(parse_defined_operand(parser))
    return operands


def parse_operands(parser: Parser, count: int) -> tuple[list[SSAValue], dict[str, Attribute]]:
    """Parses `count` operands, attributes, and the type of the last operand."""
    operands = [parse_defined_operand(parser)]
    for _ in range(count - 1):
        parser.parse_punctuation(",")
        operands.append(parse_defined_operand(parser))
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    start = parser.pos
    written = parser.parse_type()
    if written != operands[-1].type:
        parser.raise_error(f"expected {operands[-1].type}, the type of the operand, got {written}", start, parser.pos)
    return operands, attributes


def print_operands(printer: Printer, op: Operation, type: Attribute) -> None:
    """Prints operands, attributes and one type, after the name of an op."""
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_ssa_value)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(type)
