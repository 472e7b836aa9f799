"""Fences after non-temporal stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.llvm.builder.llvm_builder import LLVMBuilder
from tir_dialect.dims import Dim


def fence_streams(b: LLVMBuilder, streams: Mapping[Dim, int], size: Callable[[Dim], SSAValue]) -> None:
    """Emits the fence that makes non-temporal stores visible to other threads.

    `streams` says from how many elements on a buffer of so many elements was written with such stores.
    """
    for extent, elements in streams.items():
        fence, after = b.new_block(), b.new_block()
        b.branch_if(is_large(b, size(extent), elements), fence, after)
        b.start(fence)
        b.insert(llvm.CallIntrinsicOp("llvm.x86.sse.sfence", [], []))
        b.branch(after)
        b.start(after)


def is_large(b: LLVMBuilder, extent: SSAValue, elements: int) -> SSAValue:
    """Whether a buffer has so many elements that it is written with non-temporal stores."""
    return b.compare("sge", extent, b.integer(elements))
