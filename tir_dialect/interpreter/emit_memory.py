"""Python text of allocations, loads, stores and views."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType
from xdsl.ir import BlockArgument, Operation, SSAValue

from tir_dialect import dtypes
from tir_dialect.analysis.structure import block_of, loop_of
from tir_dialect.dims import Dim
from tir_dialect.interpreter.emitter import Emitter, Rule, hint
from tir_dialect.interpreter.widths import numpy_type
from tir_dialect.ops.boxed_calls import CallBoxedOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.ops.misalignment import MisalignmentOp
from tir_dialect.ops.prefetch import PrefetchOp
from tir_dialect.ops.raw_memory import AddressOfOp, MemoryAtOp, TextAddressOp
from tir_dialect.ops.regions import MatchBufferOp
from tir_dialect.ops.view import FlattenOp, ViewOp
from tir_dialect.types import BufferType


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


def _emit_nothing(emitter: Emitter, op: PrefetchOp) -> None:
    """A hint has no value."""


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


MEMORY_RULES: dict[type[Operation], Rule] = {
    AllocBufferOp: _emit_alloc,
    MatchBufferOp: _emit_view,
    FlattenOp: _emit_flatten,
    ViewOp: _emit_reinterpreted,
    LoadOp: _emit_load,
    StoreOp: _emit_store,
    PrefetchOp: _emit_nothing,
}
"""How to write the ops of this file."""
