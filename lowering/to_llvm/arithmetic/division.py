"""Integer division and remainders, of scalars or of vectors of one length.

Division never traps: a divisor that is 0 gives the quotient and the remainder 0, as in NumPy; what overflows wraps.
"""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import f32, f64, i32
from xdsl.ir import Attribute, SSAValue

from lowering.to_llvm import llvm_ext
from lowering.to_llvm.builder.llvm_builder import LLVMBuilder
from lowering.to_llvm.builder.vector_types import element_type, integer_type, is_vector, like


def truncdiv(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Signed division towards zero; by -1 it is negation, which does not trap."""
    lhs = _safe_dividend(b, lhs, rhs)
    quotient = _quotient(b, lhs, rhs, signed=True)
    if b.known_integer(rhs) not in (None, -1):
        return quotient
    is_minus_one = b.compare("eq", rhs, b.integer(-1, rhs.type))
    negated = b.wrapping(llvm.SubOp, b.integer(0, lhs.type), lhs)
    return b.select(is_minus_one, negated, quotient)


def truncmod(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """The remainder with the sign of the dividend; by -1 it is 0, as by 1."""
    return _remainder(b, _safe_dividend(b, lhs, rhs), rhs, signed=True)


def floordiv(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Signed division rounded down."""
    known = b.known_integer(rhs)
    if known is not None and known > 0 and known & (known - 1) == 0:
        return lhs if known == 1 else b.make(llvm.AShrOp, (lhs, b.integer(known.bit_length() - 1, lhs.type)), lhs.type)
    lhs = _safe_dividend(b, lhs, rhs)
    quotient = truncdiv(b, lhs, rhs)
    down = _signs_differ(b, _remainder_of(b, lhs, rhs, quotient), rhs)
    return b.make(llvm.AddOp, (quotient, _sign_extended(b, down, lhs.type)), lhs.type)


def mod(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """What floor division leaves; it has the sign of the divisor."""
    known = b.known_integer(rhs)
    if known is not None and known > 0 and known & (known - 1) == 0:
        return b.make(llvm.AndOp, (lhs, b.integer(known - 1, lhs.type)), lhs.type)
    remainder = truncmod(b, lhs, rhs)
    moved = b.make(llvm.AddOp, (remainder, rhs), lhs.type)
    return b.select(_signs_differ(b, remainder, rhs), moved, remainder)


def ceildiv(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Signed division rounded up."""
    lhs = _safe_dividend(b, lhs, rhs)
    quotient = truncdiv(b, lhs, rhs)
    remainder = _remainder_of(b, lhs, rhs, quotient)
    zero = b.integer(0, lhs.type)
    same = b.compare("sge", b.make(llvm.XOrOp, (remainder, rhs), lhs.type), zero)
    up = b.make(llvm.AndOp, (b.compare("ne", remainder, zero), same), same.type)
    return b.make(llvm.SubOp, (quotient, _sign_extended(b, up, lhs.type)), lhs.type)


def unsigned_div(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Unsigned division rounded down."""
    return _quotient(b, _safe_dividend(b, lhs, rhs), rhs, signed=False)


def unsigned_mod(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """What unsigned division leaves."""
    return _remainder(b, _safe_dividend(b, lhs, rhs), rhs, signed=False)


def unsigned_ceildiv(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Unsigned division rounded up."""
    up = b.compare("ne", unsigned_mod(b, lhs, rhs), b.integer(0, lhs.type))
    return b.make(llvm.SubOp, (unsigned_div(b, lhs, rhs), _sign_extended(b, up, lhs.type)), lhs.type)


def _quotient(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue, *, signed: bool) -> SSAValue:
    """The quotient rounded towards zero; what would trap is divided by 1."""
    divisor = _safe_divisor(b, rhs, signed=signed)
    if _are_lanes(rhs):
        return _quotient_of_floats(b, lhs, divisor, signed, _is_uniform(rhs))
    return b.quotient(llvm.SDivOp if signed else llvm.UDivOp, lhs, divisor)


def _remainder(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue, *, signed: bool) -> SSAValue:
    """What is left by `_quotient`."""
    divisor = _safe_divisor(b, rhs, signed=signed)
    if _are_lanes(rhs):
        return _remainder_of(b, lhs, divisor, _quotient_of_floats(b, lhs, divisor, signed, _is_uniform(rhs)))
    return b.quotient(llvm.SRemOp if signed else llvm.URemOp, lhs, divisor)


def _are_lanes(divisor: SSAValue) -> bool:
    """Whether LLVM would divide lane by lane what f64 can: by constants it multiplies."""
    if not is_vector(divisor.type) or isinstance(divisor.owner, llvm.ConstantOp):
        return False
    return integer_type(element_type(divisor.type)).width.data <= 32


def _is_uniform(divisor: SSAValue) -> bool:
    """Whether all lanes are one scalar, which does not change in the loop."""
    owner = divisor.owner
    return isinstance(owner, llvm.ShuffleVectorOp) and not any(owner.mask.iter_values())


_ENLARGED, _ENLARGED_64 = 1.0 + 2.0**-20, 1.0 + 2.0**-40
"""More than what a reciprocal and a product lose, and less than what a quotient of 16 or 32 bits may be enlarged by."""


def _quotient_of_floats(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue, signed: bool, is_uniform: bool) -> SSAValue:
    """The same by floats that have more digits than the integers.

    A quotient that is not whole lies below the next whole number by its share of `1 / lhs` or more, so that it is never
    rounded to that. So a `uniform` divisor may be replaced by a reciprocal that is a little too large: whole quotients
    are not rounded to less, and the loop multiplies.
    """
    width, wide = integer_type(element_type(lhs.type)).width.data, like(lhs.type, i32)
    extend, to_float, to_integer = (
        (llvm.SExtOp, llvm.SIToFPOp, llvm_ext.FPToSIOp)
        if signed
        else (llvm.ZExtOp, llvm_ext.UIToFPOp, llvm_ext.FPToUIOp)
    )
    kind = like(lhs.type, f32 if width <= 16 else f64)
    # Outside of the loop what does not change in it.
    numbers = [b.once(extend, (each,), wide) if width < 32 else each for each in (lhs, rhs)]
    dividend, divisor = (b.once(to_float, (each,), kind) for each in numbers)
    if is_uniform:
        inverse = b.once(llvm.FDivOp, (b.float(_ENLARGED if width <= 16 else _ENLARGED_64, kind), divisor), kind)
        quotient = b.make(llvm.FMulOp, (dividend, inverse), kind)
    else:
        quotient = b.make(llvm.FDivOp, (dividend, divisor), kind)
    whole = b.make(to_integer, (quotient,), wide)
    return b.make(llvm.TruncOp, (whole,), lhs.type) if width < 32 else whole


def _safe_dividend(b: LLVMBuilder, dividend: SSAValue, divisor: SSAValue) -> SSAValue:
    """The dividend, or 0 where the divisor is 0."""
    known = b.known_integer(divisor)
    if known is not None and known != 0:
        return dividend
    zero = b.integer(0, divisor.type)
    return b.select(b.compare("eq", divisor, zero), zero, dividend)


def _safe_divisor(b: LLVMBuilder, divisor: SSAValue, *, signed: bool) -> SSAValue:
    """The divisor, or 1 where dividing by it would trap."""
    known = b.known_integer(divisor)
    if known is not None and known != 0 and not (signed and known == -1):
        return divisor
    traps = b.compare("eq", divisor, b.integer(0, divisor.type))
    if signed:
        is_minus_one = b.compare("eq", divisor, b.integer(-1, divisor.type))
        traps = b.once(llvm.OrOp, (traps, is_minus_one), traps.type)
    return b.select(traps, b.integer(1, divisor.type), divisor)


def _remainder_of(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue, quotient: SSAValue) -> SSAValue:
    return b.wrapping(llvm.SubOp, lhs, b.wrapping(llvm.MulOp, quotient, rhs))


def _signs_differ(b: LLVMBuilder, remainder: SSAValue, divisor: SSAValue) -> SSAValue:
    """Whether the remainder is not 0 and of the other sign than the divisor."""
    zero = b.integer(0, remainder.type)
    differ = b.compare("slt", b.make(llvm.XOrOp, (remainder, divisor), remainder.type), zero)
    return b.make(llvm.AndOp, (b.compare("ne", remainder, zero), differ), differ.type)


def _sign_extended(b: LLVMBuilder, condition: SSAValue, type_: Attribute) -> SSAValue:
    """-1 where the condition holds, else 0."""
    return b.make(llvm.SExtOp, (condition,), type_)
