"""Non-temporal stores to buffers that are larger than the caches.

An ordinary store to a line that is not cached reads it first, which is a third of the traffic of a copy; non-temporal
stores are combined to whole lines and written to memory. They need addresses aligned to the vector, which is only known
at run time, and a fence before other threads read the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation, SSAValue

from lowering.llvm.builder.vector_types import lanes_of
from lowering.tir_to_llvm.memory.fences import is_large
from tir_dialect.codegen_hints import STREAMED_FROM
from tir_dialect.dims import product
from tir_dialect.dtypes import byte_size

if TYPE_CHECKING:
    from lowering.tir_to_llvm.emitter import Buffer, Emitter

LEAST_BYTES = 16
"""Shorter vectors are not written past the caches."""


def streamed_from(e: Emitter, op: Operation) -> int | None:
    """From how many bytes of a buffer on a store is to go past the caches; `None` where it never does."""
    hint = op.attributes.get(STREAMED_FROM) if op.attributes and e.context.options.streams else None
    return hint.value.data if isinstance(hint, IntegerAttr) else None


def store_streamed(e: Emitter, buffer: Buffer, value: SSAValue, address: SSAValue, least: int) -> None:
    """Stores a vector, non-temporally if the buffer has at least `least` bytes and the address is aligned."""
    b, bytes_ = e.b, byte_size(buffer.type.dtype)
    unit = min(lanes_of(value.type) * bytes_, e.context.options.vector_bits // 8)
    extent = product(buffer.type.shape)
    known = extent.constant_value
    if unit < LEAST_BYTES or unit & (unit - 1) or (known is not None and known * bytes_ < least):
        b.store(value, address, buffer.alignment)
        return
    elements = -(-least // bytes_)
    large, aligned, plain, after = (b.new_block() for _ in range(4))
    b.branch_if(is_large(b, e.dim(extent), elements), large, plain)
    b.start(large)
    number = b.make(llvm.PtrToIntOp, (address,), i64)
    rest = b.once(llvm.AndOp, (number, b.integer(unit - 1)), i64)
    b.branch_if(b.compare("eq", rest, b.integer(0)), aligned, plain)
    b.start(aligned)
    b.store(value, address, unit, nontemporal=True)
    e.state.streams[extent] = elements
    b.branch(after)
    b.start(plain)
    b.store(value, address, buffer.alignment)
    b.branch(after)
    b.start(after)
