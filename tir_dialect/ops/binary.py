"""What ops on two numbers have in common."""

from __future__ import annotations

from types import UnionType
from typing import Self

from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tir_dialect.ops.memory import number_type
from tir_dialect.ops.syntax import parse_operands, print_operands


class BinaryOp(IRDLOperation):
    """An op on two numbers, or on two vectors of numbers element by element: `%r = tir.name %x, %y : type`."""

    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs], result_types=[SSAValue.get(lhs).type])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        (lhs, rhs), attributes = parse_operands(parser, 2)
        op = cls(lhs, rhs)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        print_operands(printer, self, self.result.type)

    def verify_types(self, kinds: UnionType, named: str) -> None:
        """VerifyException if operands and result are not of one type, numbers of these kinds or vectors of them."""
        same = self.lhs.type == self.rhs.type == self.result.type
        if not same or not isinstance(number_type(self.result.type), kinds):
            raise VerifyException(
                f"'{self.name}' op expected {named} or vectors of one type, got {self.lhs.type} and {self.rhs.type}"
            )
