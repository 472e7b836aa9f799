"""Arithmetic on f32 or f64 values of one shape, from which elementary functions are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerType, f64, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.llvm.function_builder import element_type, like
from lowering.llvm.llvm_builder import NO_FLAGS, LLVMBuilder


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
