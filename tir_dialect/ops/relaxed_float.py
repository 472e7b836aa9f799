"""Floating-point ops with relaxed semantics, which take fewer instructions than those of `arith` and `math`.

They serve softmax and other row-wise reductions: a NaN in a row makes the whole row NaN in any case, and a common
factor of the exponentials and their sum cancels in the quotient.
"""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat, Float32Type
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.ops.binary import BinaryOp
from tir_dialect.ops.directives import SameType, TypeOf
from tir_dialect.ops.memory import number_type

SCALE = 2.0**64
"""The factor of `tir.scaled_exp`."""


@op_definition
class GreaterOp(BinaryOp):
    """The first operand if it is greater than the second one, else the second: x86's `maxps`.

    ```mlir
    %top = tir.greater %x, %old : f32
    ```

    If either operand is NaN, or both are zeros of any sign, the result is the second operand.

    C1: operands and result are floats, or vectors of floats with one fixed dimension, of one type.
    """

    name = "tir.greater"

    def verify_(self) -> None:
        self.verify_types(AnyFloat, "floats")  # C1


@op_definition
class ScaledExpOp(IRDLOperation):
    """`e**x * 2**64` for `x <= 0`: a normal number, so that no lane needs the special case for subnormal results.

    ```mlir
    %y = tir.scaled_exp %x : f32
    ```

    An `x` below -104, for which `e**x` is 0 in `f32`, counts as -104. For positive `x` the result is undefined.

    C1: operand and result are `f32`, or vectors of it with one fixed dimension, of one type.
    """

    name = "tir.scaled_exp"

    operand = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    assembly_format = (
        "$operand attr-dict `:` custom<TypeOf>(ref($operand)) custom<SameType>(type($result), ref($operand))"
    )
    custom_directives = (TypeOf, SameType)

    def __init__(self, operand: SSAValue | Operation):
        super().__init__(operands=[operand], result_types=[SSAValue.get(operand).type])

    def verify_(self) -> None:
        if self.operand.type != self.result.type or not isinstance(number_type(self.result.type), Float32Type):
            raise VerifyException(f"'tir.scaled_exp' op expected f32 or a vector of it, got {self.operand.type}")  # C1
