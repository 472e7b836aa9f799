"""Strided loads with small steps, as contiguous vector loads and shuffles.

A gather costs about as much as a scalar load per lane. Nothing before the element of the first lane or after that of
the last one is read; a masked load reads only elements of set lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType, i1
from xdsl.ir import SSAValue

from lowering.llvm.builder.llvm_builder import LLVMBuilder
from lowering.llvm.builder.vector_types import element_type, lanes_of
from lowering.tir_to_llvm import llvm_ext_memory
from lowering.tir_to_llvm.emitter import Buffer, Emitter
from lowering.tir_to_llvm.loops.lane_values import Lanes
from lowering.tir_to_llvm.memory.addresses import address_at
from tir_dialect.ops.memory import i32_array, vector_of

MOST_STEPS = 4
"""Beyond it there are as many loads and shuffles as a gather takes."""


def suits_strided(e: Emitter, buffer: Buffer, step: int | None, lanes: Lanes) -> bool:
    """Whether an access is faster as loads side by side: with a mask, only if the machine masks loads."""
    if step is None or not 1 < step <= MOST_STEPS or lanes.count < step:
        return False
    bits = e.context.options.vector_bits
    return lanes.mask is None or bits >= 512 or (bits >= 256 and buffer.alignment >= 4)


def load_strided(e: Emitter, buffer: Buffer, base: SSAValue, step: int, lanes: Lanes) -> SSAValue:
    """The elements `base + lane * step`."""
    b, count = e.b, lanes.count
    span = step * (count - 1) + 1
    starts = [min(piece * count, span - count) for piece in range(step)]
    owners = [min(lane * step // count, step - 1) for lane in range(count)]
    result: SSAValue | None = None
    kept = [0] * count
    for piece, start in enumerate(starts):
        position_of = {lane: lane * step - start for lane, owner in enumerate(owners) if owner == piece}
        lane_at = {position: lane for lane, position in position_of.items()}
        loaded = _load(e, buffer, b.add(base, b.integer(start)), lanes, lane_at)
        if result is None:
            result, kept = loaded, [position_of.get(lane, 0) for lane in range(count)]
            continue
        order = [count + position_of[lane] if lane in position_of else kept[lane] for lane in range(count)]
        result, kept = _shuffled(b, result, loaded, order), list(range(count))
    assert result is not None  # there are two pieces or more
    return result


def _load(e: Emitter, buffer: Buffer, start: SSAValue, lanes: Lanes, lane_at: dict[int, int]) -> SSAValue:
    """A vector from `start` on, of which elements are needed for the lanes that `lane_at` gives them."""
    b, alignment = e.b, buffer.alignment
    vector = vector_of(buffer.element, lanes.count)
    address = address_at(e, buffer, start)
    if lanes.mask is None:
        return b.load(address, vector, alignment)
    nothing = b.integer(0, VectorType(i1, [lanes.count]))
    mask = _shuffled(b, lanes.mask, nothing, [lane_at.get(position, lanes.count) for position in range(lanes.count)])
    return b.insert(llvm_ext_memory.MaskedLoadOp(address, mask, b.zero(vector), alignment)).results[0]


def _shuffled(b: LLVMBuilder, left: SSAValue, right: SSAValue, order: Sequence[int]) -> SSAValue:
    """The elements of two vectors side by side that `order` numbers."""
    kind = VectorType(element_type(left.type), [len(order)])
    assert lanes_of(left.type) == lanes_of(right.type)
    return b.make(llvm.ShuffleVectorOp, (left, right), kind, {"mask": i32_array(*order)})
