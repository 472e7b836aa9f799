"""The dialect `smooth`, with one operator."""

from __future__ import annotations

from xdsl.dialects.builtin import Float64Type, FloatAttr
from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def

from relax_dialect.ops.fields import number
from relax_dialect.scalars import Domain
from xdsl_relax.extend import Inference, Operator, TensorType, op_definition, register_dialect


@op_definition
class SoftSignOp(Operator):
    """Elements over the sum of a constant and their absolute values: `%0 = smooth.softsign %x bias = 1.0`.

    C1: the dtype is a floating-point one.
    C2: the constant is above 0.
    """

    name = "smooth.softsign"

    bias = prop_def(FloatAttr[Float64Type], default_value=number(1.0))
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, bias: float = 1.0):
        super().__init__([x], {"bias": number(bias)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        """The type of the operand."""
        inference.require_domain(0, Domain.FLOAT)  # C1
        if inference.number("bias") <= 0:
            inference.fail(f"expected a bias above 0, got {inference.number('bias')}")  # C2
        return (inference.tensor(0),)


SMOOTH = register_dialect(Dialect("smooth", [SoftSignOp]))
