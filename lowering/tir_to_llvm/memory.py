"""Loads, stores and views; buffers at raw addresses, which are integers; and memory of `tir.alloc_buffer`.

A buffer is on the stack if it is small and of constant size, else it comes from the reusable workspace. Its size
depends on the symbols of the function only, so heap memory is taken before the outermost loop
around the allocation and given back after it. A size that overflows, or that the system cannot provide, raises
`MemoryError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr, SymbolRefAttr, VectorType, i1, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.llvm import llvm_ext
from lowering.llvm.function_builder import element_type, lane_count, lanes_of
from lowering.llvm.llvm_builder import POINTER, LLVMBuilder
from lowering.rewriting import op_rewrite_pattern
from lowering.tir_to_llvm import lane_values
from lowering.tir_to_llvm.arithmetic.division import multiply_checked
from lowering.tir_to_llvm.arithmetic.intrinsic_ops import bytes_of, look_up
from lowering.tir_to_llvm.arithmetic.scalars import from_memory, memory_type, to_memory
from lowering.tir_to_llvm.emitter import Buffer, Emitter, is_large
from lowering.tir_to_llvm.lane_values import Lanes, LaneValue, Ramp
from tir_dialect.codegen_hints import STREAMED_FROM
from tir_dialect.dims import Dim, SymbolAtom, constant, maximum, product, symbol, total
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.blocks import FlattenOp, MatchBufferOp, ViewOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp, i32_array, vector_of
from tir_dialect.ops.raw_memory import AddressOfOp, MemoryAtOp, MisalignmentOp, PrefetchOp, TextAddressOp
from tir_dialect.types import BufferType, LoopKind, is_byte_table

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
    return b.insert(llvm_ext.MaskedLoadOp(address, mask, b.zero(vector), alignment)).results[0]


def _shuffled(b: LLVMBuilder, left: SSAValue, right: SSAValue, order: Sequence[int]) -> SSAValue:
    """The elements of two vectors side by side that `order` numbers."""
    kind = VectorType(element_type(left.type), [len(order)])
    assert lanes_of(left.type) == lanes_of(right.type)
    return b.make(llvm.ShuffleVectorOp, (left, right), kind, {"mask": i32_array(*order)})


class LowerLoad(RewritePattern):
    """Loads an element, or one for each lane."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: LoadOp, e: Emitter) -> None:
        result = op.results[0]
        memory, *operands = op.operands
        buffer = e.buffers[memory]
        offset, lanes = _offset_and_lanes(e, buffer, operands, lane_count(result.type))
        if isinstance(offset, SSAValue) and not lane_values.is_varying(offset):
            value = e.b.load(address_at(e, buffer, offset), buffer.element, buffer.alignment)
        else:
            assert lanes is not None  # only lanes make an offset vary
            value = _load_lanes(e, buffer, offset, lanes)
        e.define(result, from_memory(e.b, value, buffer.type.element_type))


class LowerStore(RewritePattern):
    """Stores an element, or one for each lane."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: StoreOp, e: Emitter) -> None:
        value, memory, *operands = op.operands
        buffer = e.buffers[memory]
        offset, lanes = _offset_and_lanes(e, buffer, operands, lane_count(value.type))
        if isinstance(offset, SSAValue) and not lane_values.is_varying(offset):
            stored = to_memory(e.b, e.scalar(value), buffer.type.element_type)
            e.b.store(stored, address_at(e, buffer, offset), buffer.alignment)
        else:
            assert lanes is not None  # only lanes make an offset vary
            vector = lane_values.as_vector(e.b, e.values[value], lanes.count)
            least = streamed_from(e, op)
            _store_lanes(e, buffer, offset, lanes, to_memory(e.b, vector, buffer.type.element_type), least)


class LowerPrefetch(RewritePattern):
    """A hint; its address may be outside of the buffer, and is computed so that LLVM does not take it to be inside."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: PrefetchOp, e: Emitter) -> None:
        b = e.b
        buffer = e.buffers[op.buffer]
        offset = element_offset(e, buffer, [e.scalar(index) for index in op.indices])
        assert isinstance(offset, SSAValue)  # of scalars
        address = b.element(buffer.pointer, offset, buffer.element, inside=False)
        read, locality, data = (b.integer(number, i32) for number in (0, 4 - op.level.value.data, 1))
        b.insert(llvm.CallIntrinsicOp("llvm.prefetch.p0", [address, read, locality, data], []))


class LowerMatchBuffer(RewritePattern):
    """A view: its base address is that of its first element."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MatchBufferOp, e: Emitter) -> None:
        buffer = e.buffers[op.buffer]
        offset = element_offset(e, buffer, [e.scalar(axis.lower) for axis in op.axes])
        assert isinstance(offset, SSAValue)  # of scalars
        e.buffers[op.view] = Buffer(address_at(e, buffer, offset), op.view_type)


class LowerFlatten(RewritePattern):
    """A view of everything: the same address."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: FlattenOp, e: Emitter) -> None:
        e.buffers[op.view] = Buffer(e.buffers[op.buffer].pointer, op.view_type)


