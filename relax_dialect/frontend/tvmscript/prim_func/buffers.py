"""Buffers of PrimFuncs: annotations, allocation, `T.match_buffer`, memory at addresses, and views."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from relax_dialect.frontend.tvmscript.evaluator import items_of
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import (
    FUNCTIONS,
    converted,
    element_name,
    promoted,
    split_dtype,
)
from relax_dialect.frontend.tvmscript.prim_func.scalars import (
    Axis,
    Buffer,
    Declared,
    Index,
    Pointer,
    Region,
    ScalarReader,
    Vector,
    known_difference,
    pointer_to,
)
from relax_dialect.frontend.tvmscript.scopes import Unbound, describe, is_dtype_name
from relax_dialect.frontend.tvmscript.source import Arguments, is_none
from relax_dialect.frontend.tvmscript.static import StaticReader
from tir_dialect.dims import Dim, Prover, constant, product
from tir_dialect.dtypes import byte_size, parse_dtype
from tir_dialect.ops.blocks import FlattenOp, MatchBufferOp, ViewOp
from tir_dialect.ops.memory import AllocBufferOp, RegionAxis
from tir_dialect.ops.raw_memory import AddressOfOp, MemoryAtOp, TextAddressOp
from tir_dialect.te import nodes
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype
from tir_dialect.types import BufferType, as_name_hint, host_scope

LAYOUT = "data strides elem_offset scope align offset_factor buffer_type axis_separators layout annotations"

DECLARATIONS = frozenset({"decl_buffer", "buffer_decl", "Buffer"})
"""What gives memory that is there a shape."""

RENAMED = {"offset": "elem_offset", "alignment": "align"}


def read_buffer_type(
    reader: StaticReader, node: ast.Call, what: str, first: str = "", *, implicit: bool, is_parameter: bool = False
) -> Declared:
    """As `_buffer_type`, with what a buffer type cannot be as an error at the call."""
    try:
        return _buffer_type(reader, node, what, first, implicit=implicit, is_parameter=is_parameter)
    except VerifyException as error:
        reader.fail(node, str(error))


def _buffer_type(
    reader: StaticReader, node: ast.Call, what: str, first: str = "", *, implicit: bool, is_parameter: bool = False
) -> Declared:
    """The type that `(shape, dtype, strides=..., elem_offset=..., scope=..., align=...)` describes.

    An offset of which a parameter says nothing but a name is 0: what is passed starts with its first element.
    """
    given = reader.arguments(node, what, f"{first} shape dtype {LAYOUT}", RENAMED)
    dtype_node, shape_node = given.get("dtype"), given.require("shape")
    if isinstance(shape_node, ast.Constant) and isinstance(shape_node.value, str) and dtype_node is None:
        reader.fail(shape_node, f"{what} expected a shape such as (n, 4)")
    dtype, lanes = (f32, None) if dtype_node is None or is_none(dtype_node) else element_dtype(reader, dtype_node)
    kind = given.get("buffer_type")
    if kind is not None and reader.value(kind) not in ("", "default", None):
        reader.fail(kind, "buffers that broadcast are not taken; give each shape its own PrimFunc")
    found = _with_layout(reader, given, dtype, lanes, implicit=implicit)
    start = found.offset.as_symbol if is_parameter else None
    if start is not None:
        found = BufferType(found.shape, dtype, strides=found.strides, scope=found.scope, align=found.align)
    return Declared(found, lanes, start or "")


def _with_layout(
    reader: StaticReader, given: Arguments, dtype: Attribute, lanes: int | None, *, implicit: bool
) -> BufferType:
    """The type of a buffer with the layout that the arguments give; vectors lie along a last dimension."""
    shape = read_dims(reader, given.require("shape"), implicit=implicit)
    strides_node, offset_node = given.get("strides"), given.get("elem_offset")
    strides = None
    if strides_node is not None and not is_none(strides_node):
        strides = read_dims(reader, strides_node, implicit=implicit)
    offset = constant(0) if offset_node is None or is_none(offset_node) else reader.dim(offset_node, implicit=True)
    align_node = given.get("align")
    align = None if align_node is None else reader.integer(align_node)
    if align is not None and align < byte_size(dtype):
        align = None
    if lanes is not None:
        shape = [*shape, constant(lanes)]
        offset = offset * lanes
        strides = None if strides is None else [*(stride * lanes for stride in strides), constant(1)]
    scope = _scope(reader, given.get("scope"))
    try:
        return BufferType(shape, dtype, strides=strides or None, offset=offset, scope=scope, align=align)
    except ValueError as error:
        reader.fail(given.node, str(error))


def read_dims(reader: StaticReader, node: ast.expr, *, implicit: bool) -> list[Dim]:
    """A shape: several dimensions, or one."""
    nodes_of = node.elts if isinstance(node, ast.Tuple | ast.List) else None
    if nodes_of is not None and not any(isinstance(each, ast.Starred) for each in nodes_of):
        return [reader.dim(each, implicit=implicit) for each in nodes_of]
    value = reader.value(node)
    if (items := items_of(value)) is not None:
        return [reader.to_dim(node, each) for each in items]
    return [reader.to_dim(node, value)]


def element_dtype(reader: StaticReader, node: ast.expr) -> tuple[Attribute, int | None]:
    """The dtype of an element, or of the lanes of one, and how many there are, as of `"float32x4"`."""
    name = reader.aliases.name_in("tir", node)
    value = reader.value(node) if name is None and not isinstance(node, ast.Name) else name
    bare, lanes = split_dtype(value) if isinstance(value, str) else ("", None)
    if lanes is None:
        return reader.dtype(node), None
    return reader.dtype(ast.copy_location(ast.Constant(bare), node)), lanes


def _scope(reader: StaticReader, node: ast.expr | None) -> str:
    if node is None or is_none(node):
        return "global"
    scope = reader.text(node)
    found = host_scope(scope)
    if found is None:
        reader.fail(node, f'the scope "{scope}" is not taken; there is "global", and "local" for memory of one place')
    return found


def check_scope(reader: StaticReader, given: Arguments, what: str, kind: BufferType, scope: str) -> None:
    """Refuses a scope that is said about memory that has another one already."""
    node = given.get("scope")
    if node is not None and not is_none(node) and kind.scope != scope:
        reader.fail(node, f'{what} expected the scope of its memory, "{scope}", got "{kind.scope}"; leave it out')


def read_annotation(reader: StaticReader, node: ast.expr, *, implicit: bool = False) -> Declared | None:
    """`T.Buffer((n, 4), "float32")` or `T.Buffer[(n, 4), "float32"]`; `None` for another annotation."""
    try:
        if isinstance(node, ast.Call) and reader.aliases.name_in("tir", node.func) in ("Buffer", "buffer"):
            return read_buffer_type(reader, node, "T.Buffer", implicit=implicit, is_parameter=True)
        if isinstance(node, ast.Subscript) and reader.aliases.name_in("tir", node.value) == "Buffer":
            parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
            last = parts[-1]
            has_dtype = isinstance(last, ast.Constant) and isinstance(last.value, str)
            if has_dtype and len(parts) == 2:
                return Declared(BufferType(read_dims(reader, parts[0], implicit=True), reader.dtype(last)))
            shape = parts[0] if len(parts) == 1 else ast.copy_location(ast.Tuple(parts, ast.Load()), node)
            return Declared(BufferType(read_dims(reader, shape, implicit=True), f32))
        return None
    except VerifyException as error:
        reader.fail(node, str(error))


# Inside of functions


def allocate(reader: ScalarReader, node: ast.Call, name: str, what: str) -> Buffer:
    """A new buffer."""
    kind = read_buffer_type(reader, node, what, implicit=False)
    return alloc(reader, node, kind.type, name, kind.lanes)


def alloc(reader: ScalarReader, node: ast.AST, kind: BufferType, name: str, lanes: int | None = None) -> Buffer:
    """Memory of a type, named as in the text."""
    op = reader.emit(node, lambda: AllocBufferOp(kind))
    op.buffer.name_hint = as_name_hint(name)
    reader.block.add_op(op)
    return bind_buffer(reader, SSAValue.get(op.buffer, type=BufferType), name, lanes)


def bind_buffer(reader: ScalarReader, value: SSAValue[BufferType], name: str, lanes: int | None = None) -> Buffer:
    """A buffer that expressions can use."""
    buffer = Buffer.of(value, name, lanes)
    reader.names.buffers[buffer.tensor] = value
    return buffer


def allocate_pointer(reader: ScalarReader, node: ast.Call) -> Pointer:
    """`T.allocate([n], "float32", "global")`: memory that `T.decl_buffer` gives a shape."""
    given = reader.arguments(node, "T.allocate", "extents dtype scope condition annotations", {"shape": "extents"})
    dtype, lanes = element_dtype(reader, given.require("dtype"))
    extents = read_dims(reader, given.require("extents"), implicit=False)
    return Pointer(product([*extents, constant(lanes or 1)]), dtype, _scope(reader, given.get("scope")))


ADDRESS = to_dtype("int64")

UNKNOWN_EXTENT = 1 << 40
"""The extent of memory whose length the text does not know before the program runs."""


def names_handle(reader: StaticReader, node: ast.expr) -> bool:
    """Whether a dtype is that of a pointer: `"handle"`, `T.handle`, `T.handle("float32", "global").ty`."""
    if isinstance(node, ast.Constant):
        return node.value == "handle"
    if isinstance(node, ast.Attribute) and node.attr == "ty":
        node = node.value
    head = node.func if isinstance(node, ast.Call) else node
    return reader.aliases.name_in("tir", head) in ("handle", "Ptr")


def to_address(reader: ScalarReader, node: ast.AST, value: object) -> Scalar:
    """A pointer as an address: an address itself, memory, or a text; 0 is null."""
    if isinstance(value, str):
        return reader.variable(reader.insert(TextAddressOp(value)), ADDRESS, "text")
    if isinstance(value, Buffer):
        return _element(reader, node, value, constant(0))
    if isinstance(value, Pointer):
        if value.buffer is None:
            value.buffer = alloc(reader, node, BufferType([value.extent], value.dtype, scope=value.scope), "memory")
        if value.is_whole and isinstance(at := value.buffer.value.owner, MemoryAtOp):
            return reader.variable(at.address, ADDRESS, "address")
        start = _scaled(reader, node, value.start, byte_size(value.dtype))
        base = _element(reader, node, value.buffer, constant(0))
        return base if value.is_whole else moved(reader, node, base, start)
    if isinstance(value, Scalar | int) and not isinstance(value, bool):
        return reader.emit(node, lambda: converted(value, ADDRESS))
    reader.fail(node, f"expected a pointer, got {describe(value)}")


def _element(reader: ScalarReader, node: ast.AST, buffer: Buffer, index: Dim) -> Scalar:
    indices = [reader.dim_value(node, index) for _ in range(buffer.type.rank)]
    return reader.variable(reader.insert(AddressOfOp(buffer.value, indices)), ADDRESS, "address")


def _scaled(reader: ScalarReader, node: ast.AST, index: Index | int, size: int) -> Scalar:
    return reader.emit(node, lambda: converted(reader.scalar_operand(node, index), ADDRESS)) * size


def moved(reader: ScalarReader, node: ast.AST, address: Scalar, count: object) -> Scalar:
    """An address so many bytes further."""
    operand = reader.scalar_operand(node, count)
    return reader.emit(node, lambda: address + converted(operand, ADDRESS))


def memory_at(reader: ScalarReader, node: ast.AST, address: Scalar, kind: BufferType, name: str) -> Buffer:
    """The memory at an address as a buffer."""
    (base,) = reader.values(node, address)
    op = reader.emit(node, lambda: MemoryAtOp(base, kind))
    op.view.name_hint = as_name_hint(name)
    reader.block.add_op(op)
    return bind_buffer(reader, SSAValue.get(op.view, type=BufferType), name)


# Buffers over addresses


def declare_at(reader: ScalarReader, node: ast.Call, name: str, what: str, address: Scalar) -> Buffer:
    """`T.decl_buffer(shape, dtype, data=address)`; the shape may be of numbers that the program computes."""
    given = reader.arguments(node, what, f"shape dtype {LAYOUT}", RENAMED)
    dtype_node, offset_node = given.get("dtype"), given.get("elem_offset")
    unsaid = dtype_node is None or is_none(dtype_node)
    dtype, lanes = (f32, None) if unsaid or dtype_node is None else element_dtype(reader, dtype_node)
    if offset_node is not None and not is_none(offset_node):
        address = moved(
            reader,
            node,
            address,
            _scaled(
                reader, node, reader.index(offset_node, reader.value(offset_node)), byte_size(dtype) * (lanes or 1)
            ),
        )
        others = [keyword for keyword in node.keywords if keyword.arg not in ("elem_offset", "offset")]
        node = ast.copy_location(ast.Call(node.func, node.args, others), node)
    shape = _indices(reader, given.require("shape"))
    strides_node = given.get("strides")
    strides = None if strides_node is None or is_none(strides_node) else _indices(reader, strides_node)
    if all(isinstance(each, Dim) for each in (*shape, *(strides or ()))):
        declared = read_buffer_type(reader, node, what, implicit=False)
        check_scope(reader, given, what, declared.type, "global")
        found = memory_at(reader, node, address, declared.type, name)
        return Buffer(found.value, found.tensor, declared.lanes)
    if lanes is not None:
        reader.fail(node, "expected a shape of constants for a buffer of vectors")
    flat = memory_at(reader, node, address, BufferType([UNKNOWN_EXTENT], dtype), name)
    kept = tuple(_once(reader, node, each) for each in shape)
    return Buffer(flat.value, flat.tensor, None, kept, _strides(reader, node, kept, strides))


def has_static_shape(reader: ScalarReader, node: ast.Call) -> bool:
    """Whether the shape of a declaration has no number that the program computes."""
    shape = reader.arguments(node, "T.Buffer", f"shape dtype {LAYOUT}", RENAMED).get("shape")
    if shape is None:
        return True
    value = reader.value(shape)
    items = items_of(value)
    return not any(isinstance(each, Scalar) for each in ((value,) if items is None else items))


def _indices(reader: ScalarReader, node: ast.expr) -> list[Index]:
    value = reader.value(node)
    items = items_of(value)
    return [reader.index(node, each) for each in ((value,) if items is None else items)]


def _once(reader: ScalarReader, node: ast.AST, index: Index) -> Index:
    return index if isinstance(index, Dim) else reader.variable(reader.values(node, index)[0], index.dtype)


def _strides(
    reader: ScalarReader, node: ast.AST, shape: Sequence[Index], given: Sequence[Index] | None
) -> tuple[Index, ...]:
    """The strides of a buffer, in elements: row-major unless they are given."""
    if given:
        return tuple(_once(reader, node, each) for each in given)
    strides: list[Index] = [constant(1)]
    for extent in reversed(shape[1:]):
        strides.insert(0, _once(reader, node, reader.index(node, reader.apply(node, "Mul", strides[0], extent))))
    return tuple(strides)


_ZERO = constant(0)

_OFFSETS = ("elem_offset", "offset")


def declare(reader: ScalarReader, node: ast.Call, name: str, what: str) -> Buffer | Unbound:
    """`T.decl_buffer(shape, dtype, data=pointer)`: a shape for memory that is there, else new memory."""
    given = reader.arguments(node, what, f"shape dtype {LAYOUT}", RENAMED)
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
    offset_node, offset = given.get("elem_offset"), _ZERO
    if offset_node is not None and not is_none(offset_node):
        offset = reader.index(offset_node, reader.value(offset_node))
        others = [keyword for keyword in node.keywords if keyword.arg not in _OFFSETS]
        node = ast.copy_location(ast.Call(node.func, node.args, others), node)
    declared = read_buffer_type(reader, node, what, implicit=False)
    kind = declared.type
    check_scope(reader, given, what, kind, data.scope if data.buffer is None else data.buffer.type.scope)
    if data.buffer is None:
        shape = kind.shape if (kind.dtype, product(kind.shape)) == (data.dtype, data.extent) else [data.extent]
        data.buffer = alloc(reader, node, BufferType(shape, data.dtype, scope=data.scope), name)
    offset = offset if declared.lanes is None else reader.index(node, reader.apply(node, "Mul", offset, declared.lanes))
    seen = view(reader, node, data, kind, name, offset)
    return replace(seen, lanes=declared.lanes)


def view(
    reader: ScalarReader, node: ast.AST, memory: Pointer, kind: BufferType, name: str = "", offset: Index = _ZERO
) -> Buffer:
    """Memory as a buffer of a type: the buffer that has it, if it is one of that type, else a view of that.

    The view begins `offset` elements of its own after the memory.
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
        index = None if is_first else reader.index_value(node, start)
        seen = BufferType(kind.shape, kind.dtype, strides=kind.strides, scope=source.scope)
        _check_room(reader, node, seen, source, start, name or "the view", buffer.value.name_hint or "the buffer")
        op = reader.emit(node, lambda: ViewOp(buffer.value, seen, index))
    reader.emit(node, op.verify_)
    op.view.name_hint = as_name_hint(name)
    reader.block.add_op(op)
    return bind_buffer(reader, SSAValue.get(op.view, type=BufferType), name)


