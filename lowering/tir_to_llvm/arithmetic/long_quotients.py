"""Quotients of vectors of 64-bit integers, by f64: exact.

Dividends of less than `2**48` have one quotient of floats, as in `float_quotients.py`. With AVX-512 others take two:
the first is off by less than `2**15 / rhs + 1`, the second is that of what it leaves and right but for its last unit.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import llvm
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from lowering.llvm.builder.llvm_builder import LLVMBuilder
from lowering.llvm.builder.vector_types import like
from lowering.tir_to_llvm import llvm_ext
from lowering.tir_to_llvm.arithmetic.float_quotients import enlarged_reciprocal, is_uniform, ratio
from lowering.tir_to_llvm.math.avx512 import has_registers_of_doubles, whole_number
from lowering.tir_to_llvm.math.floats import Floats

_NEAR = 1 << 48
_REDUCED = 1.0 - 2.0**-50
"""Less than what conversions, a reciprocal and a product may add."""


def long_quotient(
    b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue, by_integers: Callable[[], SSAValue], *, signed: bool, down: bool
) -> SSAValue:
    """The quotient by a divisor that is not 0, rounded towards zero, or `down`; what overflows wraps.

    `by_integers` divides the large numbers of processors whose vectors of i64 are not converted by one instruction.
    """
    f = Floats(b, like(lhs.type, f64))
    uniform, native = is_uniform(rhs), has_registers_of_doubles(f)
    is_far = _is_far(b, lhs, signed)
    if not native and not uniform:
        is_far = b.make(llvm.OrOp, (is_far, _is_far(b, rhs, signed)), is_far.type)
    divisor = _float(f, rhs, signed) if uniform or native else _small_float(f, rhs)
    near, far, after = b.new_block(), b.new_block(), b.new_block([lhs.type])
    b.branch_if(b.any_lane(is_far), far, near)
    b.start(far)
    if not native:
        b.branch(after, by_integers())
    elif signed:
        b.branch(after, _signed_in_two_steps(f, lhs, rhs, divisor, down))
    else:
        b.branch(after, _unsigned_in_two_steps(f, lhs, rhs, divisor))
    b.start(near)
    dividend = _float(f, lhs, True) if native else _small_float(f, lhs)
    quotient = ratio(f, dividend, divisor, is_uniform=uniform, down=down)
    b.branch(after, whole_number(f, quotient, lhs.type, down=down) if native else _small_whole(f, quotient, down))
    b.start(after)
    return after.args[0]


def _is_far(b: LLVMBuilder, value: SSAValue, signed: bool) -> SSAValue:
    if not signed:
        return b.compare("uge", value, b.integer(_NEAR, value.type))
    above = b.wrapping(llvm.AddOp, value, b.integer(_NEAR, value.type))
    return b.compare("uge", above, b.integer(2 * _NEAR, value.type))


def _float(f: Floats, value: SSAValue, signed: bool) -> SSAValue:
    return f.b.once(llvm.SIToFPOp if signed else llvm_ext.UIToFPOp, (value,), f.type)


def _small_float(f: Floats, value: SSAValue) -> SSAValue:
    """A number that is not far, by the last digits of a float whose unit is 1."""
    offset = f.integer(_bits_of_rounding(f))
    return f.sub(f.from_bits(f.integers_op(llvm.AddOp, value, offset)), f.number(f.format.rounding))


def _small_whole(f: Floats, value: SSAValue, down: bool) -> SSAValue:
    """The way back."""
    whole = f.b.overloaded("llvm.floor" if down else "llvm.trunc", (value,), f.type)
    digits = f.bits(f.add(whole, f.number(f.format.rounding)))
    return f.integers_op(llvm.SubOp, digits, f.integer(_bits_of_rounding(f)))


def _bits_of_rounding(f: Floats) -> int:
    return ((f.format.bias + f.format.fraction) << f.format.fraction) + (1 << (f.format.fraction - 1))


def _signed_in_two_steps(f: Floats, lhs: SSAValue, rhs: SSAValue, divisor: SSAValue, down: bool) -> SSAValue:
    """By a reciprocal that is a little too large: what is left is less than the divisor, but maybe of the wrong sign.

    A first quotient of `2**63` or more is converted to `-2**63`, with which integers, which wrap, go on.
    """
    b, inverse, zero = f.b, enlarged_reciprocal(f, divisor), f.integer(0)

    def step(dividend: SSAValue) -> tuple[SSAValue, SSAValue]:
        quotient = whole_number(f, f.mul(_float(f, dividend, True), inverse), lhs.type, down=False)
        return quotient, _less_product(f, dividend, quotient, rhs)

    first, rest = step(lhs)
    second, rest = step(rest)
    quotient = f.integers_op(llvm.AddOp, first, second)
    opposite = b.compare("slt", b.make(llvm.XOrOp, (rest, rhs if down else lhs), lhs.type), zero)
    is_wrong = b.make(llvm.AndOp, (opposite, b.compare("ne", rest, zero)), opposite.type)
    is_negative = b.compare("slt", b.make(llvm.XOrOp, (lhs, rhs), lhs.type), zero)
    correction = f.integer(-1) if down else b.select(is_negative, f.integer(1), f.integer(-1))
    return f.integers_op(llvm.AddOp, quotient, b.select(is_wrong, correction, zero))


def _unsigned_in_two_steps(f: Floats, lhs: SSAValue, rhs: SSAValue, divisor: SSAValue) -> SSAValue:
    """By a reciprocal that is a little too small: the quotient is not too large, and at last one too small or right."""
    b = f.b
    inverse = b.once(llvm.FDivOp, (f.number(_REDUCED), divisor), f.type)

    def step(dividend: SSAValue) -> tuple[SSAValue, SSAValue]:
        product = f.mul(_float(f, dividend, False), inverse)
        quotient = b.make(llvm_ext.FPToUIOp, (product,), lhs.type)
        return quotient, _less_product(f, dividend, quotient, rhs)

    first, rest = step(lhs)
    second, rest = step(rest)
    more = b.make(llvm.ZExtOp, (b.compare("uge", rest, rhs),), lhs.type)
    return f.integers_op(llvm.AddOp, f.integers_op(llvm.AddOp, first, second), more)


def _less_product(f: Floats, value: SSAValue, quotient: SSAValue, divisor: SSAValue) -> SSAValue:
    return f.integers_op(llvm.SubOp, value, f.integers_op(llvm.MulOp, quotient, divisor))
