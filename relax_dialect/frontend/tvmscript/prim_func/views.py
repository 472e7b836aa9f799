"""Views: memory that is there, with another shape, dtype or place; parts of buffers."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from relax_dialect.frontend.tvmscript.prim_func.addresses import declare_at, has_static_shape
from relax_dialect.frontend.tvmscript.prim_func.buffers import (
    LAYOUT,
    RENAMED,
    alloc,
    allocate,
    bind_buffer,
    check_scope,
    is_none,
    read_buffer_type,
    read_dims,
)
from relax_dialect.frontend.tvmscript.prim_func.linear import known_difference
from relax_dialect.frontend.tvmscript.prim_func.promotion import promoted
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import FUNCTIONS
from relax_dialect.frontend.tvmscript.prim_func.values import Axis, Buffer, Place, Pointer, Region, Vector, pointer_to
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.scope import Unbound
from tir_dialect.dims import Dim, Prover, constant, product
from tir_dialect.dtypes import byte_size
from tir_dialect.name_hints import as_name_hint
from tir_dialect.ops.accesses import RegionAxis
from tir_dialect.ops.flatten import FlattenOp
from tir_dialect.ops.regions import MatchBufferOp
from tir_dialect.ops.view import ViewOp
from tir_dialect.te import nodes
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.types import BufferType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader

_ZERO = constant(0)
_OFFSETS = ("elem_offset", "offset")


def declare(reader: TirExpressionReader, node: ast.Call, name: str, what: str) -> Buffer | Unbound:
    """`T.decl_buffer(shape, dtype, data=pointer)`: a shape for memory that is there, else new memory."""
    given = Arguments(reader.source, node, what, f"shape dtype {LAYOUT}", RENAMED)
    data_node = given.get("data")
    if data_node is None or is_none(data_node):
        if what == "T.Buffer" and not has_static_shape(reader, node):
            return Unbound(f"{name} has a shape, but no memory yet; T.decl_buffer gives it one")
        return allocate(reader, node, name, what)
    data = reader.value(data_node)
    if isinstance(data, Scalar):
        return declare_at(reader, node, name, what, data)
    if not isinstance(data, Pointer):
        got = (
            f"; write {ast.unparse(data_node)}.data" if isinstance(data, Buffer) else f", got {ast.unparse(data_node)}"
        )
        reader.fail(data_node, f"{what} expected data to be the memory of T.allocate, or of a buffer, as A.data{got}")
    place, offset = given.get("elem_offset"), _ZERO
    if place is not None and not is_none(place):
        offset = reader.index(place, reader.value(place))
        others = [keyword for keyword in node.keywords if keyword.arg not in _OFFSETS]
        node = ast.copy_location(ast.Call(node.func, node.args, others), node)
    declared = read_buffer_type(reader, node, what, implicit=False)
    kind = declared.type
    check_scope(reader, given, what, kind, data.scope if data.buffer is None else data.buffer.type.scope)
    if data.buffer is None:
        shape = kind.shape if (kind.dtype, product(kind.shape)) == (data.dtype, data.extent) else [data.extent]
        data.buffer = alloc(reader, node, BufferType(shape, data.dtype, scope=data.scope), name)
    place = offset if declared.lanes is None else reader.index(node, reader.apply(node, "Mul", offset, declared.lanes))
    seen = view(reader, node, data, kind, name, place)
    return replace(seen, lanes=declared.lanes)


def view(
    reader: TirExpressionReader, node: ast.AST, memory: Pointer, kind: BufferType, name: str = "", offset: Place = _ZERO
) -> Buffer:
    """Memory as a buffer of a type: the buffer that has it, if it is one of that type, else a view of that.

    The view begins `offset` elements of its own behind the memory.
    """
    buffer = memory.buffer
    if buffer is None:
        reader.fail(node, "memory without a shape is given one by T.decl_buffer")
    source, start = buffer.type, _sum(reader, node, _in_elements(reader, node, memory, kind), offset)
    is_first = isinstance(start, Dim) and start == _ZERO
    if is_first and (kind.shape, kind.dtype, kind.strides) == (source.shape, source.dtype, source.strides):
        return buffer
    is_row = (
        kind.rank == 1
        and kind.has_default_strides
        and kind.dtype == source.dtype
        and kind.shape[0] == product(source.shape)
    )
    if is_first and is_row:
        op: FlattenOp | ViewOp = reader.emit(node, lambda: FlattenOp(buffer.value))
    else:
        place = None if is_first else reader.index_value(node, start)
        seen = BufferType(kind.shape, kind.dtype, strides=kind.strides, scope=source.scope)
        _check_room(reader, node, seen, source, start, name or "the view", buffer.value.name_hint or "the buffer")
        op = reader.emit(node, lambda: ViewOp(buffer.value, seen, place))
    reader.emit(node, op.verify_)
    op.view.name_hint = as_name_hint(name)
    reader.block.add_op(op)
    return bind_buffer(reader, SSAValue.get(op.view, type=BufferType), name)


def _check_room(
    reader: TirExpressionReader, node: ast.AST, seen: BufferType, source: BufferType, start: Place, *names: str
) -> None:
    """Refuses a view that ends behind the memory, where that is known when the text is read."""
    if not isinstance(start, Dim):
        return
    needed, size = (start + seen.span) * byte_size(seen.dtype), source.span * byte_size(source.dtype)
    if Prover().less_equal(needed, size) is False:
        behind = f" from {start} on" if start.terms else ""
        elements = f"{seen.span} elements of {seen.dtype}{behind}"
        reader.fail(node, f"{names[0]} needs {elements}, and {names[1]} has {source.span} of {source.dtype}")


def _in_elements(reader: TirExpressionReader, node: ast.AST, memory: Pointer, kind: BufferType) -> Place:
    """Where memory begins, in elements of the type that it is seen as."""
    ratio, rest = divmod(byte_size(memory.dtype), byte_size(kind.dtype))
    if memory.is_whole:
        return _ZERO
    if rest:
        reader.fail(node, f"memory of {memory.dtype} is seen as {kind.dtype} from its first element only")
    return memory.start if ratio == 1 else reader.index(node, reader.apply(node, "Mul", memory.start, ratio))


def element_address(reader: TirExpressionReader, node: ast.AST, region: Region) -> Pointer:
    """The memory from an element on."""
    whole = pointer_to(region.buffer)
    return Pointer(whole.extent, whole.dtype, whole.scope, region.buffer, element_index(reader, node, region))


def element_index(reader: TirExpressionReader, node: ast.AST, region: Region) -> Place:
    """How many elements lie in front of the first one of a region."""
    if not region.buffer.type.has_default_strides:
        reader.fail(node, "expected a buffer without gaps; take the address of its data")
    return _place_of(reader, node, region)


def _place_of(reader: TirExpressionReader, node: ast.AST, region: Region) -> Place:
    """The sum of the indices of a region's first element, times the strides."""
    start: Place = _ZERO
    for axis, stride in zip(region.axes, region.buffer.type.strides, strict=True):
        start = _sum(reader, node, start, reader.index(node, reader.apply(node, "Mul", axis.lower, stride)))
    return start


