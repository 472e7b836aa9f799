"""Buffers at raw addresses, which are integers."""

from __future__ import annotations

from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import SymbolRefAttr, i64
from xdsl.ir import Operation, SSAValue

from lowering.tir_to_llvm.builder.llvm_builder import POINTER
from lowering.tir_to_llvm.emitter import Buffer, Emitter
from lowering.tir_to_llvm.memory.addresses import address_at, element_offset
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.misalignment import MisalignmentOp
from tir_dialect.ops.raw_memory import AddressOfOp, MemoryAtOp, TextAddressOp


def lower_memory_at(e: Emitter, op: Operation) -> None:
    """A buffer whose base is the address."""
    memory = cast(MemoryAtOp, op)
    pointer = e.b.make(llvm.IntToPtrOp, (e.scalar(memory.address),), POINTER)
    e.buffers[memory.view] = Buffer(pointer, memory.view_type)


def lower_address_of(e: Emitter, op: Operation) -> None:
    """The address of an element as an integer."""
    taken = cast(AddressOfOp, op)
    buffer = e.buffers[taken.buffer]
    offset = element_offset(e, buffer, [e.scalar(index) for index in taken.indices])
    assert isinstance(offset, SSAValue)  # of scalars
    e.define(taken.address, e.b.make(llvm.PtrToIntOp, (address_at(e, buffer, offset),), i64))


def lower_misalignment(e: Emitter, op: Operation) -> None:
    """The lower bits of the address of an element, which may be out of bounds."""
    where, b = cast(MisalignmentOp, op), e.b
    buffer = e.buffers[where.buffer]
    offset = element_offset(e, buffer, [e.scalar(index) for index in where.indices])
    assert isinstance(offset, SSAValue)  # of scalars
    address = b.make(llvm.PtrToIntOp, (b.element(buffer.pointer, offset, buffer.element, inside=False),), i64)
    elements = b.make(llvm.LShrOp, (address, b.integer(byte_size(where.buffer_type.dtype).bit_length() - 1)), i64)
    e.define(where.result, b.make(llvm.AndOp, (elements, b.integer(where.count.value.data - 1)), i64))


def lower_text(e: Emitter, op: Operation) -> None:
    """The address of a constant of the module."""
    text = cast(TextAddressOp, op)
    symbol = SymbolRefAttr(e.context.module.text(text.text.data))
    address = e.b.make(llvm.AddressOfOp, (), POINTER, {"global_name": symbol})
    e.define(text.address, e.b.make(llvm.PtrToIntOp, (address,), i64))
