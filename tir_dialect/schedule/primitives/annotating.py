"""Loop kinds, annotations of loops and blocks, declared regions of a block that cannot be inferred; and of allocated
buffers the memory scope, the strides, and the dtype of an intermediate one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Literal, TypeAlias, cast

from xdsl.dialects.builtin import DictionaryAttr, StringAttr, VectorType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import AxisRange, BlockRegions, Region, block_regions
from tir_dialect.dims import Dim, DimLike, ceildiv, constant, to_dim
from tir_dialect.dtypes import ElementType, byte_size, parse_dtype, scalar_type
from tir_dialect.ops.assembly_format import Note, note_attr
from tir_dialect.ops.blocks import BlockOp, BufferViewOp, MatchBufferOp, ReadsOp, WritesOp
from tir_dialect.ops.memory import LoadOp, RegionAxis, StoreOp
from tir_dialect.schedule.buffers import Which, any_buffer, checked_scope, read_buffer, retype, written_buffer
from tir_dialect.schedule.edits import Materializer
from tir_dialect.schedule.handles import Block, Loop
from tir_dialect.schedule.index_map import IndexMap
from tir_dialect.schedule.legality.accesses import accesses_in, loops_between, range_of
from tir_dialect.schedule.legality.independence import check_parallel
from tir_dialect.schedule.legality.motion import kind_of, own_allocation
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.structure import shape_of
from tir_dialect.te.emit_scalar import emit_cast
from tir_dialect.types import BufferType, LoopKind, LoopKindAttr

THREAD_TAGS = tuple(f"{level}.{axis}" for level in ("blockIdx", "threadIdx", "vthread") for axis in "xyz")


@primitive
def parallel(self: ScheduleState, loop: Loop) -> None:
    """Runs the iterations of a loop on the threads of the CPU.

    rewrite:
        for i in n: A(i)
        -> for parallel i in n: A(i)

    Refuses:
    1. iterations that share elements of a buffer, other than those of one block that its spatial iterators tell apart;
    2. instances of a block that linear indices show to share elements, whatever its iterators are called.
    """
    check_parallel(self, loop.op)
    _set_kind(loop, LoopKind.PARALLEL)


@primitive
def vectorize(self: ScheduleState, loop: Loop) -> None:
    """Runs the iterations of a loop as lanes of vector instructions.

    rewrite:
        for i in 8: A(i)
        -> for vectorized i in 8: A(i)

    Refuses:
    1. a loop of no constant extent;
    2. iterations that share elements, as in `parallel`.
    """
    _check_constant(self, loop)
    check_parallel(self, loop.op)
    _set_kind(loop, LoopKind.VECTORIZED)


@primitive
def unroll(self: ScheduleState, loop: Loop) -> None:
    """Unrolls a loop of constant extent.

    rewrite:
        for i in 4: A(i)
        -> for unrolled i in 4: A(i)

    Refuses:
    1. a loop of no constant extent.
    """
    _check_constant(self, loop)
    _set_kind(loop, LoopKind.UNROLLED)


@primitive
def bind(self: ScheduleState, loop: Loop, thread_axis: str) -> None:
    """Binds a loop to the hardware threads of a tag, such as `threadIdx.x`.

    rewrite:
        for i in n: A(i)
        -> for thread_binding "threadIdx.x" i in n: A(i)

    Refuses:
    1. tags other than `blockIdx`, `threadIdx` and `vthread` with `.x`, `.y` or `.z`;
    2. iterations that share elements, as in `parallel`.
    """
    if thread_axis not in THREAD_TAGS:
        raise self.error(f'expected a thread tag of {", ".join(THREAD_TAGS)}, got "{thread_axis}"')
    check_parallel(self, loop.op)
    _set_kind(loop, LoopKind.THREAD_BINDING, thread_axis)


def _set_kind(loop: Loop, kind: LoopKind, tag: str | None = None) -> None:
    """Gives a loop a kind, instead of the one that it has."""
    loop.op.kind = LoopKindAttr(kind)
    loop.op.thread_tag = None if tag is None else StringAttr(tag)


def _check_constant(self: ScheduleState, loop: Loop) -> None:
    extent = self.extent(loop.op)
    if not extent.is_constant:
        raise self.error(f'expected a loop of constant extent, got "{loop.name}" of extent {extent}; split it first')


@primitive
def annotate(self: ScheduleState, block_or_loop: Loop | Block, ann_key: str, ann_val: Note) -> None:
    """Adds an annotation to a loop or block, or replaces the one of that name; lowerings may read it.

    rewrite:
        for i in n: A(i)
        -> for i in n annotations {"key" = value}: A(i)

    Refuses:
    1. values that are no truth values, numbers, texts, or lists or dictionaries of them.
    """
    if not isinstance(cast("object", ann_key), str):
        raise TypeError("the name of an annotation is a text")
    notes = _notes(block_or_loop)
    block_or_loop.op.annotations = DictionaryAttr({**notes, ann_key: _attribute(self, ann_val)})


@primitive
def unannotate(self: ScheduleState, block_or_loop: Loop | Block, ann_key: str) -> None:
    """Removes an annotation.

    rewrite:
        for i in n annotations {"key" = value}: A(i)
        -> for i in n: A(i)

    Refuses:
    1. a name that is not there.
    """
    notes = dict(_notes(block_or_loop))
    if ann_key not in notes:
        raise self.error(f'"{block_or_loop.name}" has no annotation "{ann_key}"')
    del notes[ann_key]
    block_or_loop.op.annotations = DictionaryAttr(notes) if notes else None


def _notes(target: Loop | Block) -> dict[str, Attribute]:
    return {} if target.op.annotations is None else dict(target.op.annotations.data)


def _attribute(self: ScheduleState, value: object) -> Attribute:
    try:
        return note_attr(value)
    except TypeError as error:
        raise self.error(str(error)) from None


Ranges: TypeAlias = "str | Callable[..., Sequence[tuple[DimLike, DimLike] | DimLike]]"
"""The region of an instance: text, `"(vi) -> (vi, vi + 2)"` with two ends for each dimension, or a function of the
iterators that gives a pair of ends, or a point, for each dimension."""


@primitive
def annotate_buffer_access(
    self: ScheduleState, block: Block, buffer_index: Which, buf_type: Literal["read", "write"], gen_new_ranges: Ranges
) -> None:
    """Declares the region of a buffer that each instance of a block reads or writes, for the primitives that follow.

    rewrite:
        block(vi): C[vi] = A[idx[vi]]
        -> block(vi): reads A[vi to vi + 2]; reads idx[vi]; writes C[vi]; C[vi] = A[idx[vi]]

    The regions of the other buffers are declared as inferred. That a data-dependent index stays in the region is
    taken on trust, as with a hand-written `tir.reads`.

    Refuses:
    1. another access than "read" and "write", and a buffer that the block has no such access of;
    2. other than two ends for each dimension, from all iterators, and ends over other symbols than those of the
       function;
    3. regions that accesses at known indices leave.
    """
    if buf_type not in ("read", "write"):
        raise self.error(f'expected "read" or "write", got "{buf_type}"')
    op, is_store = block.op, buf_type == "write"
    buffer = (written_buffer if is_store else read_buffer)(self, op, buffer_index)
    count = 2 * len(shape_of(buffer))
    try:
        wanted = IndexMap.of(
            gen_new_ranges if isinstance(gen_new_ranges, str) else _flat(gen_new_ranges), len(op.iterators)
        )
    except ValueError as error:
        raise self.error(str(error)) from None
    if len(wanted.inputs) != len(op.iterators) or len(wanted.outputs) != count:
        raise self.error(
            f"expected {count} ends of ranges from {len(op.iterators)} iterators, got {len(wanted.outputs)} from "
            f"{len(wanted.inputs)}"
        )
    known = {*wanted.inputs, *self.func.symbol_names}
    unknown = frozenset[str]().union(*(end.symbols for end in wanted.outputs)) - known
    if unknown:
        raise self.error(f'region {wanted} uses "{min(unknown)}", which is no symbol of the function')
    self.record_as(gen_new_ranges, wanted)
    known = block_regions(op)
    ends = wanted.apply([known.iterators[value] for value in op.body.block.args])
    axes = tuple(AxisRange(low, high - low) for low, high in zip(ends[::2], ends[1::2], strict=True))
    said = Region(buffer, axes)
    for low, touched in _known_ranges(op, known.space, said, is_store):
        ends = touched.lower + touched.extent, low.lower + low.extent
        if not known.space.prover.less_equal(low.lower, touched.lower) or not known.space.prover.less_equal(*ends):
            verb = "writes" if is_store else "reads"
            raise self.error(
                f'expected a region of buffer "{said.buffer.name_hint}" with {touched}, which block '
                f'"{op.block_name.data}" {verb}, got {low}'
            )
    _declare(self, op, known, said, is_store)


def _flat(ranges: Callable[..., Sequence[tuple[DimLike, DimLike] | DimLike]]) -> Callable[..., Sequence[DimLike]]:
    """The same function with the ends in a row."""

    @wraps(ranges)
    def ends(*iterators: Dim) -> Sequence[DimLike]:
        found: object = ranges(*iterators)
        if not isinstance(found, list | tuple):
            raise ValueError(f"expected a function that gives a list of pairs of ends, or points, got {found}")
        axes = cast("Sequence[tuple[DimLike, DimLike] | DimLike]", found)
        return [end for axis in axes for end in (axis if isinstance(axis, tuple) else (axis, to_dim(axis) + 1))]

    return ends


def _known_ranges(
    block: BlockOp, space: IndexSpace, said: Region, is_store: bool
) -> Iterator[tuple[AxisRange, AxisRange]]:
    """Per access and dimension with a known index, what was said and what is touched."""
    for op in block.body.block.ops:
        for access in () if isinstance(op, ReadsOp | WritesOp) else accesses_in(space, op):
            if access.buffer is not said.buffer or access.is_store != is_store:
                continue
            inner = [space.variable(loop.induction_var) for loop in loops_between(access, None)]
            for axis, wanted in zip(access.axes, said.axes, strict=True):
                touched = range_of(space.prover, axis, inner)
                if touched is not None:
                    yield wanted, touched


def _declare(self: ScheduleState, block: BlockOp, known: BlockRegions, said: Region, is_store: bool) -> None:
    """Replaces the declarations of a block by those of all its regions, one of them the given one."""
    for op in [op for op in block.body.block.ops if isinstance(op, ReadsOp | WritesOp)]:
        Rewriter.erase_op(op)
    init = block.init
    point = InsertPoint.at_start(block.body.block) if init is None else InsertPoint.after(init)
    emitter = Materializer(self.func, known.space, point)
    for kind, regions in ((ReadsOp, known.reads), (WritesOp, known.writes)):
        for each in regions:
            given = each.buffer is said.buffer and (kind is WritesOp) == is_store
            axes = [_emit(emitter, axis) for axis in (said if given else each).axes]
            Rewriter.insert_op(kind(each.buffer, axes), point)


def _emit(emitter: Materializer, axis: AxisRange) -> RegionAxis:
    lower = emitter.emit(axis.lower)
    return RegionAxis(lower, None if axis.extent.constant_value == 1 else emitter.emit(axis.lower + axis.extent))


@primitive
def set_scope(self: ScheduleState, block: Block, buffer_index: Which, storage_scope: str) -> None:
    """Changes the storage scope of an allocated buffer.

    rewrite:
        B = alloc [n]
        -> B = alloc [n] in "local"

    Scopes that only GPUs have are `global`.

    Refuses:
    1. an unknown scope;
    2. a parameter or view.
    """
    scope = checked_scope(self, storage_scope)
    value = any_buffer(self, block.op, buffer_index)
    allocation = own_allocation(self, value)
    retype(allocation.buffer, allocation.buffer_type.with_scope(scope))


@primitive
def storage_align(
    self: ScheduleState, block: Block, buffer_index: Which, axis: int, factor: int, offset: int = 0
) -> None:
    """Pads an allocated buffer so that the stride of an axis is `factor * k + offset`.

    rewrite:
        B = alloc [n, 30]
        -> B = alloc [n, 30] with strides [32, 1]

    Refuses:
    1. a parameter or view, and a buffer with views;
    2. an axis that is not there, and the last one;
    3. a factor below 1, and an offset that is not below the factor.
    """
    value = any_buffer(self, block.op, buffer_index)
    kind = own_allocation(self, value).buffer_type
    position = axis + kind.rank if axis < 0 else axis
    if not 0 <= position < kind.rank - 1:
        raise self.error(f"expected an axis of 0 to {kind.rank - 2}, got {axis}")
    if factor < 1 or not 0 <= offset < factor:
        raise self.error(f"expected a factor of at least 1 and an offset below it, got {factor} and {offset}")
    if any(isinstance(use.operation, BufferViewOp) for use in value.uses):
        raise self.error(f'buffer "{value.name_hint}" has views, align it before they are made')
    retype(
        value,
        BufferType(
            kind.shape, kind.dtype, strides=_aligned(kind, position, factor, offset), scope=kind.scope, align=kind.align
        ),
    )


def _aligned(kind: BufferType, axis: int, factor: int, offset: int) -> list[Dim]:
    strides: list[Dim] = list(kind.strides)
    step = constant(1) if not strides else strides[-1]
    for position in reversed(range(kind.rank)):
        if position == axis:
            step = ceildiv(step - offset, factor) * factor + offset
        strides[position] = step if position <= axis else strides[position]
        step = strides[position] * kind.shape[position]
    return strides


@primitive
def unsafe_set_dtype(self: ScheduleState, block: Block, buffer_index: Which, dtype: str) -> None:
    """Changes the dtype of the buffer that a block writes: stores convert to it, loads convert back.

    rewrite:
        B = alloc [n] of f32;     B[i] = x;       y = B[i]
        -> B = alloc [n] of f16;  B[i] = f16(x);  y = f32(B[i])

    The only primitive that may change results: values are rounded to the new dtype.

    Refuses:
    1. a parameter or view;
    2. an unknown dtype, and truth values;
    3. uses other than loads and stores of single elements.
    """
    allocation = own_allocation(self, written_buffer(self, block.op, buffer_index))
    try:
        target = parse_dtype(dtype)
    except ValueError as error:
        raise self.error(str(error)) from None
    kind = allocation.buffer_type
    if i1 in (kind.element_type, target):
        raise self.error(f"expected numbers, got elements of {kind.element_type} and the dtype {target}")
    _check_uses(self, allocation.buffer)
    _convert(allocation.buffer, kind, target)


def _check_uses(self: ScheduleState, buffer: SSAValue) -> None:
    for use in buffer.uses:
        op = use.operation
        if isinstance(op, MatchBufferOp):
            _check_uses(self, op.view)
        elif not isinstance(op, ReadsOp | WritesOp) and not _is_of_one_element(op):
            raise self.error(
                f'buffer "{buffer.name_hint}" is used by {kind_of(op)}, expected loads and stores of single elements'
            )


def _is_of_one_element(op: Operation) -> bool:
    if not isinstance(op, LoadOp | StoreOp):
        return False
    value = op.result if isinstance(op, LoadOp) else op.value
    return not isinstance(value.type, VectorType)


def _convert(buffer: SSAValue, kind: BufferType, target: ElementType) -> None:
    """Gives a buffer and its views the dtype, and converts at each access."""
    align = kind.align if kind.align > byte_size(kind.dtype) else 1
    align = max(align, byte_size(target))
    own = BufferType(kind.shape, target, strides=kind.strides, offset=kind.offset, scope=kind.scope, align=align)
    new = Rewriter.replace_value_with_new_type(buffer, own)
    for op in dict.fromkeys(use.operation for use in new.uses):
        if isinstance(op, MatchBufferOp):
            _convert(op.view, op.view_type, target)
        elif isinstance(op, StoreOp):
            value = _cast(InsertPoint.before(op), op.value, kind.element_type, target)
            op.operands[0] = value
        elif isinstance(op, LoadOp):
            users = [(use.operation, use.index) for use in op.result.uses]
            result = Rewriter.replace_value_with_new_type(op.result, scalar_type(target))
            value = _cast(InsertPoint.after(op), result, target, kind.element_type)
            for user, index in users:
                user.operands[index] = value


def _cast(point: InsertPoint, value: SSAValue, source: ElementType, target: ElementType) -> SSAValue:
    ops: list[Operation] = []

    def insert(op: Operation) -> SSAValue:
        ops.append(op)
        return op.results[0]

    result = emit_cast(insert, value, source, target)
    Rewriter.insert_op(ops, point)
    return result
