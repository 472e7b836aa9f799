"""Arithmetic on f32 or f64 values of one shape, from which elementary functions are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerType, VectorType, f32, f64, i8, i16, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.llvm.function_builder import element_type, lane_count, lanes_of, like
from lowering.llvm.llvm_builder import NO_FLAGS, LLVMBuilder
from tir_dialect.ops.memory import i32_array, vector_of


@dataclass(frozen=True)
class Format:
    """A binary interchange format."""

    integer: IntegerType
    """The integer type of the same width."""

    fraction: int
    """The number of bits of the trailing significand."""

    bias: int
    """What is added to an exponent; also the greatest exponent of a number."""

    @property
    def rounding(self) -> float:
        """Adding it rounds a number of less than `2**(fraction - 1)` to an integer, which stands in the lowest bits."""
        return 1.5 * 2.0**self.fraction

    @property
    def least_normal(self) -> float:
        """The least positive normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def least(self) -> float:
        """The least positive number, which is subnormal."""
        return 2.0 ** (1 - self.bias - self.fraction)

    @property
    def one_bits(self) -> int:
        """The bits of 1."""
        return self.bias << self.fraction

    @property
    def infinity_bits(self) -> int:
        """The bits of infinity: those of the exponent."""
        return (2 * self.bias + 1) << self.fraction


BINARY32 = Format(i32, 23, 127)
BINARY64 = Format(i64, 52, 1023)


ROUNDING = BINARY64.rounding


