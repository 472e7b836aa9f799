"""Floats of 8 bits and less as numbers of f32, and back: integer code that is made from the format's description.

A small float is kept as the `i8` of its bits, of which the upper ones are 0. The description is `SEMANTICS` of its
type: how many bits exponent and mantissa have, the bias, what stands for infinity and for NaN. To round is to do as
`astype` of `ml_dtypes` does: to nearest even, and what is too large becomes infinite, NaN, or the largest number,
whichever the format has first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    FloatNanEncoding,
    FloatNonfiniteBehavior,
    FloatSemantics,
    ReducedPrecisionFloatType,
    VectorType,
    bf16,
    f32,
    i1,
    i8,
    i16,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.llvm.builder.llvm_builder import LLVMBuilder
from lowering.llvm.builder.vector_types import lane_count, like
from lowering.tir_to_llvm.math.avx512 import REGISTER
from lowering.tir_to_llvm.math.floats import Floats
from tir_dialect.dtypes import numpy_dtype

_SUBNORMAL = 0x20
"""The class of numbers that `vfpclassps` looks for."""


def has_bf16_registers(b: LLVMBuilder, value: SSAValue) -> bool:
    """Whether a vector of f32 fills one register, on a machine with AVX-512 BF16."""
    module = b.module
    return module.avx512 and "avx512bf16" in module.extensions and lane_count(value.type) == REGISTER


def to_bf16_registers(b: LLVMBuilder, value: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The bits of numbers rounded to nearest even, and which are wrong, since subnormal numbers count as zeros."""
    halves = b.intrinsic("llvm.x86.avx512bf16.cvtneps2bf16.512", (value,), VectorType(bf16, [REGISTER]))
    name, masks = "llvm.x86.avx512.fpclass.ps.512", VectorType(i1, [REGISTER])
    is_subnormal = b.intrinsic(name, (value, b.integer(_SUBNORMAL, i32)), masks)
    return b.make(llvm.BitcastOp, (halves,), VectorType(i16, [REGISTER])), is_subnormal


_DIGITS, _BIAS = 23, 127
"""Of the mantissa of f32, and what is added to its exponents."""

_SIGN, _INFINITY, _NAN = 1 << 31, 0x7F800000, 0x7FC00000
"""Bits of f32."""


@lru_cache(maxsize=64)
def small_float_bits(value: float, type_: Attribute) -> int:
    """The bits of a number rounded to a small float."""
    import numpy as np

    with np.errstate(all="ignore"):
        return int(np.asarray(value).astype(numpy_dtype(type_)).view(np.uint8))


def widen(b: LLVMBuilder, value: SSAValue, type_: ReducedPrecisionFloatType) -> SSAValue:
    """The number of f32 that a small float is; a NaN stays one, with its sign."""
    return _Format(type_.SEMANTICS, Floats(b, like(value.type, f32))).widened(value)


def narrow(b: LLVMBuilder, value: SSAValue, type_: ReducedPrecisionFloatType) -> SSAValue:
    """A number of f32 rounded to a small float."""
    return _Format(type_.SEMANTICS, Floats(b, value.type)).narrowed(value)


