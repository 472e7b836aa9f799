"""The remainder of a division of floats."""

from __future__ import annotations

from xdsl.dialects.builtin import Float32Type, Float64Type
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tir_dialect.ops.memory import number_type
from tir_dialect.ops.syntax import parse_operands, print_operands


@irdl_op_definition
class FmodOp(IRDLOperation):
    """The remainder of the division rounded towards zero, exact, with the sign of the dividend: C's `fmod`.

    ```mlir
    %r = tir.fmod %x, %y : f32
    ```

    It is NaN if the dividend is infinite or the divisor is zero, and the dividend if only the divisor is infinite.

    C1: operands and result are `f32` or `f64`, or vectors of these with one fixed dimension, of one type.
    """

    name = "tir.fmod"

    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs], result_types=[SSAValue.get(lhs).type])

    @classmethod
    def parse(cls, parser: Parser) -> FmodOp:
        (lhs, rhs), attributes = parse_operands(parser, 2)
        op = cls(lhs, rhs)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        print_operands(printer, self, self.result.type)

    def verify_(self) -> None:
        same = self.lhs.type == self.rhs.type == self.result.type
        if not same or not isinstance(number_type(self.result.type), Float32Type | Float64Type):
            raise VerifyException(
                f"'tir.fmod' op expected f32 or f64 or vectors of one type, got {self.lhs.type} and {self.rhs.type}"
            )  # C1