def _sum(reader: TirExpressionReader, node: ast.AST, one: Place, other: Place) -> Place:
    if isinstance(one, Dim) and isinstance(other, Dim):
        return one + other
    return reader.emit(node, lambda: FUNCTIONS["Add"](one, other))


# Parts of buffers


def match_region(reader: TirExpressionReader, node: ast.Call, name: str, region: Region) -> Buffer:
    """`T.match_buffer(A[i:i + 4, j], (4,))`: a view of a part of a buffer."""
    given = Arguments(reader.source, node, "T.match_buffer", f"param shape dtype {LAYOUT}", RENAMED)
    source, axes = region.buffer.type, list(region.axes)
    extents = [_extent(reader, node, axis) for axis in axes]
    shape = _shape(reader, node, given.get("shape"), extents)
    kept = _kept(axes, extents, len(shape))
    if len(kept) != len(shape):
        ranges = sum(axis.upper is not None for axis in axes)
        reader.fail(node, f"expected {ranges} dimensions, one for each range, got {len(shape)}")
    for index, dim in zip(kept, shape, strict=True):
        extent = extents[index]
        if extent is not None and extent != dim:
            reader.fail(node, f"expected a view of extent {extent}, got {dim}")
    start = _sum(reader, node, region.buffer.start, _place_of(reader, node, region))
    _bind_layout(reader, given, [source.strides[axis] for axis in kept], start)
    parts = [_region_axis(reader, node, axis, is_range=index in kept) for index, axis in enumerate(axes)]
    kind = BufferType(shape, source.dtype, strides=[source.strides[index] for index in kept], scope=source.scope)
    op = reader.emit(node, lambda: MatchBufferOp(region.buffer.value, parts, kind))
    reader.emit(node, op.verify_)
    op.view.name_hint = as_name_hint(name)
    reader.block.add_op(op)
    part = bind_buffer(reader, SSAValue.get(op.view, type=BufferType), name)
    return replace(part, base=region.buffer, start=start)


