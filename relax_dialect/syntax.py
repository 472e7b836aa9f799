"""Pieces of custom syntax that the relax op files share."""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator

from relax_dialect.struct_info.types import StructInfo, parse_struct_info


def print_arguments(printer: Printer, arguments: Sequence[SSAValue]) -> None:
    """Prints `(%x, %y)`."""
    with printer.in_parens():
        printer.print_list(arguments, printer.print_operand)


def parse_optional_result_types(parser: Parser) -> list[StructInfo] | None:
    """Parses `: T, ...` if present."""
    if not parser.parse_optional_punctuation(":"):
        return None
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_struct_info(parser))


def parse_result_types(parser: Parser) -> list[StructInfo]:
    """Parses `: T, ...`."""
    return parser.expect(lambda: parse_optional_result_types(parser), "expected ':' and the result types")


def parse_body(parser: Parser, terminator: type[Operation]) -> tuple[Region, dict[str, Attribute]]:
    """Parses `attributes {...} { ... }`: a region of one block that ends in `terminator`, and the attributes."""
    attributes = parser.parse_optional_attr_dict_with_keyword()
    return parse_block(parser, terminator), {} if attributes is None else dict(attributes.data)


_BRACE = re.compile(r"//[^\n]*|}")
"""A closing brace, unless it is in a comment."""


def parse_block(parser: Parser, terminator: type[Operation]) -> Region:
    """Parses a region of one block that ends in `terminator`; an error is at its end, where that is missing."""
    start = parser.pos
    region = parser.parse_region()
    if len(region.blocks) != 1 or not isinstance(region.block.last_op, terminator):
        inside = parser.lexer.input.content[start : parser.pos]
        end = start + [each.start() for each in _BRACE.finditer(inside) if each[0] == "}"][-1]
        message = f"the region has to end with '{terminator.name}': add `{terminator.name} %value` before the brace"
        last = region.block.last_op if len(region.blocks) == 1 else None
        if last is not None and last.has_trait(IsTerminator):
            message = f"the region has to end with '{terminator.name}', not with '{last.name}'"
        parser.raise_error(message, end, end + 1)
    return region


def print_body(printer: Printer, op: Operation, body: Region) -> None:
    """Prints what `parse_body` reads."""
    printer.print_op_attributes(op.attributes, print_keyword=True)
    printer.print_string(" ")
    printer.print_region(body)


def print_result_types(printer: Printer, types: Sequence[Attribute]) -> None:
    """Prints ` : T, ...`, or nothing if there are no types."""
    if types:
        printer.print_string(" : ")
        printer.print_list(types, printer.print_attribute)


def finish(op: Operation, parser: Parser) -> None:
    """Parses the attribute dictionary that ends the text of an op, before its result types, into the op."""
    op.attributes |= parser.parse_optional_attr_dict()
