"""Buffers at raw addresses, which are integers."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import SymbolRefAttr, i64
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.llvm.builder.llvm_builder import POINTER
from lowering.rewriting import op_rewrite_pattern
from lowering.tir_to_llvm.emitter import Buffer, Emitter
from lowering.tir_to_llvm.memory.accesses import address_at, element_offset
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.raw_memory import AddressOfOp, MemoryAtOp, MisalignmentOp, TextAddressOp


class LowerMemoryAt(RewritePattern):
    """A buffer whose base is the address."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MemoryAtOp, e: Emitter) -> None:
        pointer = e.b.make(llvm.IntToPtrOp, (e.scalar(op.address),), POINTER)
        e.buffers[op.view] = Buffer(pointer, op.view_type)


class LowerAddressOf(RewritePattern):
    """The address of an element as an integer."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AddressOfOp, e: Emitter) -> None:
        buffer = e.buffers[op.buffer]
        offset = element_offset(e, buffer, [e.scalar(index) for index in op.indices])
        assert isinstance(offset, SSAValue)  # of scalars
        e.define(op.address, e.b.make(llvm.PtrToIntOp, (address_at(e, buffer, offset),), i64))


class LowerMisalignment(RewritePattern):
    """The lower bits of the address of an element, which may be out of bounds."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MisalignmentOp, e: Emitter) -> None:
        b = e.b
        buffer = e.buffers[op.buffer]
        offset = element_offset(e, buffer, [e.scalar(index) for index in op.indices])
        assert isinstance(offset, SSAValue)  # of scalars
        address = b.make(llvm.PtrToIntOp, (b.element(buffer.pointer, offset, buffer.element, inside=False),), i64)
        elements = b.make(llvm.LShrOp, (address, b.integer(byte_size(op.buffer_type.dtype).bit_length() - 1)), i64)
        e.define(op.result, b.make(llvm.AndOp, (elements, b.integer(op.count.value.data - 1)), i64))


class LowerTextAddress(RewritePattern):
    """The address of a constant of the module."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: TextAddressOp, e: Emitter) -> None:
        symbol = SymbolRefAttr(e.context.module.text(op.text.data))
        address = e.b.make(llvm.AddressOfOp, (), POINTER, {"global_name": symbol})
        e.define(op.address, e.b.make(llvm.PtrToIntOp, (address,), i64))