def _shape(
    reader: TirExpressionReader, node: ast.AST, given: ast.expr | None, extents: Sequence[Dim | None]
) -> list[Dim]:
    """The shape of a view; that of the region, if none is given."""
    if given is not None:
        return read_dims(reader, given, implicit=False)
    known = [extent for extent in extents if extent is not None]
    if len(known) != len(extents):
        reader.fail(node, "T.match_buffer expected the argument shape, since the extents of the region are not known")
    return known


def _kept(axes: Sequence[Axis], extents: Sequence[Dim | None], rank: int) -> list[int]:
    """The dimensions of a region that a view of a rank has: the ranges, without or with those of one place."""
    ranges = [index for index, axis in enumerate(axes) if axis.upper is not None]
    if rank < len(ranges):
        return [index for index in ranges if extents[index] != constant(1)]
    last = list(range(len(axes) - rank, len(axes)))
    return last if len(ranges) < rank <= len(axes) and set(ranges) <= set(last) else ranges


def _extent(reader: TirExpressionReader, node: ast.AST, axis: Axis) -> Dim | None:
    upper, lower = axis.upper, axis.lower
    if upper is None or isinstance(lower, Vector):
        return constant(1)
    pair = reader.emit(node, lambda: promoted(upper, lower))
    if isinstance(pair[0], nodes.Size) and isinstance(pair[1], nodes.Size):
        return pair[0].dim - pair[1].dim
    known = known_difference(pair[0], pair[1])
    return None if known is None else constant(known)


def _bind_layout(reader: TirExpressionReader, given: Arguments, strides: Sequence[Dim], start: Place) -> None:
    """Gives the names that stand for strides and the offset of a view what they are."""
    strides_node, offset = given.get("strides"), given.get("elem_offset")
    places = list(strides_node.elts) if isinstance(strides_node, ast.List | ast.Tuple) else []
    for place, value in [*zip(places, strides, strict=False), *([] if offset is None else [(offset, start)])]:
        name = place.value if isinstance(place, ast.Constant) else place.id if isinstance(place, ast.Name) else None
        if isinstance(name, str) and (name not in reader.scope or isinstance(reader.scope.find(name), Unbound)):
            reader.scope.bind(name, value)


def _region_axis(reader: TirExpressionReader, node: ast.AST, axis: Axis, *, is_range: bool) -> RegionAxis:
    lower = reader.index_value(node, axis.lower)
    if not is_range:
        return RegionAxis(lower)
    upper = reader.apply(node, "Add", axis.lower, 1) if axis.upper is None else axis.upper
    return RegionAxis(lower, reader.index_value(node, upper))
