"""`1 / (1 + e**u)` as one function, at most 2 ulp off for all u.

The quotient of a rounded sum of a rounded power would be more than 2 off, and 0 where the power is infinite.
"""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, f32, f64
from xdsl.ir import Operation, SSAValue

from lowering.llvm.builder.vector_types import element_type
from lowering.tir_to_llvm.math.avx512 import finite_reciprocal, has_registers
from lowering.tir_to_llvm.math.coefficients import coefficients
from lowering.tir_to_llvm.math.expansion import tail_and_scale
from lowering.tir_to_llvm.math.floats import Floats

_LEAST = -40.0
"""Below, the quotient rounds to 1."""


def exponent_of_sigmoid(op: Operation) -> SSAValue | None:
    """The `u` of an op that computes `1 / (1 + e**u)` of f32 or f64; `None` for any other op."""
    # The class itself, which has no subclasses: this is asked for every op.
    if type(op) is not arith.DivfOp or element_type(op.result.type) not in (f32, f64) or not _is_one(op.lhs):
        return None
    power = power_in_sum(op.rhs)
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


def sigmoid(f: Floats, u: SSAValue) -> SSAValue:
    """`1 / (1 + 2**n + 2**n * t)` for `e**u = 2**n * (1 + t)`, where the first sum keeps what it rounds off.

    The sum is computed as `2**-shift + 2**-shift * e**u`, which is normal and finite wherever the quotient is not 0.
    """
    shift = (f.format.bias + 1) // 2
    tail, scale = tail_and_scale(f, f.clamp(u, _LEAST, -coefficients(f).exp_range[0]), f.format.bias - shift)
    one = f.number(2.0**-shift)
    most = f.add(scale, one)
    lost = f.sub(one, f.sub(most, scale))
    divisor = f.add(f.fma(scale, tail, lost), most)
    return f.mul(finite_reciprocal(f, divisor), one) if has_registers(f) else f.div(one, divisor)