def _check_room(
    reader: ScalarReader, node: ast.AST, seen: BufferType, source: BufferType, start: Index, *names: str
) -> None:
    """Refuses a view that ends after the memory, where that is known when the text is read."""
    if not isinstance(start, Dim):
        return
    needed, size = (start + seen.span) * byte_size(seen.dtype), source.span * byte_size(source.dtype)
    if Prover().less_equal(needed, size) is False:
        after = f" from {start} on" if start.terms else ""
        elements = f"{seen.span} elements of {seen.dtype}{after}"
        reader.fail(node, f"{names[0]} needs {elements}, and {names[1]} has {source.span} of {source.dtype}")


def _in_elements(reader: ScalarReader, node: ast.AST, memory: Pointer, kind: BufferType) -> Index:
    """Where memory begins, in elements of the type that it is seen as."""
    ratio, rest = divmod(byte_size(memory.dtype), byte_size(kind.dtype))
    if memory.is_whole:
        return _ZERO
    if rest:
        reader.fail(node, f"memory of {memory.dtype} is seen as {kind.dtype} from its first element only")
    return memory.start if ratio == 1 else reader.index(node, reader.apply(node, "Mul", memory.start, ratio))


def element_address(reader: ScalarReader, node: ast.AST, region: Region) -> Pointer:
    """The memory from an element on."""
    whole = pointer_to(region.buffer)
    return Pointer(whole.extent, whole.dtype, whole.scope, region.buffer, element_index(reader, node, region))


