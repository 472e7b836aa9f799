"""Addresses of the elements of a buffer."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowering.tir_to_llvm.emitter import Buffer, Emitter
from lowering.tir_to_llvm.loops import lane_values
from lowering.tir_to_llvm.loops.lane_values import LaneValue


def element_offset(e: Emitter, buffer: Buffer, indices: Sequence[LaneValue], lanes: int = 1) -> LaneValue:
    """The offset of an element from the base address, in elements: `offset + sum(index * stride)`."""
    offset: LaneValue
    offset, strides = e.layout(buffer)
    for index, stride in zip(indices, strides, strict=True):
        offset = lane_values.add(e.b, offset, lane_values.mul(e.b, index, stride, lanes), lanes)
    return offset


def first_element(e: Emitter, buffer: Buffer) -> SSAValue:
    """The address of the element at index 0 in every dimension."""
    return e.b.element(buffer.pointer, e.layout(buffer)[0], buffer.element)


def address_at(e: Emitter, buffer: Buffer, offset: SSAValue) -> SSAValue:
    """The address `offset` elements after the base address."""
    return e.b.element(buffer.pointer, offset, buffer.element)
