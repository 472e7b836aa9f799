"""Integer division and remainders, of scalars or of vectors of one length.

Division never traps: a divisor that is 0 gives the quotient and the remainder 0, as in NumPy; what overflows wraps.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import llvm
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.llvm.builder.llvm_builder import LLVMBuilder
from lowering.llvm.builder.vector_types import element_type, integer_type, is_vector
from lowering.tir_to_llvm.arithmetic.byte_quotients import byte_quotient
from lowering.tir_to_llvm.arithmetic.float_quotients import float_quotient, is_uniform
from lowering.tir_to_llvm.arithmetic.long_quotients import long_quotient


def truncdiv(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Signed division towards zero; what overflows is negated."""
    return _quotient(b, lhs, rhs, _truncdiv, signed=True, down=False)


def truncmod(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """The remainder with the sign of the dividend; by -1 it is 0, as by 1."""
    return _remainder(b, lhs, rhs, llvm.SRemOp, truncdiv)


def floordiv(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Signed division rounded down."""
    known = b.known_integer(rhs)
    if known is not None and known > 0 and known & (known - 1) == 0:
        return lhs if known == 1 else b.make(llvm.AShrOp, (lhs, b.integer(known.bit_length() - 1, lhs.type)), lhs.type)
    return _quotient(b, lhs, rhs, _floordiv, signed=True, down=True)


def mod(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """What floor division leaves; it has the sign of the divisor."""
    known = b.known_integer(rhs)
    if known is not None and known > 0 and known & (known - 1) == 0:
        return b.make(llvm.AndOp, (lhs, b.integer(known - 1, lhs.type)), lhs.type)
    if _are_floored(b, rhs):
        lhs = _safe_dividend(b, lhs, rhs)
        return _remainder_of(b, lhs, rhs, floordiv(b, lhs, rhs))
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
    return _quotient(b, lhs, rhs, _unsigned_div, signed=False, down=False)


def unsigned_mod(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """What unsigned division leaves."""
    return _remainder(b, lhs, rhs, llvm.URemOp, unsigned_div)


def unsigned_ceildiv(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Unsigned division rounded up."""
    lhs = _safe_dividend(b, lhs, rhs)
    quotient = unsigned_div(b, lhs, rhs)
    up = b.compare("ne", _remainder_of(b, lhs, rhs, quotient), b.integer(0, lhs.type))
    return b.make(llvm.SubOp, (quotient, _sign_extended(b, up, lhs.type)), lhs.type)


Divide = Callable[[LLVMBuilder, SSAValue, SSAValue], SSAValue]


def _quotient(
    b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue, by_integers: Divide, *, signed: bool, down: bool
) -> SSAValue:
    """A quotient by floats, if LLVM would divide lane by lane, else by integers, for dividends that are safe."""
    lhs = _safe_dividend(b, lhs, rhs)
    if not _are_lanes(b, rhs) or (down and not _are_floored(b, rhs)):
        return by_integers(b, lhs, rhs)
    if _width(rhs) == 64:
        divisor = _safe_divisor(b, rhs, signed=False)
        return long_quotient(b, lhs, divisor, lambda: by_integers(b, lhs, rhs), signed=signed, down=down)
    by_lanes = byte_quotient if _width(rhs) == 8 and is_uniform(rhs) else float_quotient
    return by_lanes(b, lhs, _safe_divisor(b, rhs, signed=False), signed=signed, down=down)


def _remainder(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue, kind: type[Operation], divide: Divide) -> SSAValue:
    """What is left by a division, of which `kind` is the remainder for numbers that do not trap."""
    lhs = _safe_dividend(b, lhs, rhs)
    if _are_lanes(b, rhs):
        return _remainder_of(b, lhs, rhs, divide(b, lhs, rhs))
    return b.quotient(kind, lhs, _safe_divisor(b, rhs, signed=kind is llvm.SRemOp))


def _truncdiv(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """By integers; by -1 it is negation, which does not trap."""
    quotient = b.quotient(llvm.SDivOp, lhs, _safe_divisor(b, rhs, signed=True))
    if b.known_integer(rhs) not in (None, -1):
        return quotient
    is_minus_one = b.compare("eq", rhs, b.integer(-1, rhs.type))
    negated = b.wrapping(llvm.SubOp, b.integer(0, lhs.type), lhs)
    return b.select(is_minus_one, negated, quotient)


def _floordiv(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """By the quotient rounded towards zero, which is one too large where something is left below."""
    quotient = _truncdiv(b, lhs, rhs) if _width(rhs) == 64 else truncdiv(b, lhs, rhs)
    down = _signs_differ(b, _remainder_of(b, lhs, rhs, quotient), rhs)
    return b.make(llvm.AddOp, (quotient, _sign_extended(b, down, lhs.type)), lhs.type)


def _unsigned_div(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    return b.quotient(llvm.UDivOp, lhs, _safe_divisor(b, rhs, signed=False))


def _are_lanes(b: LLVMBuilder, divisor: SSAValue) -> bool:
    """Whether LLVM would divide lane by lane: by constants it multiplies. Of 64 bits, where floats are exact enough."""
    if not is_vector(divisor.type) or isinstance(divisor.owner, llvm.ConstantOp):
        return False
    return _width(divisor) <= 32 or "fma" in b.module.extensions


def _are_floored(b: LLVMBuilder, divisor: SSAValue) -> bool:
    """Whether quotients of lanes are rounded down at once: older processors have no instruction for it."""
    return _are_lanes(b, divisor) and "fma" in b.module.extensions


def _width(value: SSAValue) -> int:
    return integer_type(element_type(value.type)).width.data


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