class LowerView(RewritePattern):
    """A view: so many of its own elements behind the address."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ViewOp, e: Emitter) -> None:
        whole = Buffer(e.buffers[op.buffer].pointer, op.view_type)
        pointer = whole.pointer if op.start is None else address_at(e, whole, e.scalar(op.start))
        e.buffers[op.view] = Buffer(pointer, op.view_type)


def _offset_and_lanes(
    e: Emitter, buffer: Buffer, operands: Sequence[SSAValue], count: int | None
) -> tuple[LaneValue, Lanes | None]:
    """Offset and lanes of an access to so many elements, if it is of a vector: otherwise lanes are the loop's.

    The operands are an index for each dimension and perhaps a mask. They are told apart by their number, as to read
    the sizes of groups from the op takes longer than the rest.
    """
    rank = buffer.rank
    indices = [e.values[index] for index in operands[:rank]]
    if count is None:
        lanes = e.lanes
    else:
        lanes = Lanes(count, e.scalar(operands[rank]) if len(operands) > rank else None)
        if not any(map(lane_values.is_varying, indices)):
            indices[-1] = Ramp(cast("SSAValue", indices[-1]), e.b.integer(1))
    return element_offset(e, buffer, indices, 1 if lanes is None else lanes.count), lanes


def _load_lanes(e: Emitter, buffer: Buffer, offset: LaneValue, lanes: Lanes) -> SSAValue:
    b, alignment = e.b, buffer.alignment
    vector = vector_of(buffer.element, lanes.count)
    step = b.known_integer(offset.step) if isinstance(offset, Ramp) else None
    if isinstance(offset, Ramp) and step in (1, -1):
        start = offset.base if step == 1 else b.sub(offset.base, b.integer(lanes.count - 1))
        address = address_at(e, buffer, start)
        if lanes.mask is None:
            value = b.load(address, vector, alignment)
        else:
            mask = lanes.mask if step == 1 else _reversed(b, lanes.mask)
            value = b.insert(llvm_ext.MaskedLoadOp(address, mask, b.zero(vector), alignment)).results[0]
            b.note_read(address, value)
        return value if step == 1 else _reversed(b, value)
    if isinstance(offset, Ramp) and step is not None and suits_strided(e, buffer, step, lanes):
        return load_strided(e, buffer, offset.base, step, lanes)
    offsets = lane_values.as_vector(b, offset, lanes.count)
    numbers = bytes_of(b, offsets) if is_byte_table(buffer.type) else None
    if numbers is not None:
        return look_up(b, buffer.pointer, numbers, alignment)
    gather = llvm_ext.GatherOp(buffer.pointer, offsets, _mask(b, lanes), b.zero(vector), alignment)
    return b.insert(gather).results[0]


def _store_lanes(
    e: Emitter, buffer: Buffer, offset: LaneValue, lanes: Lanes, value: SSAValue, least: int | None
) -> None:
    b, alignment = e.b, buffer.alignment
    step = b.known_integer(offset.step) if isinstance(offset, Ramp) else None
    if isinstance(offset, Ramp) and step in (1, -1):
        start = offset.base if step == 1 else b.sub(offset.base, b.integer(lanes.count - 1))
        address = address_at(e, buffer, start)
        stored = value if step == 1 else _reversed(b, value)
        if lanes.mask is None and least is not None and step == 1:
            store_streamed(e, buffer, stored, address, least)
        elif lanes.mask is None:
            b.store(stored, address, alignment)
        else:
            mask = lanes.mask if step == 1 else _reversed(b, lanes.mask)
            if byte_size(buffer.type.dtype) < 4:
                # The same mask, of which LLVM cannot know which lanes are on.
                on = b.insert(llvm.InlineAsmOp("", "=r,0", [b.integer(1, i32)], [i32])).results[0]
                every = b.splat(b.make(llvm.TruncOp, (on,), i1), lanes_of(mask.type))
                mask = b.make(llvm.AndOp, (mask, every), mask.type)
            b.note_write(address)
            b.insert(llvm_ext.MaskedStoreOp(stored, address, mask, alignment))
        return
    offsets = lane_values.as_vector(b, offset, lanes.count)
    b.insert(llvm_ext.ScatterOp(value, buffer.pointer, offsets, _mask(b, lanes), alignment))


def _mask(b: LLVMBuilder, lanes: Lanes) -> SSAValue:
    return b.integer(1, vector_of(i1, lanes.count)) if lanes.mask is None else lanes.mask


def _reversed(b: LLVMBuilder, vector: SSAValue) -> SSAValue:
    type_ = vector.type
    order = list(reversed(range(lanes_of(type_))))
    mask = i32_array(*order)
    return b.make(llvm.ShuffleVectorOp, (vector, b.undefined(type_)), type_, {"mask": mask})


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
