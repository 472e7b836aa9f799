"""The base of operators: pure functions of tensors with inferred results and one uniform text."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Self

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import VariadicDef, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from relax_dialect.interfaces import InfersResultTypes
from relax_dialect.ops.fields import parse_fields, print_fields
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.traits import Checked
from tir_dialect.ops.syntax import parse_defined_operands


class Operator(InfersResultTypes, ABC):
    """An operator: `relax.name %x, %y axis = 1 : T`, the result types only where they are not the inferred ones.

    Operators have no effects; what they demand of their operands and cannot be proved is checked at run time.
    """

    traits = traits_def(Checked())

    def __init__(
        self,
        operands: Sequence[SSAValue | Operation],
        properties: Mapping[str, Attribute | None] | None = None,
        result_types: Sequence[StructInfo] | None = None,
    ):
        """Without result types they are inferred; `VerifyException` if the operands are wrong."""
        values = [SSAValue.get(operand) for operand in operands]
        given = {name: value for name, value in (properties or {}).items() if value is not None}
        if result_types is None:
            result_types = self.infer_result_types([value.type for value in values], given)
        # The operands are one flat list here, so the grouping that IRDL's constructor does has nothing to do.
        Operation.__init__(self, operands=values, result_types=result_types, properties=given)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        if parser.parse_optional_punctuation("(") is not None:
            message = f"expected operands without parentheses: {cls.name} %x, ..."
            parser.raise_error(f"'{cls.name}' op {message}", position, parser.pos)
        operands = parse_defined_operands(parser)
        definitions = cls.get_irdl_definition().operands
        variadic = any(isinstance(definition, VariadicDef) for _, definition in definitions)
        if not variadic and len(operands) != len(definitions):
            parser.raise_error(
                f"'{cls.name}' op expected {len(definitions)} operands, got {len(operands)}", position, position + 1
            )
        return cls.parse_inferred(parser, operands, parse_fields(parser, cls), position)

    def print(self, printer: Printer) -> None:
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_operand)
        print_fields(printer, type(self), self.properties)
        self.print_inferred(printer)
