"""The patterns of `convert-tir-to-llvm`: what every op becomes that may be in a prim_func once blocks are lowered."""

from __future__ import annotations

from lowering.rewriting import PatternIndex
from lowering.tir_to_llvm.calls.boxed_calls import LowerCallBoxed
from lowering.tir_to_llvm.calls.calls import LowerCall, LowerCallExtern
from lowering.tir_to_llvm.calls.packed_calls import LowerCallPacked
from lowering.tir_to_llvm.loops.control_flow import LowerFor, LowerIf, LowerTerminator, LowerWhile
from lowering.tir_to_llvm.loops.scalar_ops import (
    LowerAssert,
    LowerBroadcast,
    LowerCreateMask,
    LowerDim,
    LowerFirstLane,
    LowerRamp,
    LowerScalarOp,
    LowerShuffle,
    LowerVectorBitcast,
)
from lowering.tir_to_llvm.memory.accesses import (
    LowerFlatten,
    LowerLoad,
    LowerMatchBuffer,
    LowerPrefetch,
    LowerStore,
    LowerView,
)
from lowering.tir_to_llvm.memory.allocation import LowerAllocBuffer
from lowering.tir_to_llvm.memory.raw_memory import LowerAddressOf, LowerMemoryAt, LowerMisalignment, LowerTextAddress

PATTERNS = PatternIndex(
    [
        LowerScalarOp(),
        LowerLoad(),
        LowerStore(),
        LowerFor(),
        LowerIf(),
        LowerWhile(),
        LowerTerminator(),
        LowerAssert(),
        LowerDim(),
        LowerRamp(),
        LowerBroadcast(),
        LowerShuffle(),
        LowerVectorBitcast(),
        LowerCreateMask(),
        LowerFirstLane(),
        LowerAllocBuffer(),
        LowerFlatten(),
        LowerMatchBuffer(),
        LowerView(),
        LowerPrefetch(),
        LowerAddressOf(),
        LowerMemoryAt(),
        LowerMisalignment(),
        LowerTextAddress(),
        LowerCall(),
        LowerCallBoxed(),
        LowerCallExtern(),
        LowerCallPacked(),
    ]
)
"""Patterns of the conversion, by op class."""
