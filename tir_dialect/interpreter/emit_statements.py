"""Python text of statements: loops, branches, blocks and calls; allocations, loads, stores and views."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import chain

from xdsl.dialects.builtin import IndexType
from xdsl.ir import BlockArgument, Operation, SSAValue

from tir_dialect import dtypes
from tir_dialect.analysis.init import InitPlacement
from tir_dialect.analysis.structure import block_of, loop_of
from tir_dialect.dims import Dim
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.interpreter.emitter import Emitter, Rule, hint
from tir_dialect.interpreter.numerics import numpy_type
from tir_dialect.ops.arithmetic import AssertOp
from tir_dialect.ops.blocks import BlockIterator, BlockOp, FlattenOp, InitOp, MatchBufferOp, ReadsOp, ViewOp, WritesOp
from tir_dialect.ops.calls import CallBoxedOp, CallExternOp, CallOp, CallPackedOp, ForeignCallOp
from tir_dialect.ops.control_flow import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.ops.raw_memory import AddressOfOp, MemoryAtOp, MisalignmentOp, PrefetchOp, TextAddressOp
from tir_dialect.ops.tile_registers import (
    ConfigureTilesOp,
    DotTilesOp,
    LoadTileOp,
    ReleaseTilesOp,
    StoreTileOp,
    ZeroTileOp,
)
from tir_dialect.types import BufferType, LoopKind


def _emit_for(emitter: Emitter, op: ForOp) -> None:
    for block, placement in emitter.early_inits(op):
        _emit_early_init(emitter, block, placement)
    with emitter.loop():
        _emit_loop_head(emitter, op)
        with emitter.indented():
            emitter.block(op.body.block)


def _emit_loop_head(emitter: Emitter, op: ForOp) -> None:
    lower = "" if op.lower is None else f"{emitter.name(op.lower)}, "
    values = f"range({lower}{emitter.name(op.upper)})"
    if op.kind.data is LoopKind.PARALLEL:
        values = f"parallel_order({values})"
    emitter.line(f"for {emitter.define(op.induction_var)} in {values}:")


def _emit_while(emitter: Emitter, op: WhileOp) -> None:
    with emitter.loop():
        emitter.line("while True:")
        with emitter.indented():
            emitter.block(op.before.block)
            emitter.block(op.body.block)


def _emit_condition(emitter: Emitter, op: ConditionOp) -> None:
    emitter.line(f"if not {emitter.name(op.condition)}: break")


def _emit_if(emitter: Emitter, op: IfOp) -> None:
    for result in op.outputs:
        emitter.define(result)
    emitter.line(f"if {emitter.name(op.condition)}:")
    with emitter.indented():
        emitter.block(op.then_body.block)
    if op.has_else:
        emitter.line("else:")
        with emitter.indented():
            emitter.block(op.else_body.block)


def _emit_yield(emitter: Emitter, op: YieldOp) -> None:
    parent = op.parent_op()
    if isinstance(parent, IfOp):
        for result, value in zip(parent.outputs, op.values, strict=True):
            emitter.line(f"{emitter.name(result)} = {emitter.name(value)}")


def _emit_block(emitter: Emitter, op: BlockOp) -> None:
    for iterator in op.iterators:
        emitter.alias(iterator.value, emitter.name(iterator.binding))
    if op.condition is None:
        _emit_instance(emitter, op)
        return
    emitter.line(f"if {emitter.name(op.condition)}:")
    with emitter.indented():
        _emit_instance(emitter, op)


def _emit_instance(emitter: Emitter, op: BlockOp) -> None:
    for iterator in op.iterators:
        if not _stays_inside(emitter, iterator):
            value, extent = emitter.name(iterator.binding), emitter.name(iterator.extent)
            block = emitter.constant(op.block_name.data)
            emitter.line(
                f"if not 0 <= {value} < {extent}: "
                f"fail_iterator({block}, {hint(iterator.value, 'iterator')!r}, {value}, {extent})"
            )
    emitter.block(op.body.block)


def _stays_inside(emitter: Emitter, iterator: BlockIterator) -> bool:
    """Whether the binding is the variable of a loop that runs over the domain of the iterator."""
    loop = loop_of(iterator.binding)
    if loop is None or loop.lower is not None:
        return False
    if loop.upper is iterator.extent:
        return True
    extent = emitter.dims.dim_of(iterator.extent)
    return extent is not None and extent is emitter.dims.dim_of(loop.upper)


def _emit_init(emitter: Emitter, op: InitOp) -> None:
    parent = op.parent_op()
    assert isinstance(parent, BlockOp)
    ordered = [iterator for iterator in parent.iterators if iterator.kind.is_reduced]
    names = [emitter.name(iterator.value) for iterator in ordered]
    emitter.line(f"if {' == '.join((*names, '0'))}:")
    with emitter.indented():
        emitter.block(op.body.block)


def _emit_early_init(emitter: Emitter, op: BlockOp, placement: InitPlacement) -> None:
    """Runs the init before a reduction, if the domain of the reduction is empty."""
    ordered = [iterator for iterator in op.iterators if iterator.kind.is_reduced]
    pending = list(placement.ops)

    def compute(values: Iterable[SSAValue]) -> None:
        """Emits the ops that the values depend on and that can be computed here."""
        for value in values:
            if isinstance(value.owner, Operation) and value.owner in pending:
                pending.remove(value.owner)
                compute(value.owner.operands)
                emitter.op(value.owner)

    with ExitStack() as nest:
        compute(iterator.extent for iterator in ordered)
        emitter.line(f"if min({', '.join(emitter.name(iterator.extent) for iterator in ordered)}, 1) == 0:")
        nest.enter_context(emitter.indented())
        for loop in placement.loops:
            compute(loop.operands)
            nest.enter_context(emitter.loop())
            _emit_loop_head(emitter, loop)
            nest.enter_context(emitter.indented())
        compute(placement.conditions)
        for condition in placement.conditions:
            emitter.line(f"if {emitter.name(condition)}:")
            nest.enter_context(emitter.indented())
        compute(list(chain.from_iterable(op.operands for op in op.init.walk())) if op.init else ())
        for iterator in op.iterators:
            reduced = iterator.kind.is_reduced
            compute(() if reduced else [iterator.binding, iterator.extent])
            emitter.alias(iterator.value, "0" if reduced else emitter.name(iterator.binding))
        if op.init is not None:
            emitter.block(op.init.body.block)


def _emit_declaration(emitter: Emitter, op: Operation) -> None:
    """Declarations do not run."""


def _emit_assert(emitter: Emitter, op: AssertOp) -> None:
    message = emitter.constant(op.message.data)
    emitter.line(f"if not {emitter.name(op.condition)}: fail_assertion({message}, {op.error_kind!r})")


def _emit_call(emitter: Emitter, op: CallOp) -> None:
    callee = emitter.constant(emitter.call(op), "f")
    emitter.line(f"{callee}({', '.join(emitter.names((*op.sizes, *op.arguments)))})")


def _emit_foreign_call(emitter: Emitter, op: ForeignCallOp) -> None:
    call = f"{emitter.constant(emitter.foreign(op), 'f')}({', '.join(emitter.names(tuple(op.arguments)))})"
    if op.result is None:
        emitter.line(call)
    else:
        emitter.assign(op.result, call)


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


def _emit_alloc(emitter: Emitter, op: AllocBufferOp) -> None:
    shape = _tuple([emitter.dim(dim) for dim in op.buffer_type.shape])
    dtype = emitter.constant(numpy_type(op.buffer_type.element_type))
    emitter.assign(op.buffer, f"fresh_buffer({shape}, {dtype}, {str(op.buffer_type)!r})")


def _emit_view(emitter: Emitter, op: MatchBufferOp) -> None:
    axes = [
        emitter.name(axis.lower) if axis.upper is None else f"({emitter.name(axis.lower)}, {emitter.name(axis.upper)})"
        for axis in op.axes
    ]
    expected = ", ".join(emitter.dim(dim) for dim in op.view_type.shape)
    name = hint(op.buffer, "buffer")
    emitter.assign(op.view, f"view_region({emitter.name(op.buffer)}, {name!r}, {_tuple(axes)}, [{expected}])")


def _emit_flatten(emitter: Emitter, op: FlattenOp) -> None:
    emitter.assign(op.view, f"view_flat({emitter.name(op.buffer)}, {hint(op.buffer, 'buffer')!r})")


def _emit_reinterpreted(emitter: Emitter, op: ViewOp) -> None:
    layout = ", ".join(
        _tuple([emitter.dim(dim) for dim in dims]) for dims in (op.view_type.shape, op.view_type.strides)
    )
    dtype = emitter.constant(numpy_type(op.view_type.element_type))
    start = "0" if op.start is None else emitter.name(op.start)
    name = hint(op.buffer, "buffer")
    emitter.assign(op.view, f"view_memory({emitter.name(op.buffer)}, {name!r}, {start}, {layout}, {dtype})")


def _emit_load(emitter: Emitter, op: LoadOp) -> None:
    array, indices, name = emitter.name(op.buffer), emitter.names(tuple(op.indices)), hint(op.buffer, "buffer")
    if op.lanes is not None:
        contiguous = _is_contiguous(op.indices)
        mask = None if op.mask is None else emitter.name(op.mask)
        arguments = f"{array}, {name!r}, {_tuple(indices)}, {op.lanes}, {contiguous}, {mask}"
        emitter.assign(op.result, f"load_vector({arguments})")
        return
    _emit_check(emitter, op, op.buffer_type, op.indices, name)
    if dtypes.is_float(op.buffer_type.dtype):
        emitter.assign(op.result, f"{array}[{', '.join(indices) or '()'}]")
    else:
        emitter.assign(op.result, f"{array}.item({', '.join(indices)})")


def _emit_store(emitter: Emitter, op: StoreOp) -> None:
    array, indices, name = emitter.name(op.buffer), emitter.names(tuple(op.indices)), hint(op.buffer, "buffer")
    value = emitter.name(op.value)
    if op.lanes is not None:
        contiguous = _is_contiguous(op.indices)
        mask = None if op.mask is None else emitter.name(op.mask)
        emitter.line(f"store_vector({value}, {array}, {name!r}, {_tuple(indices)}, {contiguous}, {mask})")
        return
    _emit_check(emitter, op, op.buffer_type, op.indices, name)
    emitter.line(f"{array}[{', '.join(indices) or '()'}] = {value}")


def _emit_prefetch(emitter: Emitter, op: PrefetchOp) -> None:
    """A hint has no value."""


def _emit_configure_tiles(emitter: Emitter, op: ConfigureTilesOp) -> None:
    emitter.line(f"tiles = TileRegisters({emitter.name(op.rest)})")


def _emit_release_tiles(emitter: Emitter, op: ReleaseTilesOp) -> None:
    emitter.line("tiles = None")


def _emit_zero_tile(emitter: Emitter, op: ZeroTileOp) -> None:
    emitter.line(f"tiles.zero({op.tile.value.data})")


def _emit_tile_access(emitter: Emitter, op: LoadTileOp | StoreTileOp) -> None:
    method = "load" if isinstance(op, LoadTileOp) else "store"
    array, indices = emitter.name(op.buffer), _tuple(emitter.names(tuple(op.indices)))
    emitter.line(f"tiles.{method}({op.tile.value.data}, {array}, {hint(op.buffer, 'buffer')!r}, {indices})")


def _emit_dot_tiles(emitter: Emitter, op: DotTilesOp) -> None:
    numbers = ", ".join(str(each.value.data) for each in (op.acc, op.lhs, op.rhs))
    left, right = (emitter.constant(numpy_dtype(dtype)) for dtype in (op.lhs_dtype, op.rhs_dtype))
    emitter.line(f"tiles.dot({numbers}, {left}, {right})")


def _is_contiguous(indices: Sequence[SSAValue]) -> bool:
    return all(isinstance(index.type, IndexType) for index in indices)


def _emit_check(emitter: Emitter, op: Operation, buffer: BufferType, indices: Sequence[SSAValue], name: str) -> None:
    """Adds the test that the access is in range, as far as the loops do not show it."""
    tests: list[str] = []
    for index, dim in zip(indices, buffer.shape, strict=True):
        if _known_extent(emitter, index) is not dim:
            tests.append(f"0 <= {emitter.name(index)} < {emitter.dim(dim)}")
    if tests:
        values = _tuple([emitter.name(index) for index in indices])
        extents = _tuple([emitter.dim(dim) for dim in buffer.shape])
        emitter.line(f"if not ({' and '.join(tests)}): fail_access({op.name!r}, {name!r}, {values}, {extents})")


def _known_extent(emitter: Emitter, index: SSAValue) -> Dim | None:
    """`e` if the structure says that `0 <= index < e`: of loop variables and of block iterators."""
    loop = loop_of(index)
    if loop is not None:
        return emitter.dims.dim_of(loop.upper) if loop.lower is None else None
    block = block_of(index)
    if block is not None and isinstance(index, BlockArgument):
        return emitter.dims.dim_of(block.extents[index.index])
    return None


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


STATEMENT_RULES: dict[type[Operation], Rule] = {
    ForOp: _emit_for,
    WhileOp: _emit_while,
    ConditionOp: _emit_condition,
    IfOp: _emit_if,
    YieldOp: _emit_yield,
    BlockOp: _emit_block,
    InitOp: _emit_init,
    ReadsOp: _emit_declaration,
    WritesOp: _emit_declaration,
    AssertOp: _emit_assert,
    CallOp: _emit_call,
    CallExternOp: _emit_foreign_call,
    CallPackedOp: _emit_foreign_call,
    AllocBufferOp: _emit_alloc,
    MatchBufferOp: _emit_view,
    FlattenOp: _emit_flatten,
    ViewOp: _emit_reinterpreted,
    LoadOp: _emit_load,
    StoreOp: _emit_store,
    PrefetchOp: _emit_prefetch,
    ConfigureTilesOp: _emit_configure_tiles,
    ReleaseTilesOp: _emit_release_tiles,
    ZeroTileOp: _emit_zero_tile,
    LoadTileOp: _emit_tile_access,
    StoreTileOp: _emit_tile_access,
    DotTilesOp: _emit_dot_tiles,
    MemoryAtOp: _emit_memory_at,
    AddressOfOp: _emit_address_of,
    MisalignmentOp: _emit_misalignment,
    TextAddressOp: _emit_text,
    CallBoxedOp: _emit_call_boxed,
}
"""How to write statements."""
