"""What ops on two numbers have in common."""

from __future__ import annotations

from types import UnionType

from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tir_dialect.ops.directives import SameType, TypeOf
from tir_dialect.ops.memory import number_type


class BinaryOp(IRDLOperation):
    """An op on two numbers, or on two vectors of numbers element by element: `%r = tir.name %x, %y : type`."""

    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    assembly_format = "$lhs `,` $rhs attr-dict `:` custom<TypeOf>(ref($rhs)) custom<SameType>(type($result), ref($lhs))"
    custom_directives = (TypeOf, SameType)

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs], result_types=[SSAValue.get(lhs).type])

    def verify_types(self, kinds: UnionType, named: str) -> None:
        """VerifyException if operands and result are not of one type, numbers of these kinds or vectors of them."""
        same = self.lhs.type == self.rhs.type == self.result.type
        if not same or not isinstance(number_type(self.result.type), kinds):
            raise VerifyException(
                f"'{self.name}' op expected {named} or vectors of one type, got {self.lhs.type} and {self.rhs.type}"
            )
