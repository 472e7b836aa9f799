"""Integer division and remainders, of scalars or of vectors of one length.

Division never traps: a divisor that is 0 gives the quotient and the remainder 0, as in NumPy; what overflows wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from math import prod

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, f32, f64, i1, i16, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.llvm import llvm_ext
from lowering.llvm.function_builder import element_type, integer_type, is_vector, like
from lowering.llvm.llvm_builder import LLVMBuilder
from lowering.tir_to_llvm.math.floats import (
    BINARY64,
    Floats,
    has_registers,
    has_registers_of_doubles,
    has_registers_of_shorts,
    upper_halves,
    whole_number,
)
from tir_dialect.dims import Atom, Bounds, BroadcastAtom, Dim, FloorDivAtom, MaxAtom, MinAtom, ModAtom, SymbolAtom
from tir_dialect.dims.bounds import Ranges, UnboundedRanges


def byte_quotient(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue, *, signed: bool, down: bool) -> SSAValue:
    """The quotient by a divisor that is not 0 and the same in all lanes, rounded towards zero, or `down`."""
    kind = like(lhs.type, i16)
    if not signed:
        above = b.wrapping(llvm.AddOp, b.make(llvm.ZExtOp, (lhs,), kind), b.integer(1, kind))
        quotient = _upper_half(b, above, _inverse(b, rhs, 2.0**16 - 1), signed=False)
        return b.make(llvm.TruncOp, (quotient,), lhs.type)
    is_negative = b.compare("slt", rhs, b.integer(0, rhs.type))
    twice = b.select(is_negative, b.integer(-2, kind), b.integer(2, kind))
    double = b.wrapping(llvm.MulOp, b.make(llvm.SExtOp, (lhs,), kind), twice)
    size = b.overloaded("llvm.abs", (b.once(llvm.SExtOp, (rhs,), kind), b.false()), kind)
    inverse, odd = _inverse(b, size, 2.0**15, 0.5), b.integer(1, kind)
    if down:
        quotient = _upper_half(b, b.make(llvm.OrOp, (double, odd), kind), inverse, signed=True)
    else:  # a negative quotient is rounded down, to one less
        sign = b.make(llvm.AShrOp, (double, b.integer(15, kind)), kind)
        away = b.wrapping(llvm.AddOp, double, b.make(llvm.OrOp, (sign, odd), kind))
        quotient = b.wrapping(llvm.SubOp, _upper_half(b, away, inverse, signed=True), sign)
    return b.make(llvm.TruncOp, (quotient,), lhs.type)


def _inverse(b: LLVMBuilder, divisor: SSAValue, dividend: float, rounding: float = 0.0) -> SSAValue:
    """The whole part of `dividend / divisor + rounding`, of 16 bits, or with a sign the greatest there is."""
    f, wide = Floats(b, like(divisor.type, f32)), like(divisor.type, i32)
    number = b.once(llvm_ext.UIToFPOp, (b.once(llvm.ZExtOp, (divisor,), wide),), f.type)
    quotient = b.once(llvm.FDivOp, (f.number(dividend), number), f.type)
    whole = b.once(llvm_ext.FPToUIOp, (b.once(llvm.FAddOp, (quotient, f.number(rounding)), f.type),), wide)
    if rounding:
        whole = b.overloaded("llvm.umin", (whole, b.integer(2**15 - 1, wide)), wide)
    return b.once(llvm.TruncOp, (whole,), like(divisor.type, i16))


def _upper_half(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue, *, signed: bool) -> SSAValue:
    """The upper 16 bits of a product. LLVM knows it, but not if it sees that a factor is of a byte."""
    if has_registers_of_shorts(b, lhs.type):
        return upper_halves(b, lhs, rhs, signed=signed)
    wide = like(lhs.type, i32)
    extend = llvm.SExtOp if signed else llvm.ZExtOp
    product = b.wrapping(llvm.MulOp, *(b.make(extend, (each,), wide) for each in (lhs, rhs)))
    return b.make(llvm.TruncOp, (b.make(llvm.LShrOp, (product, b.integer(16, wide)), wide),), lhs.type)


_ENLARGED, _ENLARGED_64 = 1.0 + 2.0**-20, 1.0 + 2.0**-50
"""More than what conversions, a reciprocal and a product lose, and less than what a quotient of 16 or 48 bits may be
enlarged by."""


def float_quotient(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue, *, signed: bool, down: bool) -> SSAValue:
    """The quotient by a divisor that is not 0, rounded towards zero, or `down`; what overflows wraps.

    A quotient that is not whole lies below the next whole number by its share of `1 / lhs` or more, so that it is never
    rounded to that.
    """
    width, wide = integer_type(element_type(lhs.type)).width.data, like(lhs.type, i32)
    extend, to_float = (llvm.SExtOp, llvm.SIToFPOp) if signed else (llvm.ZExtOp, llvm_ext.UIToFPOp)
    f = Floats(b, like(lhs.type, f32 if width <= 16 else f64))
    # Outside of the loop what does not change in it.
    numbers = [b.once(extend, (each,), wide) if width < 32 else each for each in (lhs, rhs)]
    dividend, divisor = (b.once(to_float, (each,), f.type) for each in numbers)
    quotient = ratio(f, dividend, divisor, is_uniform=is_uniform(rhs), down=down)
    if not signed:
        whole = b.make(llvm_ext.FPToUIOp, (quotient,), wide)
    elif has_registers(f) or has_registers_of_doubles(f):
        whole = whole_number(f, quotient, wide, down=down)
    else:
        whole = _whole_number(f, lhs, rhs, quotient, down)
    return b.make(llvm.TruncOp, (whole,), lhs.type) if width < 32 else whole


def is_uniform(divisor: SSAValue) -> bool:
    """Whether all lanes are one scalar, which does not change in the loop."""
    owner = divisor.owner
    if isinstance(owner, llvm_ext.SelectOp):  # of a number that replaces 0
        return is_uniform(owner.operands[2])
    return isinstance(owner, llvm.ShuffleVectorOp) and not any(owner.mask.iter_values())


def ratio(f: Floats, dividend: SSAValue, divisor: SSAValue, *, is_uniform: bool, down: bool) -> SSAValue:
    """A number that gives the quotient when it is rounded towards zero, or `down`.

    A divisor that does not change in the loop is replaced by its reciprocal, a little too large, so that the size of a
    whole quotient is not rounded to less. `floor(x / y)` is `floor((x + 1/2) / y)` for positive y, which is half of
    `1 / y` or more away from all whole numbers; so too with `x - 1/2` for negative y.
    """
    if not is_uniform:
        return f.div(dividend, divisor)
    inverse = enlarged_reciprocal(f, divisor)
    if not down:
        return f.mul(dividend, inverse)
    half = f.b.once(llvm.FMulOp, (f.magnitude(inverse), f.number(0.5)), f.type)
    return f.fused(dividend, inverse, half)


def enlarged_reciprocal(f: Floats, divisor: SSAValue) -> SSAValue:
    """`1 / divisor`, a little too large in size; outside of a loop in which the divisor does not change."""
    enlarged = _ENLARGED_64 if f.format == BINARY64 else _ENLARGED
    return f.b.once(llvm.FDivOp, (f.number(enlarged), divisor), f.type)


def _whole_number(f: Floats, lhs: SSAValue, rhs: SSAValue, quotient: SSAValue, down: bool) -> SSAValue:
    """The same where a conversion has no value for what does not fit, as the least i32 divided by -1."""
    b = f.b
    if down:
        quotient = b.overloaded("llvm.floor", (quotient,), f.type)
    whole = b.make(llvm_ext.FPToSIOp, (quotient,), like(f.type, i32))
    if f.format != BINARY64:
        return whole
    is_minus_one = b.compare("eq", rhs, b.integer(-1, rhs.type))
    return b.select(is_minus_one, b.wrapping(llvm.SubOp, b.integer(0, lhs.type), lhs), whole)


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


Combine = Callable[[SSAValue, SSAValue], SSAValue]


class DimValues:
    """Computes dimensions over given symbols, each once.

    The values are computed where the builder stands when they are first asked for, so that place has to dominate
    all uses.
    """

    def __init__(self, b: LLVMBuilder, symbols: Mapping[str, SSAValue]) -> None:
        self._b = b
        self._symbols = symbols
        self._dims: dict[Dim, SSAValue] = {}
        self._atoms: dict[Atom, tuple[SSAValue, int]] = {}
        """Each with a sign: a quotient that is rounded up is computed as it is, and not as the opposite of one that is
        rounded down."""
        self._ranges = Ranges(Bounds())
        self._safe_ranges = UnboundedRanges()
        """What holds of any symbols: whatever is passed to a kernel, it does not divide by 0."""

    def __call__(self, dim: Dim) -> SSAValue:
        """The value of a dimension; `KeyError` for a symbol that is not given."""
        found = self._dims.get(dim)
        if found is None:
            b = self._b
            result = b.integer(0)
            for coefficient, monomial in dim.terms:
                factors = [self._atom(atom) for atom, power in monomial for _ in range(power)]
                product = reduce(self._multiply, (factor for factor, _ in factors)) if factors else b.integer(1)
                coefficient *= prod(sign for _, sign in factors)
                if coefficient == -1 and b.known_integer(result) != 0:
                    result = self._subtract(result, product)
                else:
                    result = self._add(result, self._multiply(product, b.integer(coefficient)))
            found = self._dims[dim] = result
        return found

    def _add(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._b.add(lhs, rhs)

    def _subtract(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._b.sub(lhs, rhs)

    def _multiply(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._b.mul(lhs, rhs)

    def _atom(self, atom: Atom) -> tuple[SSAValue, int]:
        found = self._atoms.get(atom)
        if found is None:
            found = self._floordiv(*atom.operands) if isinstance(atom, FloorDivAtom) else (self._compute(atom), 1)
            self._atoms[atom] = found
        return found

    def _compute(self, atom: Atom) -> SSAValue:
        b = self._b
        if isinstance(atom, SymbolAtom):
            return self._symbols[atom.name]
        match atom:
            case ModAtom(operands=(lhs, rhs)):
                natural = self._are_natural(lhs, rhs)
                return b.once(llvm.URemOp, (self(lhs), self(rhs)), i64) if natural else mod(b, self(lhs), self(rhs))
            case _:
                operands = [self(operand) for operand in atom.operands]
                b = self._b
                match atom:
                    case MinAtom():
                        return reduce(lambda lhs, rhs: b.overloaded("llvm.smin", (lhs, rhs), i64), operands)
                    case MaxAtom():
                        return reduce(lambda lhs, rhs: b.overloaded("llvm.smax", (lhs, rhs), i64), operands)
                    case BroadcastAtom():
                        return reduce(self._broadcast, operands)
                    case _:
                        raise ValueError(f"dimension {atom} has no lowering")

    def _floordiv(self, lhs: Dim, rhs: Dim) -> tuple[SSAValue, int]:
        """With what is known about the signs: for any signs it takes fourteen instructions."""
        b = self._b
        if self._safe_ranges.of(-rhs)[0] > 0:
            lhs, rhs = -lhs, -rhs
        if self._are_natural(lhs, rhs):
            return b.quotient(llvm.UDivOp, self(lhs), self(rhs)), 1
        if self._are_natural(-lhs, rhs):
            rounded = b.add(self(-lhs), b.sub(self(rhs), b.integer(1)))
            return b.quotient(llvm.UDivOp, rounded, self(rhs)), -1
        return floordiv(b, self(lhs), self(rhs)), 1

    def _are_natural(self, lhs: Dim, rhs: Dim) -> bool:
        """Whether a number that is not negative is divided by a positive one."""
        return self._safe_ranges.of(rhs)[0] > 0 and self._ranges.of(lhs)[0] >= 0

    def _broadcast(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._b.select(self._b.compare("eq", lhs, self._b.integer(1)), rhs, lhs)


class CheckedDimValues(DimValues):
    """As `DimValues`, for symbols that nobody has checked: `overflows` tells whether some result is wrong."""

    def __init__(self, b: LLVMBuilder, symbols: Mapping[str, SSAValue]) -> None:
        super().__init__(b, symbols)
        self._ranges = self._safe_ranges
        self.overflows = b.integer(0, i1)

    def _add(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._checked("llvm.sadd.with.overflow.i64", lhs, rhs)

    def _subtract(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._checked("llvm.ssub.with.overflow.i64", lhs, rhs)

    def _multiply(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._checked("llvm.smul.with.overflow.i64", lhs, rhs)

    def _checked(self, intrinsic: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        result, overflow = _with_overflow(self._b, intrinsic, lhs, rhs)
        self.overflows = self._b.make(llvm.OrOp, (self.overflows, overflow), i1)
        return result


def multiply_checked(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The product, and whether it does not fit into 64 bits."""
    return _with_overflow(b, "llvm.smul.with.overflow.i64", lhs, rhs)


def _with_overflow(b: LLVMBuilder, intrinsic: str, lhs: SSAValue, rhs: SSAValue) -> tuple[SSAValue, SSAValue]:
    pair = b.intrinsic(intrinsic, (lhs, rhs), _RESULT_AND_OVERFLOW)
    result, overflow = (
        b.make(llvm.ExtractValueOp, (pair,), type_, {"position": DenseArrayBase.from_list(i64, [index])})
        for index, type_ in enumerate((i64, i1))
    )
    return result, overflow


_RESULT_AND_OVERFLOW = llvm.LLVMStructType.from_type_list([i64, i1])
