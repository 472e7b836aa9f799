"""How scalars of tir look in the llvm dialect.

`index` is `i64`, signed and unsigned integers are signless. A `bf16` is kept as the `i16` of its bits: it is widened to
f32 by a shift before arithmetic and rounded back to nearest even after every operation, in integer code that vectorises
and rounds like the reference everywhere; LLVM's own `bfloat` calls a library function for each element on most
processors. Floats of 8 bits and less are kept and computed with in the same way, by integer code that is made from the
format's description. Integers below 8 bits have registers of their width and a byte in memory, its upper bits 0.

A small float is kept as the `i8` of its bits, of which the upper ones are 0. The description is `SEMANTICS` of its
type: how many bits exponent and mantissa have, the bias, what stands for infinity and for NaN. To round is to do as
`astype` of `ml_dtypes` does: to nearest even, and what is too large becomes infinite, NaN, or the largest number,
whichever the format has first.

Casts of vectors of floats to integers, and of f64 to f16, are written out: LLVM would scalarise them or call functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    FloatNanEncoding,
    FloatNonfiniteBehavior,
    FloatSemantics,
    IndexType,
    IntegerType,
    ReducedPrecisionFloatType,
    VectorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.llvm import llvm_ext
from lowering.llvm.function_builder import element_type, integer_type, is_vector, lane_count, like, type_suffix
from lowering.llvm.llvm_builder import LLVMBuilder
from lowering.tir_to_llvm.math.floats import REGISTER, Floats
from tir_dialect.dtypes import numpy_dtype

DIGITS: dict[Attribute, int] = {f32: 24, f64: 53}
"""Integers of so many bits are numbers of the type."""

_UPPER, _LOWER = 1.5 * 2.0**52, 2.0**52
"""Added to a whole number they leave it in the lowest 32 bits, also a negative one."""

_LOST = (1 << 29) - 1
"""The digits of f64 that f32 lacks."""


def has_lanes(b: LLVMBuilder, value: SSAValue, target: IntegerType, signed: bool) -> bool:
    """Whether `lanes_to_integer` knows these types: of 64 bits, where vectors are those of x86 from AVX2 on."""
    source, bits = element_type(value.type), target.width.data - signed
    if not is_vector(value.type) or source not in DIGITS or target == i1 or not bits:
        return False
    return bits < 32 or (source == f64 and bits == 32) or (target == i64 and b.module.vector_bits >= 256)


def lanes_to_integer(b: LLVMBuilder, value: SSAValue, result: Attribute, signed: bool) -> SSAValue:
    """Lanes rounded towards zero, at the ends of the range if they are outside; 0 for NaN."""
    bits = integer_type(element_type(result)).width.data - signed
    if bits == 8 and not signed and _has_saturation(b, value):
        return _saturated(b, value, result)
    wide = like(value.type, f64)
    if bits > 32 and value.type != wide:
        value = b.make(llvm.FPExtOp, (value,), wide)
    low, end, digits = float(-(1 << bits) if signed else 0), float(1 << bits), DIGITS[element_type(value.type)]
    last = end - (1 if bits <= digits else 1 << (bits - digits))
    # Of NaN and 0 the second is not less, so that a range from 0 on needs no test of its own.
    number = b.select(b.compare_floats("ord", value, value), value, b.float(0.0, value.type)) if signed else value
    for predicate, limit in (("ogt", low), ("olt", last)):
        edge = b.float(limit, value.type)
        number = b.select(b.compare_floats(predicate, number, edge), number, edge)
    # A number that is in range, in as many bits as it takes of 32 or 64.
    if bits > 32 and b.module.vector_bits < 512:
        # An f64 as an integer of 64 bits: AVX2 has no instruction for it, but sums that leave halves in their bits.
        kind, wide = number.type, like(number.type, i64)
        whole = b.overloaded("llvm.trunc", (number,), kind)
        scaled = b.make(llvm.FMulOp, (whole, b.float(2.0**-32, kind)), kind)
        upper = b.overloaded("llvm.floor", (scaled,), kind)
        lower = b.overloaded("llvm.fmuladd", (upper, b.float(-(2.0**32), kind), whole), kind)
        high, low = (
            b.make(llvm.BitcastOp, (b.make(llvm.FAddOp, (half, b.float(one, kind)), kind),), wide)
            for half, one in ((upper, _UPPER), (lower, _LOWER))
        )
        shifted = b.make(llvm.ShlOp, (high, b.integer(32, wide)), wide)
        whole = b.make(llvm.OrOp, (shifted, b.make(llvm.AndOp, (low, b.integer((1 << 32) - 1, wide)), wide)), wide)
    else:
        kind = llvm_ext.FPToUIOp if bits in (32, 64) else llvm_ext.FPToSIOp
        whole = b.make(kind, (number,), like(number.type, i32 if bits <= 32 else i64))
    if last < end - 1:
        beyond = b.compare_floats("oge", value, b.float(end, value.type))
        whole = b.select(beyond, b.integer((1 << bits) - 1, whole.type), whole)
    return whole if whole.type == result else b.make(llvm.TruncOp, (whole,), result)


def _has_saturation(b: LLVMBuilder, value: SSAValue) -> bool:
    """Whether integers of a register of f32 become bytes by instructions that saturate."""
    count = REGISTER if b.module.avx512 else _AVX2_REGISTER
    return b.module.vector_bits >= 32 * count and value.type == VectorType(f32, [count])


_CURRENT_ROUNDING = 4
_AVX2_REGISTER = 8
"""Numbers of f32 in a register of AVX2."""


def _saturated(b: LLVMBuilder, value: SSAValue, result: Attribute) -> SSAValue:
    """A register of f32 as `ui8`: what no integer of 32 bits is becomes -2^31.

    With AVX-512 that is above 255 without a sign, so numbers from 0 on are converted; with AVX2 it is below 0, so
    numbers to 255 are, and NaN. Rounding to even before is left to the conversion.
    """
    source, kind = value.owner, "cvttps2dq" if b.module.avx512 else "cvtt.ps2dq"
    if isinstance(source, llvm.CallIntrinsicOp) and source.intrin.data.startswith("llvm.roundeven."):
        value, kind = source.args[0], kind.replace("tt", "t")
    wide = like(value.type, i32)
    if not b.module.avx512:
        most = b.float(255.0, value.type)
        number = b.select(b.compare_floats("ogt", value, most), most, value)
        whole = b.intrinsic(f"llvm.x86.avx.{kind}.256", (number,), wide)
        positive = b.overloaded("llvm.smax", (whole, b.integer(0, wide)), wide)
        least = b.overloaded("llvm.smin", (positive, b.integer(255, wide)), wide)
        return b.make(llvm.TruncOp, (least,), result)
    zero = b.float(0.0, value.type)
    number = b.select(b.compare_floats("ogt", value, zero), value, zero)
    operands = (number, b.integer(0, wide), b.integer(-1, i16), b.integer(_CURRENT_ROUNDING, i32))
    whole = b.intrinsic(f"llvm.x86.avx512.mask.{kind}.512", operands, wide)
    least = b.overloaded("llvm.umin", (whole, b.integer(255, wide)), wide)
    return b.make(llvm.TruncOp, (least,), result)


def f64_to_f16(b: LLVMBuilder, value: SSAValue) -> SSAValue:
    """Lanes rounded to nearest even by way of f32, to which they are rounded such that nothing is rounded twice.

    The digits that f32 lacks become one, which is set if any of them is. Processors have no instruction for the whole
    way, and LLVM calls a function for each element.
    """
    wide = like(value.type, i64)
    bits = b.make(llvm.BitcastOp, (value,), wide)
    lost = b.make(llvm.AndOp, (bits, b.integer(_LOST, wide)), wide)
    carried = b.wrapping(llvm.AddOp, lost, b.integer(_LOST, wide))
    sticky = b.make(llvm.AndOp, (b.make(llvm.OrOp, (bits, carried), wide), b.integer(~_LOST, wide)), wide)
    odd = b.make(llvm.FPTruncOp, (b.make(llvm.BitcastOp, (sticky,), value.type),), like(value.type, f32))
    return b.make(llvm.FPTruncOp, (odd,), like(value.type, f16))


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


def llvm_type(type_: Attribute) -> Attribute:
    """The type of a scalar in a register."""
    match type_:
        case IndexType():
            return i64
        case BFloat16Type():
            return i16
        case ReducedPrecisionFloatType():
            return i8
        case IntegerType():
            return IntegerType(type_.width.data)
        case _:
            return type_


def memory_type(type_: Attribute) -> Attribute:
    """The type of a scalar in memory: as in a register, but what is narrower takes a byte."""
    return i8 if _is_padded(type_) else llvm_type(type_)


def _is_padded(type_: Attribute) -> bool:
    return isinstance(type_, IntegerType) and cast("IntegerType", type_).width.data < 8


def from_memory(b: LLVMBuilder, value: SSAValue, type_: Attribute) -> SSAValue:
    """What was loaded, as it is in a register; any byte but 0 is true, and other integers are the lowest bits."""
    if type_ == i1:
        return b.compare("ne", value, b.integer(0, value.type))
    return b.make(llvm.TruncOp, (value,), like(value.type, llvm_type(type_))) if _is_padded(type_) else value


def to_memory(b: LLVMBuilder, value: SSAValue, type_: Attribute) -> SSAValue:
    """What is to be stored; true is 1."""
    return b.make(llvm.ZExtOp, (value,), like(value.type, i8)) if _is_padded(type_) else value


def compute_type(type_: Attribute) -> Attribute:
    """The type that float arithmetic on `type_` is done in."""
    return f32 if _is_kept_as_bits(type_) else type_


def _is_kept_as_bits(type_: Attribute) -> bool:
    return isinstance(type_, BFloat16Type | ReducedPrecisionFloatType)


def math_type(type_: Attribute) -> Attribute:
    """The type that math functions of `type_` are computed in."""
    return f32 if isinstance(type_, Float16Type) else compute_type(type_)


def convert_float(b: LLVMBuilder, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
    """A float of one type as another, rounded to nearest even; `bf16` and small floats stand for their bits."""
    if source == target:
        return value
    if isinstance(source, ReducedPrecisionFloatType):
        return convert_float(b, widen(b, value, source), f32, target)
    if isinstance(target, ReducedPrecisionFloatType):
        return narrow(b, convert_float(b, value, source, f32), target)
    if source == bf16:
        wide = like(value.type, i32)
        bits = b.make(llvm.ShlOp, (b.make(llvm.ZExtOp, (value,), wide), b.integer(16, wide)), wide)
        return convert_float(b, b.make(llvm.BitcastOp, (bits,), like(value.type, f32)), f32, target)
    if target == bf16:
        return _round_to_bf16(b, convert_float(b, value, source, f32))
    if source == f64 and target == f16 and is_vector(value.type) and b.module.vector_bits >= 256:
        return f64_to_f16(b, value)
    kind = llvm.FPExtOp if _bits(source) < _bits(target) else llvm.FPTruncOp
    return b.make(kind, (value,), like(value.type, target))


def _bits(type_: Attribute) -> int:
    return {"f16": 16, "f32": 32, "f64": 64}[str(type_)]


def _round_to_bf16(b: LLVMBuilder, value: SSAValue) -> SSAValue:
    """To nearest even, by one instruction where there is one; that takes subnormal numbers for zeros, which branch."""
    if not has_bf16_registers(b, value):
        return _rounded_by_integers(b, value)
    converted, is_subnormal = to_bf16_registers(b, value)
    special, plain, after = b.new_block(), b.new_block(), b.new_block([converted.type])
    any_name = f"llvm.vector.reduce.or.{type_suffix(is_subnormal.type)}"
    b.branch_if(b.intrinsic(any_name, (is_subnormal,), i1), special, plain)
    b.start(plain)
    b.branch(after, converted)
    b.start(special)
    b.branch(after, _rounded_by_integers(b, value))
    b.start(after)
    return after.args[0]


def _rounded_by_integers(b: LLVMBuilder, value: SSAValue) -> SSAValue:
    """Adds half of the last place, or one less where the result would be odd; a NaN keeps its payload's upper part."""
    wide = like(value.type, i32)
    bits = b.make(llvm.BitcastOp, (value,), wide)
    upper = b.make(llvm.LShrOp, (bits, b.integer(16, wide)), wide)
    odd = b.make(llvm.AndOp, (upper, b.integer(1, wide)), wide)
    bias = b.make(llvm.AddOp, (odd, b.integer(0x7FFF, wide)), wide)
    rounded = b.make(llvm.LShrOp, (b.make(llvm.AddOp, (bits, bias), wide), b.integer(16, wide)), wide)
    quiet = b.make(llvm.OrOp, (upper, b.integer(0x40, wide)), wide)
    is_nan = b.compare_floats("uno", value, value)
    return b.make(llvm.TruncOp, (b.select(is_nan, quiet, rounded),), like(value.type, i16))