def element_index(reader: ScalarReader, node: ast.AST, region: Region) -> Index:
    """How many elements lie before the first one of a region."""
    if not region.buffer.type.has_default_strides:
        reader.fail(node, "expected a buffer without gaps; take the address of its data")
    return _linear_index(reader, node, region)


def _linear_index(reader: ScalarReader, node: ast.AST, region: Region) -> Index:
    """The sum of the indices of a region's first element, times the strides."""
    start: Index = _ZERO
    for axis, stride in zip(region.axes, region.buffer.type.strides, strict=True):
        start = _sum(reader, node, start, reader.index(node, reader.apply(node, "Mul", axis.lower, stride)))
    return start


def _sum(reader: ScalarReader, node: ast.AST, one: Index, other: Index) -> Index:
    if isinstance(one, Dim) and isinstance(other, Dim):
        return one + other
    return reader.emit(node, lambda: FUNCTIONS["Add"](one, other))


# Parts of buffers


def match_region(reader: ScalarReader, node: ast.Call, name: str, region: Region) -> Buffer:
    """`T.match_buffer(A[i:i + 4, j], (4,))`: a view of a part of a buffer."""
    given = reader.arguments(node, "T.match_buffer", f"param shape dtype {LAYOUT}", RENAMED)
    source, axes = region.buffer.type, list(region.axes)
    extents = [_extent(reader, node, axis) for axis in axes]
    shape = _shape(reader, node, given.get("shape"), extents)
    # The dimensions of a region that a view of a rank has: the ranges, without or with those of one position.
    rank = len(shape)
    ranges = [index for index, axis in enumerate(axes) if axis.upper is not None]
    if rank < len(ranges):
        kept = [index for index in ranges if extents[index] != constant(1)]
    else:
        last = list(range(len(axes) - rank, len(axes)))
        kept = last if len(ranges) < rank <= len(axes) and set(ranges) <= set(last) else ranges
    if len(kept) != len(shape):
        ranges = sum(axis.upper is not None for axis in axes)
        reader.fail(node, f"expected {ranges} dimensions, one for each range, got {len(shape)}")
    for index, dim in zip(kept, shape, strict=True):
        extent = extents[index]
        if extent is not None and extent != dim:
            reader.fail(node, f"expected a view of extent {extent}, got {dim}")
    start = _sum(reader, node, region.buffer.start, _linear_index(reader, node, region))
    _bind_layout(reader, given, [source.strides[axis] for axis in kept], start)
    parts = [_region_axis(reader, node, axis, is_range=index in kept) for index, axis in enumerate(axes)]
    kind = BufferType(shape, source.dtype, strides=[source.strides[index] for index in kept], scope=source.scope)
    op = reader.emit(node, lambda: MatchBufferOp(region.buffer.value, parts, kind))
    reader.emit(node, op.verify_)
    op.view.name_hint = as_name_hint(name)
    reader.block.add_op(op)
    part = bind_buffer(reader, SSAValue.get(op.view, type=BufferType), name)
    return replace(part, base=region.buffer, start=start)