class Floats:
    """Arithmetic on f32 or f64 values of one shape."""

    def __init__(self, b: LLVMBuilder, type_: Attribute) -> None:
        self.b = b
        self.type = type_
        self.format = BINARY64 if element_type(type_) == f64 else BINARY32
        self.integers = like(type_, self.format.integer)

    def number(self, value: float) -> SSAValue:
        """A constant."""
        return self.b.float(value, self.type)

    def integer(self, value: int) -> SSAValue:
        """An integer constant as wide as the floats."""
        return self.b.integer(value, self.integers)

    def add(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """The sum, rounded."""
        return self.b.make(llvm.FAddOp, (lhs, rhs), self.type, {"fastmathFlags": NO_FLAGS})

    def sub(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """The difference, rounded."""
        return self.b.make(llvm.FSubOp, (lhs, rhs), self.type, {"fastmathFlags": NO_FLAGS})

    def mul(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """The product, rounded."""
        return self.b.make(llvm.FMulOp, (lhs, rhs), self.type, {"fastmathFlags": NO_FLAGS})

    def div(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """The quotient, rounded."""
        return self.b.make(llvm.FDivOp, (lhs, rhs), self.type, {"fastmathFlags": NO_FLAGS})

    def fma(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """`a * b + c`, rounded once where the processor can."""
        return self.b.overloaded("llvm.fmuladd", (a, b, c), self.type)

    def fused(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """`a * b + c`, rounded once, for processors that can."""
        return self.b.overloaded("llvm.fma", (a, b, c), self.type)

    def bits(self, value: SSAValue) -> SSAValue:
        """The bits as an integer."""
        return self.b.make(llvm.BitcastOp, (value,), self.integers)

    def from_bits(self, value: SSAValue) -> SSAValue:
        """The float with these bits."""
        return self.b.make(llvm.BitcastOp, (value,), self.type)

    def integers_op(self, kind: type[Operation], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Integer arithmetic that wraps around."""
        return self.b.wrapping(kind, lhs, rhs)

    def polynomial(self, x: SSAValue, coefficients: Sequence[float]) -> SSAValue:
        """`c0 + c1 * x + c2 * x**2 + ...` by Horner's rule."""
        result = self.number(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.fma(result, x, self.number(coefficient))
        return result

    def clamp(self, x: SSAValue, low: float, high: float) -> SSAValue:
        """The number in the range that is nearest; a NaN stays."""
        return self.at_least(self.at_most(x, high), low)

    def at_most(self, x: SSAValue, limit: float) -> SSAValue:
        """The number, or the limit if it is greater; a NaN stays."""
        return self.b.select(self.b.compare_floats("ogt", x, self.number(limit)), self.number(limit), x)

    def at_least(self, x: SSAValue, limit: float) -> SSAValue:
        """The number, or the limit if it is less; a NaN stays."""
        return self.b.select(self.b.compare_floats("olt", x, self.number(limit)), self.number(limit), x)

    def magnitude(self, x: SSAValue) -> SSAValue:
        """The number without its sign."""
        return self.b.overloaded("llvm.fabs", (x,), self.type)

    def with_sign(self, magnitude: SSAValue, sign: SSAValue) -> SSAValue:
        """A magnitude with the sign of another number."""
        return self.b.overloaded("llvm.copysign", (magnitude, self._of_the_same_sign(sign)), self.type)

    def _of_the_same_sign(self, x: SSAValue) -> SSAValue:
        """What a product with a positive constant is made of, else `x`.

        The product need not stay in its register then until the end, where the other is often needed anyway.
        """
        if isinstance(x.owner, llvm.FMulOp):
            for factor, other in ((x.owner.lhs, x.owner.rhs), (x.owner.rhs, x.owner.lhs)):
                if self.b.is_positive(other):
                    return factor
        return x


def doubles(f: Floats) -> Floats:
    """Arithmetic on f64 values of the same shape."""
    return Floats(f.b, like(f.type, f64))


def widened(f: Floats, x: SSAValue) -> SSAValue:
    """An f32 as an f64."""
    return f.b.make(llvm.FPExtOp, (x,), like(f.type, f64))


def narrowed(f: Floats, x: SSAValue) -> SSAValue:
    """An f64 rounded to f32."""
    return f.b.make(llvm.FPTruncOp, (x,), f.type)


def floor(f: Floats, x: SSAValue) -> SSAValue:
    """The greatest whole number that is not greater."""
    return f.b.overloaded("llvm.floor", (x,), x.type)


def fmod(f: Floats, x: SSAValue, y: SSAValue, library: Callable[[], SSAValue]) -> SSAValue:
    """`x - trunc(x / y) * y`; by the `library` where a lane's quotient has more digits than the format.

    A quotient below those is rounded to the whole number below the exact one or to that above, never to less. What is
    left, or is too much, is a multiple of the divisor's last digit and less than the divisor: so fused multiply-add
    and a sum are exact.
    """
    b, size, divisor = f.b, f.magnitude(x), f.magnitude(y)
    quotient = f.div(size, divisor)
    known = (
        b.compare_floats("oge", quotient, f.number(2.0 ** (f.format.fraction + 1))),
        b.compare_floats("one", size, f.number(float("inf"))),
        b.compare_floats("one", divisor, f.number(0.0)),
    )
    is_long = known[0]
    for condition in known[1:]:
        is_long = b.make(llvm.AndOp, (is_long, condition), is_long.type)
    near, far, after = b.new_block(), b.new_block(), b.new_block([f.type])
    b.branch_if(f.b.any_lane(is_long), far, near)
    b.start(far)
    b.branch(after, library())
    b.start(near)
    b.branch(after, _rest(f, x, size, divisor, quotient))
    b.start(after)
    return after.args[0]


def _rest(f: Floats, x: SSAValue, size: SSAValue, divisor: SSAValue, quotient: SSAValue) -> SSAValue:
    b, zero = f.b, f.number(0.0)
    whole = b.overloaded("llvm.trunc", (quotient,), f.type)
    rest = f.fused(f.sub(f.number(-0.0), whole), divisor, size)
    rest = b.select(b.compare_floats("olt", rest, zero), f.add(rest, divisor), rest)
    # An infinite divisor leaves all: its product with 0 is NaN.
    rest = b.select(b.compare_floats("olt", size, divisor), size, rest)
    return f.with_sign(rest, x)


REGISTER = 16
"""So many f32 are in a register of 512 bits."""

FLOATS = VectorType(f32, [REGISTER])
DOUBLES, SHORTS = VectorType(f64, [REGISTER // 2]), VectorType(i16, [2 * REGISTER])
_ALL, ROUNDED_AS_SET = -1, 4
_DOWN, _TO_ZERO = 9, 11
"""Rounding of one instruction, which then raises no exceptions."""
_LEAST, _GREATEST = 4, 5
_LEAST_SIZE = 2
"""With the sign of the first."""
_FROM_1_WITHOUT_SIGN, _FROM_3_4_WITHOUT_SIGN, _FROM_3_4_OF_POSITIVE = 4, 7, 11


def has_registers(f: Floats) -> bool:
    """Whether values are vectors of f32 that fill registers, on a machine with AVX-512."""
    return f.b.module.avx512 and element_type(f.type) == f32 and (lane_count(f.type) or 1) % REGISTER == 0


def has_registers_of_doubles(f: Floats) -> bool:
    """The same of f64."""
    return f.b.module.avx512 and f.format == BINARY64 and (lane_count(f.type) or 1) % (REGISTER // 2) == 0


def _masked(f: Floats, name: str, parts: Sequence[SSAValue]) -> SSAValue:
    """An intrinsic of a register of the format of f, for all lanes, rounded as is set."""
    is_double = f.format == BINARY64
    type_, mask = (DOUBLES, i8) if is_double else (FLOATS, i16)
    rest = f.b.zero(type_), f.b.integer(_ALL, mask), f.b.integer(ROUNDED_AS_SET, i32)
    return f.b.intrinsic(f"llvm.x86.avx512.mask.{name}.p{'d' if is_double else 's'}.512", (*parts, *rest), type_)


def scaled(f: Floats, value: SSAValue, power: SSAValue) -> SSAValue:
    """`value * 2**power`, rounded once, for a power that is a whole number."""

    def scale(parts: Sequence[SSAValue]) -> SSAValue:
        return _masked(f, "scalef", parts)

    return _in_pieces(f.b, (value, power), scale)


def reciprocal(f: Floats, value: SSAValue) -> SSAValue:
    """`1 / value` for numbers from 1 on and infinity, at most one unit off."""
    first, error = _estimate(f, value)
    better = f.fma(error, first, first)
    # Of infinity the estimate, 0, is exact, and the error is no number.
    return f.b.select(f.b.compare_floats("ord", error, error), better, first)


def finite_reciprocal(f: Floats, value: SSAValue) -> SSAValue:
    """The same for numbers from 2**-100 to 2**100, with less to do."""
    first, error = _estimate(f, value)
    return f.fma(error, first, first)


def _estimate(f: Floats, value: SSAValue) -> tuple[SSAValue, SSAValue]:
    """14 bits of `1 / value`, and what their product with the value lacks of 1, for a Newton step."""
    first = reciprocal_estimate(f, value)
    return first, f.fma(f.sub(f.number(-0.0), value), first, f.number(1.0))


def reciprocal_estimate(f: Floats, value: SSAValue) -> SSAValue:
    """14 bits of `1 / value`."""

    def estimate(parts: Sequence[SSAValue]) -> SSAValue:
        rest = f.b.zero(FLOATS), f.b.integer(_ALL, i16)
        return f.b.intrinsic("llvm.x86.avx512.rcp14.ps.512", (*parts, *rest), FLOATS)

    return _in_pieces(f.b, (value,), estimate)


def has_extrema(f: Floats) -> bool:
    """Whether values are vectors of f32 that fill registers, or half or a quarter of one, on a machine with AVX-512."""
    return has_registers(f) or (f.b.module.avx512 and element_type(f.type) == f32 and lane_count(f.type) in (4, 8))


def extremum(f: Floats, left: SSAValue, right: SSAValue, greatest: bool) -> SSAValue:
    """The greater or smaller of two numbers as IEEE 754 has it: +0 is greater than -0, and NaN wins."""
    kind, lanes = f.b.integer(_GREATEST if greatest else _LEAST, i32), lanes_of(f.type)

    def between(parts: Sequence[SSAValue]) -> SSAValue:
        rest = f.b.zero(FLOATS), f.b.integer(_ALL, i16), f.b.integer(ROUNDED_AS_SET, i32)
        return f.b.intrinsic("llvm.x86.avx512.mask.range.ps.512", (*parts, kind, *rest), FLOATS)

    if lanes < REGISTER:
        rest = f.b.zero(f.type), f.b.integer(_ALL, i8)
        number = f.b.intrinsic(f"llvm.x86.avx512.mask.range.ps.{32 * lanes}", (left, right, kind, *rest), f.type)
    else:
        number = _in_pieces(f.b, (left, right), between)
    return f.b.select(f.b.compare_floats("uno", left, right), f.add(left, right), number)


def bounded(f: Floats, value: SSAValue, limit: float) -> SSAValue:
    """The number that is nearest of those from `-limit` to `limit`; the limit instead of NaN."""

    def least(parts: Sequence[SSAValue]) -> SSAValue:
        rest = f.b.zero(FLOATS), f.b.integer(_ALL, i16), f.b.integer(ROUNDED_AS_SET, i32)
        most, kind = f.b.float(limit, FLOATS), f.b.integer(_LEAST_SIZE, i32)
        return f.b.intrinsic("llvm.x86.avx512.mask.range.ps.512", (*parts, most, kind, *rest), FLOATS)

    return _in_pieces(f.b, (value,), least)


def chosen(f: Floats, table: Sequence[float], indices: SSAValue) -> SSAValue:
    """The number of the table, of 16 or 32 of f32 or 16 of f64, that the lowest bits of each lane say."""
    if f.format == BINARY64:
        low, high = (f.b.elements(list(table[i : i + REGISTER // 2]), DOUBLES) for i in (0, REGISTER // 2))
        name = "llvm.x86.avx512.vpermi2var.pd.512"
        return _in_pieces(f.b, (indices,), lambda parts: f.b.intrinsic(name, (low, *parts, high), DOUBLES))
    halves = [f.b.elements(list(table[i : i + REGISTER]), FLOATS) for i in range(0, len(table), REGISTER)]

    def choose(parts: Sequence[SSAValue]) -> SSAValue:
        if len(halves) == 1:
            return f.b.intrinsic("llvm.x86.avx512.permvar.sf.512", (halves[0], *parts), FLOATS)
        return f.b.intrinsic("llvm.x86.avx512.vpermi2var.ps.512", (halves[0], *parts, halves[1]), FLOATS)

    return _in_pieces(f.b, (indices,), choose)


def whole_number(f: Floats, value: SSAValue, type_: Attribute, *, down: bool) -> SSAValue:
    """The number rounded towards zero, or `down`, as i32, or i64 of f64; what is out of range is the least of these."""
    element, name = element_type(type_), "qq" if element_type(type_) == i64 else "dq"
    kind = VectorType(element, [REGISTER if f.format == BINARY32 else REGISTER // 2])
    mask, source = (i16, "ps") if f.format == BINARY32 else (i8, "pd")

    def round_(parts: Sequence[SSAValue]) -> SSAValue:
        rest = f.b.zero(kind), f.b.integer(_ALL, mask), f.b.integer(_DOWN if down else _TO_ZERO, i32)
        return f.b.intrinsic(f"llvm.x86.avx512.mask.cvt{source}2{name}.512", (*parts, *rest), kind)

    return _in_pieces(f.b, (value,), round_)


def has_registers_of_shorts(b: LLVMBuilder, type_: Attribute) -> bool:
    """Whether vectors of i16 fill registers, on a machine with AVX-512."""
    return b.module.avx512 and lanes_of(type_) % SHORTS.get_shape()[0] == 0


def upper_halves(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue, *, signed: bool) -> SSAValue:
    """The upper 16 bits of products of i16."""
    name = f"llvm.x86.avx512.pmulh{'' if signed else 'u'}.w.512"
    return _in_pieces(b, (lhs, rhs), lambda parts: b.intrinsic(name, parts, SHORTS))


def exponent_of(f: Floats, value: SSAValue) -> SSAValue:
    """The whole number e with `2**e <= |value| < 2**(e + 1)`; `-inf` of 0, `inf` of infinity."""

    def exponent(parts: Sequence[SSAValue]) -> SSAValue:
        return _masked(f, "getexp", parts)

    return _in_pieces(f.b, (value,), exponent)


def mantissa_of(f: Floats, value: SSAValue, *, nan_below_zero: bool = False, from_one: bool = False) -> SSAValue:
    """`|value|` over that power of 2, or the next, from 3/4 to below 3/2, or over that one `from_one` to below 2.

    1 of 0 and of infinity; maybe -1 of -0.
    """
    kind = _FROM_3_4_OF_POSITIVE if nan_below_zero else _FROM_1_WITHOUT_SIGN if from_one else _FROM_3_4_WITHOUT_SIGN

    def mantissa(parts: Sequence[SSAValue]) -> SSAValue:
        return _masked(f, "getmant", (*parts, f.b.integer(kind, i32)))

    return _in_pieces(f.b, (value,), mantissa)


def _in_pieces(
    b: LLVMBuilder, operands: Sequence[SSAValue], function: Callable[[Sequence[SSAValue]], SSAValue]
) -> SSAValue:
    """A function of registers, applied to all pieces of vectors that have their size."""
    element = element_type(operands[0].type)
    lanes = REGISTER // 2 if element in (f64, i64) else 2 * REGISTER if element == i16 else REGISTER
    count = lanes_of(operands[0].type) // lanes
    if count == 1:
        return function(operands)
    pieces = [function([_piece(b, each, number, lanes) for each in operands]) for number in range(count)]
    while len(pieces) > 1:
        pieces = [_joined(b, *pieces[i : i + 2]) for i in range(0, len(pieces), 2)]
    return pieces[0]


def _piece(b: LLVMBuilder, vector: SSAValue, number: int, lanes: int) -> SSAValue:
    order = range(number * lanes, (number + 1) * lanes)
    return _shuffled(b, vector, b.undefined(vector.type), order)


def _joined(b: LLVMBuilder, low: SSAValue, high: SSAValue) -> SSAValue:
    return _shuffled(b, low, high, range(2 * lanes_of(low.type)))


def _shuffled(b: LLVMBuilder, low: SSAValue, high: SSAValue, order: Sequence[int]) -> SSAValue:
    kind = vector_of(element_type(low.type), len(order))
    return b.make(llvm.ShuffleVectorOp, (low, high), kind, {"mask": i32_array(*order)})
