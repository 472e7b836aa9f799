"""Memory of `tir.alloc_buffer`: on the stack if it is small and of constant size, else from the reusable workspace.

The size of a buffer depends on the symbols of the function only, so heap memory is taken before the outermost loop
around the allocation and given back after it. A size that overflows, or that the system cannot provide, raises
`MemoryError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.llvm.llvm_builder import POINTER, LLVMBuilder
from lowering.rewriting import op_rewrite_pattern
from lowering.tir_to_llvm.arithmetic.dim_values import multiply_checked
from lowering.tir_to_llvm.arithmetic.scalars import memory_type
from lowering.tir_to_llvm.emitter import Buffer, Emitter
from tir_dialect.dims import Dim, SymbolAtom, constant, maximum, product, symbol, total
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.types import BufferType, LoopKind

STACK_LIMIT = 64 * 1024
"""Buffers of constant size up to so many bytes are on the stack."""

LARGEST = 1 << 62
"""Bytes of a buffer: larger ones are refused without a look at the memory that there is."""

ALIGNMENT = 64
"""Alignment of every allocation, in bytes: that of a cache line and of the widest vector."""


class LowerAllocBuffer(RewritePattern):
    """Allocates the buffer, unless it has been allocated before a loop around it."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AllocBufferOp, e: Emitter) -> None:
        if op.buffer not in e.buffers:
            allocate(e, op)


def allocate(e: Emitter, alloc: AllocBufferOp) -> None:
    """Allocates memory for a buffer; heap memory is recorded in the state of the function, to be released."""
    type_ = alloc.buffer_type
    alignment = max(type_.align, ALIGNMENT)
    elements = _extent(type_).constant_value
    if elements is not None and elements * byte_size(type_.dtype) <= STACK_LIMIT:
        pointer = _stack(e, type_, max(elements, 1), alignment)
    else:
        b = e.b
        asked = _asked_bytes(e, type_)
        e.context.module.declare("relax_scratch_take", (i64, i64), POINTER, allocates=True)
        pointer = e.call("relax_scratch_take", (b.integer(alignment), asked), (i64, i64), POINTER)
        assert pointer is not None  # the function gives a result
        address = b.make(llvm.PtrToIntOp, (pointer,), i64)
        message = f"cannot allocate a buffer of type {type_}"
        e.fail_unless(b.compare("ne", address, b.integer(0)), "MemoryError", message)
        e.state.heap.append(pointer)
    pointer.name_hint = alloc.buffer.name_hint
    e.buffers[alloc.buffer] = Buffer(pointer, type_)


def release(e: Emitter, mark: int) -> None:
    """Releases the heap memory that was allocated after the first `mark` allocations."""
    while len(e.state.heap) > mark:
        e.call("relax_scratch_give", (e.state.heap.pop(),), (POINTER,))


def nested_allocations(op: Operation, in_parallel: bool) -> Iterator[AllocBufferOp]:
    """Allocations inside a loop, but not those in parallel loops that become functions of their own."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if isinstance(inner, AllocBufferOp):
                    yield inner
                elif inner.regions and (
                    in_parallel or not (isinstance(inner, ForOp) and inner.kind.data is LoopKind.PARALLEL)
                ):
                    yield from nested_allocations(inner, in_parallel)


def _extent(type_: BufferType) -> Dim:
    """How many elements lie between the base address and the end of the last element."""
    if type_.has_default_strides:
        return product(type_.shape) + type_.offset
    last = [(extent - 1) * stride for extent, stride in zip(type_.shape, type_.strides, strict=True)]
    return maximum(total([type_.offset, 1, *last]), 0)


def _stack(e: Emitter, type_: BufferType, elements: int, alignment: int) -> SSAValue:
    with e.entry():
        return e.b.stack(llvm.LLVMArrayType(elements, memory_type(type_.element_type)), alignment)


def _asked_bytes(e: Emitter, type_: BufferType) -> SSAValue:
    """The size in bytes; -1, which is refused, where it is negative or too large."""
    b = e.b
    if type_.has_default_strides and not type_.offset.terms:
        factors = [factor for extent in type_.shape for factor in _factors(extent)]
    else:
        factors = [_extent(type_)]
    known = byte_size(type_.dtype) * prod(factor.constant_term for factor in factors if factor.is_constant)
    values = [e.dim(factor) for factor in factors if not factor.is_constant]
    if known <= 0 or not values:
        return b.integer(known if 0 <= known <= LARGEST else -1)
    # As an unsigned number, one below zero is too large.
    size, valid = b.wrapping(llvm.MulOp, values[0], b.integer(known)), _at_most(b, values[0], LARGEST // known)
    for value in values[1:]:
        size, overflows = multiply_checked(b, size, value)
        wrong = b.make(llvm.OrOp, (overflows, b.compare("slt", value, b.integer(0))), i1)
        fits = b.make(llvm.XOrOp, (wrong, b.integer(1, i1)), i1)
        valid = b.make(llvm.AndOp, (valid, b.make(llvm.AndOp, (fits, _at_most(b, size, LARGEST)), i1)), i1)
    return b.select(valid, size, b.integer(-1))


def _at_most(b: LLVMBuilder, value: SSAValue, bound: int) -> SSAValue:
    return b.compare("ule", value, b.integer(bound))


def _factors(extent: Dim) -> list[Dim]:
    """An extent that is a product of symbols, as its factors, so that each multiplication is checked."""
    if len(extent.terms) != 1:
        return [extent]
    coefficient, monomial = extent.terms[0]
    factors = [symbol(atom.name) for atom, power in monomial if isinstance(atom, SymbolAtom) for _ in range(power)]
    if len(factors) != sum(power for _, power in monomial):
        return [extent]
    return [constant(coefficient), *factors]
