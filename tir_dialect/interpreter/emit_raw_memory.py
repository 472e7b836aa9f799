"""Python text of what works on addresses."""

from __future__ import annotations

import ctypes

from xdsl.ir import Operation

from tir_dialect.interpreter.emitter import Emitter, Rule
from tir_dialect.interpreter.widths import numpy_type
from tir_dialect.ops.boxed_calls import CallBoxedOp
from tir_dialect.ops.misalignment import MisalignmentOp
from tir_dialect.ops.raw_memory import AddressOfOp, MemoryAtOp, TextAddressOp


def _emit_memory_at(emitter: Emitter, op: MemoryAtOp) -> None:
    shape, strides = (f"[{', '.join(map(emitter.dim, dims))}]" for dims in (op.view_type.shape, op.view_type.strides))
    dtype = emitter.constant(numpy_type(op.view_type.element_type))
    emitter.assign(op.view, f"memory_at({emitter.name(op.address)}, {shape}, {strides}, {dtype})")


def _emit_address_of(emitter: Emitter, op: AddressOfOp) -> None:
    position = ", ".join(emitter.names(tuple(op.indices)))
    emitter.assign(op.address, f"address_of({emitter.name(op.buffer)}, [{position}])")


def _emit_misalignment(emitter: Emitter, op: MisalignmentOp) -> None:
    position, array = ", ".join(emitter.names(tuple(op.indices))), emitter.name(op.buffer)
    emitter.assign(op.result, f"address_of({array}, [{position}]) // {array}.itemsize % {op.count.value.data}")


def _emit_text(emitter: Emitter, op: TextAddressOp) -> None:
    text = emitter.constant(ctypes.create_string_buffer(op.text.data.encode()))
    emitter.assign(op.address, f"{emitter.constant(ctypes.addressof)}({text})")


def _emit_call_boxed(emitter: Emitter, op: CallBoxedOp) -> None:
    function = emitter.constant(emitter.foreign(op), "f")
    emitter.line(f"{function}({emitter.name(op.values)}, {op.count})")


RAW_MEMORY_RULES: dict[type[Operation], Rule] = {
    MemoryAtOp: _emit_memory_at,
    AddressOfOp: _emit_address_of,
    MisalignmentOp: _emit_misalignment,
    TextAddressOp: _emit_text,
    CallBoxedOp: _emit_call_boxed,
}
"""How to write the ops of this file."""