def float_constant(b: LLVMBuilder, value: float, type_: Attribute) -> SSAValue:
    """A float constant; of bf16 and small floats, its bits."""
    return b.integer(_bits_of(value, type_), llvm_type(type_)) if _is_kept_as_bits(type_) else b.float(value, type_)


def _bits_of(value: float, type_: Attribute) -> int:
    if isinstance(type_, ReducedPrecisionFloatType):
        return small_float_bits(value, type_)
    from lowering.llvm.llvm_types import bfloat_bits

    return bfloat_bits(value)


def vector_constant(b: LLVMBuilder, values: Sequence[int] | Sequence[float], type_: Attribute) -> SSAValue:
    """A vector constant with elements of a tir type; of bf16 and small floats, the bits."""
    if _is_kept_as_bits(type_):
        values = [_bits_of(value, type_) for value in values]
    return b.elements(values, VectorType(llvm_type(type_), [len(values)]))


def to_integer(b: LLVMBuilder, value: SSAValue, source: Attribute, target: Attribute, signed: bool) -> SSAValue:
    """A float rounded towards zero, at the ends of the range if it is outside; 0 for NaN."""
    # Half floats go through f32: LLVM 22 gives the least i16 for a NaN of f16 on processors with AVX512-FP16.
    wide = convert_float(b, value, source, math_type(source))
    result = like(value.type, llvm_type(target))
    if has_lanes(b, wide, integer_type(target), signed):
        return lanes_to_integer(b, wide, result, signed)
    name = f"llvm.fpto{'s' if signed else 'u'}i.sat.{type_suffix(result)}.{type_suffix(wide.type)}"
    return b.intrinsic(name, (wide,), result)


def from_integer(b: LLVMBuilder, value: SSAValue, target: Attribute, signed: bool) -> SSAValue:
    """An integer as the nearest float."""
    middle = compute_type(target)
    kind = llvm.SIToFPOp if signed else llvm_ext.UIToFPOp
    return convert_float(b, b.make(kind, (value,), like(value.type, middle)), middle, target)
