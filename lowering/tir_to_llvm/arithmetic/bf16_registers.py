"""Registers of f32 rounded to bf16 by AVX-512 BF16."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType, bf16, i1, i16, i32
from xdsl.ir import SSAValue

from lowering.llvm.builder.llvm_builder import LLVMBuilder
from lowering.llvm.builder.vector_types import lane_count
from lowering.tir_to_llvm.math.avx512 import REGISTER

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
