"""How scalars of tir look in the llvm dialect.

`index` is `i64`, signed and unsigned integers are signless. A `bf16` is kept as the `i16` of its bits: it is widened to
f32 by a shift before arithmetic and rounded back to nearest even after every operation, in integer code that
vectorises and rounds like the reference everywhere; LLVM's own `bfloat` calls a library function for each element on
most processors. Floats of 8 bits and less are kept and computed with in the same way, see `small_floats`. Integers
below 8 bits have registers of their width and a byte in memory, its upper bits 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
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
from xdsl.ir import Attribute, SSAValue

from lowering.llvm.builder.llvm_builder import LLVMBuilder
from lowering.llvm.builder.vector_types import integer_type, is_vector, like, type_suffix
from lowering.tir_to_llvm import llvm_ext
from lowering.tir_to_llvm.arithmetic import small_floats
from lowering.tir_to_llvm.arithmetic.float_casts import f64_to_f16, has_lanes, lanes_to_integer
from lowering.tir_to_llvm.arithmetic.small_floats import has_bf16_registers, to_bf16_registers


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
    return isinstance(type_, IntegerType) and cast(IntegerType, type_).width.data < 8


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
        return convert_float(b, small_floats.widen(b, value, source), f32, target)
    if isinstance(target, ReducedPrecisionFloatType):
        return small_floats.narrow(b, convert_float(b, value, source, f32), target)
    if source == bf16:
        return convert_float(b, _widen_bf16(b, value), f32, target)
    if target == bf16:
        return _round_to_bf16(b, convert_float(b, value, source, f32))
    if source == f64 and target == f16 and is_vector(value.type) and b.module.vector_bits >= 256:
        return f64_to_f16(b, value)
    kind = llvm.FPExtOp if _bits(source) < _bits(target) else llvm.FPTruncOp
    return b.make(kind, (value,), like(value.type, target))


def _bits(type_: Attribute) -> int:
    return {"f16": 16, "f32": 32, "f64": 64}[str(type_)]


def _widen_bf16(b: LLVMBuilder, value: SSAValue) -> SSAValue:
    wide = like(value.type, i32)
    bits = b.make(llvm.ShlOp, (b.make(llvm.ZExtOp, (value,), wide), b.integer(16, wide)), wide)
    return b.make(llvm.BitcastOp, (bits,), like(value.type, f32))


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
        return small_floats.small_float_bits(value, type_)
    from lowering.llvm.text.llvm_types import bfloat_bits

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
