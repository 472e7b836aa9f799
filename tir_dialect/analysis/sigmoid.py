"""The logistic function in kernels: the ops that compute `1 / (1 + e**u)`.

Interpreter and generated code compute the quotient as one function of `u`. The sum itself overflows where the quotient
is a denormal number.
"""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, VectorType, f32, f64
from xdsl.ir import Operation, SSAValue


def exponent_of_sigmoid(op: Operation) -> SSAValue | None:
    """The `u` of an op that computes `1 / (1 + e**u)` of f32 or f64; `None` for any other op."""
    # The class itself, which has no subclasses: this is asked for every op.
    if type(op) is not arith.DivfOp or not _is_one(op.lhs):
        return None
    kind = op.result.type.element_type if isinstance(op.result.type, VectorType) else op.result.type
    power = power_in_sum(op.rhs) if kind in (f32, f64) else None
    return None if power is None else power.operand


def power_in_sum(value: SSAValue) -> math.ExpOp | None:
    """The power of a sum `1 + e**u`; `None` for any other value."""
    if not isinstance(value.owner, arith.AddfOp):
        return None
    lhs, rhs = value.owner.operands
    power = rhs if _is_one(lhs) else lhs
    return power.owner if isinstance(power.owner, math.ExpOp) and (_is_one(lhs) or _is_one(rhs)) else None


def _is_one(value: SSAValue) -> bool:
    constant = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return isinstance(constant, FloatAttr) and constant.value.data == 1.0
