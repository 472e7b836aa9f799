"""Arithmetic on f32 or f64 values of one shape, from which elementary functions are made."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import f64
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.llvm.builder.llvm_builder import NO_FLAGS, LLVMBuilder
from lowering.llvm.builder.vector_types import element_type, like
from lowering.tir_to_llvm.math.formats import BINARY32, BINARY64

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