@dataclass(frozen=True)
class _Format:
    """Code for one format on scalars, or on vectors of one length."""

    semantics: FloatSemantics
    f: Floats

    @cached_property
    def digits(self) -> int:
        """How many digits of f32 the format lacks."""
        return _DIGITS - self.semantics.mantissa_bits

    @cached_property
    def magnitudes(self) -> int:
        """How many patterns there are beside the sign."""
        return 1 << self.semantics.sign_shift

    @cached_property
    def is_ieee(self) -> bool:
        """Whether the greatest exponent stands for infinity and NaN."""
        return self.semantics.nonfinite is FloatNonfiniteBehavior.IEEE

    @cached_property
    def beyond(self) -> int:
        """The first pattern above all numbers: of infinity, else of NaN if it is there, else one with the sign."""
        if self.is_ieee:
            return self.semantics.max_exponent << self.semantics.mantissa_bits
        has_nan = self.semantics.nan_encoding is FloatNanEncoding.ALL_ONES and not self.is_finite
        return self.magnitudes - 1 if has_nan else self.magnitudes

    @cached_property
    def is_finite(self) -> bool:
        """Whether there is neither infinity nor NaN."""
        return self.semantics.nonfinite is FloatNonfiniteBehavior.FINITE_ONLY

    @cached_property
    def nan_is_minus_zero(self) -> bool:
        """Whether zero has no sign, and its pattern with the sign is the only NaN."""
        return not self.is_ieee and self.semantics.nan_encoding is FloatNanEncoding.NEGATIVE_ZERO

    def op(self, kind: type[Operation], lhs: SSAValue, rhs: int) -> SSAValue:
        """An op of integers whose second operand is known."""
        return self.f.b.make(kind, (lhs, self.f.integer(rhs)), self.f.integers)

    def plus(self, lhs: SSAValue, rhs: int) -> SSAValue:
        """A sum of integers."""
        return self.f.integers_op(llvm.AddOp, lhs, self.f.integer(rhs)) if rhs else lhs

    def where(self, predicate: str, value: SSAValue, limit: int, then: SSAValue, otherwise: SSAValue) -> SSAValue:
        """One of two values, by a comparison of integers."""
        return self.f.b.select(self.f.b.compare(predicate, value, self.f.integer(limit)), then, otherwise)

    def widened(self, value: SSAValue) -> SSAValue:
        """See `widen`."""
        f, s = self.f, self.semantics
        word = self.op(llvm.AndOp, f.b.make(llvm.ZExtOp, (value,), f.integers), (1 << s.bitwidth) - 1)
        magnitude = self.op(llvm.AndOp, word, self.magnitudes - 1) if s.has_sign else word
        shifted = self.op(llvm.ShlOp, magnitude, self.digits)
        bits = self.plus(shifted, _BIAS - s.exponent_bias << _DIGITS)
        least = _BIAS - s.exponent_bias + 1 << _DIGITS
        if s.has_zero:  # numbers below the least normal one have no leading digit: it is taken away again
            below = f.bits(f.sub(f.from_bits(self.plus(shifted, least)), f.number(2.0 ** (1 - s.exponent_bias))))
            bits = self.where("ult", magnitude, 1 << s.mantissa_bits, below, bits)
        else:
            bits = self.where("eq", word, 0, f.integer(least >> 1), bits)
        bits = self._nonfinite(word, magnitude, bits)
        if s.has_sign:
            sign = self.op(llvm.AndOp, self.op(llvm.ShlOp, word, 31 - s.sign_shift), _SIGN)
            bits = f.b.make(llvm.OrOp, (bits, sign), f.integers)
        return f.from_bits(bits)

    def _nonfinite(self, word: SSAValue, magnitude: SSAValue, bits: SSAValue) -> SSAValue:
        """The bits of f32, but for the patterns that stand for infinity and NaN."""
        if self.is_ieee:
            special = self.where("eq", magnitude, self.beyond, self.f.integer(_INFINITY), self.f.integer(_NAN))
            return self.where("uge", magnitude, self.beyond, special, bits)
        if self.nan_is_minus_zero:
            return self.where("eq", word, self.magnitudes, self.f.integer(_NAN), bits)
        if self.is_finite:
            return bits
        return self.where("eq", magnitude, self.beyond, self.f.integer(_NAN), bits)

    def narrowed(self, value: SSAValue) -> SSAValue:
        """See `narrow`."""
        f, s = self.f, self.semantics
        word = f.bits(value)
        magnitude = self.op(llvm.AndOp, word, _SIGN - 1)
        code = self._rounded(magnitude)
        code = self.where("uge", code, self.beyond, f.integer(self._overflow), code)
        nan = f.integer(self._nan)
        if s.has_sign:
            sign = self.op(llvm.AndOp, self.op(llvm.LShrOp, word, 31 - s.sign_shift), self.magnitudes)
            code, nan = self._signed(code, nan, sign)
        else:  # no zero either
            code = self.where("uge", self.plus(word, -1), _INFINITY - 1, nan, code)
        code = self.where("ugt", magnitude, _INFINITY, nan, code)
        return f.b.make(llvm.TruncOp, (code,), like(f.type, i8))

    @cached_property
    def _overflow(self) -> int:
        """The pattern of what is too large."""
        if self.is_ieee:
            return self.beyond
        return self.magnitudes - 1 if self.is_finite else self._nan

    @cached_property
    def _nan(self) -> int:
        """The pattern of NaN; minus zero where there is none."""
        if self.is_ieee:
            return self.beyond | 1 << (self.semantics.mantissa_bits - 1)
        return self.magnitudes if self.is_finite or self.nan_is_minus_zero else self.magnitudes - 1

    def _rounded(self, magnitude: SSAValue) -> SSAValue:
        """The pattern without sign of the nearest number, if none were too large."""
        f, s = self.f, self.semantics
        half = 1 << (self.digits - 1)
        if s.mantissa_bits:
            last = self.op(llvm.AndOp, self.op(llvm.LShrOp, magnitude, self.digits), 1)
            rounding = self.plus(last, half - 1)
            total = f.integers_op(llvm.AddOp, magnitude, rounding)
        else:  # the only digit is odd
            total = self.plus(magnitude, half)
        code = self.plus(self.op(llvm.LShrOp, total, self.digits), s.exponent_bias - _BIAS << s.mantissa_bits)
        least = _BIAS - s.exponent_bias + 1 << _DIGITS
        if not s.has_zero:
            # `ml_dtypes` rounds up what lies between the two least numbers.
            below = self.where("ugt", magnitude, least >> 1, f.integer(1), f.integer(0))
            return self.where("ult", magnitude, least, below, code)
        # The least digit of the sum has the size of the least number: the sum rounds.
        magic = 2.0 ** (1 - s.exponent_bias - s.mantissa_bits + _DIGITS)
        whole = f.bits(f.add(f.from_bits(magnitude), f.number(magic)))
        below = f.integers_op(llvm.SubOp, whole, f.bits(f.number(magic)))
        return self.where("ult", magnitude, least, below, code)

    def _signed(self, code: SSAValue, nan: SSAValue, sign: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The patterns of a number and of NaN with the sign that they get."""
        f = self.f
        signed = f.b.make(llvm.OrOp, (code, sign), f.integers)
        if self.nan_is_minus_zero:
            return self.where("eq", code, 0, code, signed), nan
        combine = llvm.XOrOp if self.is_finite else llvm.OrOp  # a NaN that becomes zero changes its sign
        return signed, f.b.make(combine, (nan, sign), f.integers)