def _shape(reader: ScalarReader, node: ast.AST, given: ast.expr | None, extents: Sequence[Dim | None]) -> list[Dim]:
    """The shape of a view; that of the region, if none is given."""
    if given is not None:
        return read_dims(reader, given, implicit=False)
    known = [extent for extent in extents if extent is not None]
    if len(known) != len(extents):
        reader.fail(node, "T.match_buffer expected the argument shape, since the extents of the region are not known")
    return known


def _extent(reader: ScalarReader, node: ast.AST, axis: Axis) -> Dim | None:
    upper, lower = axis.upper, axis.lower
    if upper is None or isinstance(lower, Vector):
        return constant(1)
    pair = reader.emit(node, lambda: promoted(upper, lower))
    if isinstance(pair[0], nodes.Size) and isinstance(pair[1], nodes.Size):
        return pair[0].dim - pair[1].dim
    known = known_difference(pair[0], pair[1])
    return None if known is None else constant(known)


def _bind_layout(reader: ScalarReader, given: Arguments, strides: Sequence[Dim], start: Index) -> None:
    """Gives the names that stand for strides and the offset of a view what they are."""
    strides_node, offset = given.get("strides"), given.get("elem_offset")
    named = list(strides_node.elts) if isinstance(strides_node, ast.List | ast.Tuple) else []
    for each, value in [*zip(named, strides, strict=False), *([] if offset is None else [(offset, start)])]:
        name = each.value if isinstance(each, ast.Constant) else each.id if isinstance(each, ast.Name) else None
        if isinstance(name, str) and (name not in reader.scope or isinstance(reader.scope.find(name), Unbound)):
            reader.scope.bind(name, value)


def _region_axis(reader: ScalarReader, node: ast.AST, axis: Axis, *, is_range: bool) -> RegionAxis:
    lower = reader.index_value(node, axis.lower)
    if not is_range:
        return RegionAxis(lower)
    upper = reader.apply(node, "Add", axis.lower, 1) if axis.upper is None else axis.upper
    return RegionAxis(lower, reader.index_value(node, upper))


def read_scalar_type(reader: StaticReader, node: ast.expr | None) -> Attribute | None:
    """The dtype that an annotation such as `T.int32` or `R.Prim("float16")` names; `None` for another one."""
    if isinstance(node, ast.Call) and reader.aliases.name_in("relax", node.func) == "Prim":
        return reader.dtype(reader.arguments(node, "R.Prim", "dtype").require("dtype"))
    target = node.func if isinstance(node, ast.Call) and not node.args else node
    name = None if target is None else reader.aliases.name_in("tir", target)
    name = None if name is None else element_name(name)
    return parse_dtype(name) if name is not None and is_dtype_name(name) else None
