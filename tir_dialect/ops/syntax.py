"""Parsing and printing of operands, shared by the op files."""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.parser import Parser


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
