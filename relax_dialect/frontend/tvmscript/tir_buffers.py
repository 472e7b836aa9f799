"""Buffers of PrimFuncs: annotations, `T.match_buffer`, allocation, views of regions."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from relax_dialect.frontend.tvmscript.arguments import Arguments
from relax_dialect.frontend.tvmscript.evaluator import items_of
from relax_dialect.frontend.tvmscript.static import StaticReader
from relax_dialect.frontend.tvmscript.tir_expressions import TirExpressionReader
from relax_dialect.frontend.tvmscript.tir_linear import known_difference
from relax_dialect.frontend.tvmscript.tir_promotion import promoted
from relax_dialect.frontend.tvmscript.tir_values import Axis, Buffer, Pointer, Region, Vector
from tir_dialect.dims import Dim, constant, product
from tir_dialect.dtypes import byte_size, lookup
from tir_dialect.name_hints import as_name_hint
from tir_dialect.ops.accesses import RegionAxis
from tir_dialect.ops.flatten import FlattenOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.ops.regions import MatchBufferOp
from tir_dialect.te import nodes
from tir_dialect.types import BufferType

LAYOUT = "data strides elem_offset scope align offset_factor buffer_type axis_separators layout annotations"
DECLARATIONS = frozenset({"decl_buffer", "buffer_decl", "Buffer"})
"""What gives memory that is there a shape."""

_RENAMED = {"offset": "elem_offset", "alignment": "align"}
_HOST_SCOPES = ("", "global", "local")


def read_buffer_type(
    reader: StaticReader, node: ast.Call, what: str, first: str = "", *, implicit: bool, is_parameter: bool = False
) -> BufferType:
    """As `_buffer_type`, with what a buffer type cannot be as an error at the place."""
    try:
        return _buffer_type(reader, node, what, first, implicit=implicit, is_parameter=is_parameter)
    except VerifyException as error:
        reader.fail(node, str(error))


def _buffer_type(
    reader: StaticReader, node: ast.Call, what: str, first: str = "", *, implicit: bool, is_parameter: bool = False
) -> BufferType:
    """The type that `(shape, dtype, strides=..., elem_offset=..., scope=..., align=...)` describes.

    An offset of which a parameter says nothing but a name is 0: what is passed starts with its first element.
    """
    given = Arguments(reader.source, node, what, f"{first} shape dtype {LAYOUT}", _RENAMED)
    dtype_node, shape_node = given.get("dtype"), given.require("shape")
    if isinstance(shape_node, ast.Constant) and isinstance(shape_node.value, str) and dtype_node is None:
        reader.fail(shape_node, f"{what} expected a shape such as (n, 4)")
    dtype = f32 if dtype_node is None or _is_none(dtype_node) else reader.dtype(dtype_node)
    kind = given.get("buffer_type")
    if kind is not None and reader.value(kind) not in ("", "default", None):
        reader.fail(kind, "buffers that broadcast are not taken; give each shape its own PrimFunc")
    found = reader_buffer(reader, given, shape_node, dtype, implicit=implicit)
    if is_parameter and found.offset.as_symbol is not None:
        return BufferType(found.shape, dtype, strides=found.strides, scope=found.scope, align=found.align)
    return found


def reader_buffer(
    reader: StaticReader, given: Arguments, shape_node: ast.expr, dtype: Attribute, *, implicit: bool
) -> BufferType:
    """The type of a buffer with the layout that the arguments give."""
    shape = _dims(reader, shape_node, implicit=implicit)
    strides_node, offset_node = given.get("strides"), given.get("elem_offset")
    strides = None if strides_node is None or _is_none(strides_node) else _dims(reader, strides_node, implicit=True)
    offset = constant(0) if offset_node is None or _is_none(offset_node) else reader.dim(offset_node, implicit=True)
    align_node = given.get("align")
    align = None if align_node is None else reader.integer(align_node)
    if align is not None and align < byte_size(dtype):
        align = None
    try:
        return BufferType(
            shape, dtype, strides=strides or None, offset=offset, scope=_scope(reader, given.get("scope")), align=align
        )
    except ValueError as error:
        reader.fail(given.node, str(error))


def _dims(reader: StaticReader, node: ast.expr, *, implicit: bool) -> list[Dim]:
    nodes_of = node.elts if isinstance(node, ast.Tuple | ast.List) else None
    if nodes_of is not None:
        return [reader.dim(each, implicit=implicit) for each in nodes_of]
    value = reader.value(node)
    if (items := items_of(value)) is not None:
        return [reader.to_dim(node, each) for each in items]
    return [reader.to_dim(node, value)]


def _scope(reader: StaticReader, node: ast.expr | None) -> str:
    if node is None or _is_none(node):
        return "global"
    scope = reader.text(node)
    if scope not in _HOST_SCOPES:
        reader.fail(node, f'the scope "{scope}" is not taken; there is "global", and "local" for memory of one place')
    return scope or "global"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def read_annotation(reader: StaticReader, node: ast.expr, *, implicit: bool = False) -> BufferType | None:
    """`T.Buffer((n, 4), "float32")` or `T.Buffer[(n, 4), "float32"]`; `None` for another annotation."""
    try:
        return _annotation(reader, node, implicit=implicit)
    except VerifyException as error:
        reader.fail(node, str(error))


def _annotation(reader: StaticReader, node: ast.expr, *, implicit: bool) -> BufferType | None:
    if isinstance(node, ast.Call) and reader.aliases.name_in("tir", node.func) in ("Buffer", "buffer"):
        return read_buffer_type(reader, node, "T.Buffer", implicit=implicit, is_parameter=True)
    if isinstance(node, ast.Subscript) and reader.aliases.name_in("tir", node.value) == "Buffer":
        parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        last = parts[-1]
        has_dtype = isinstance(last, ast.Constant) and isinstance(last.value, str)
        if has_dtype and len(parts) == 2:
            return BufferType(_dims(reader, parts[0], implicit=True), reader.dtype(last))
        shape = parts[0] if len(parts) == 1 else ast.copy_location(ast.Tuple(parts, ast.Load()), node)
        return BufferType(_dims(reader, shape, implicit=True), f32)
    return None


# Inside of functions


def allocate(reader: TirExpressionReader, node: ast.Call, name: str, what: str) -> Buffer:
    """A new buffer."""
    kind = read_buffer_type(reader, node, what, implicit=False)
    return alloc(reader, node, kind, name)


def alloc(reader: TirExpressionReader, node: ast.AST, kind: BufferType, name: str) -> Buffer:
    """Memory of a type, named as in the text."""
    op = reader.emit(node, lambda: AllocBufferOp(kind))
    op.buffer.name_hint = as_name_hint(name)
    reader.block.add_op(op)
    return bind_buffer(reader, SSAValue.get(op.buffer, type=BufferType), name)


def bind_buffer(reader: TirExpressionReader, value: SSAValue[BufferType], name: str) -> Buffer:
    """A buffer that expressions can use."""
    buffer = Buffer.of(value, name)
    reader.names.buffers[buffer.tensor] = value
    return buffer


def allocate_pointer(reader: TirExpressionReader, node: ast.Call) -> Pointer:
    """`T.allocate([n], "float32", "global")`: memory that `T.decl_buffer` gives a shape."""
    given = Arguments(
        reader.source, node, "T.allocate", "extents dtype scope condition annotations", {"shape": "extents"}
    )
    dtype = reader.dtype(given.require("dtype"))
    extents = _dims(reader, given.require("extents"), implicit=False)
    return Pointer(product(extents), lookup(dtype).type, _scope(reader, given.get("scope")))


def declare(reader: TirExpressionReader, node: ast.Call, name: str, what: str) -> Buffer:
    """`T.decl_buffer(shape, dtype, data=pointer)`: a shape for memory that is there, else new memory."""
    given = Arguments(reader.source, node, what, f"shape dtype {LAYOUT}", _RENAMED)
    data_node = given.get("data")
    kind = read_buffer_type(reader, node, what, implicit=False)
    if data_node is None or _is_none(data_node):
        return alloc(reader, node, kind, name)
    data = reader.value(data_node)
    if not isinstance(data, Pointer):
        reader.fail(data_node, "expected the memory of T.allocate, or of a buffer, as A.data")
    if data.buffer is None:
        data.buffer = alloc(reader, node, BufferType(kind.shape, kind.dtype, scope=data.scope), name)
    return _reshaped(reader, node, data.buffer, kind, name)


def _reshaped(reader: TirExpressionReader, node: ast.Call, buffer: Buffer, kind: BufferType, name: str) -> Buffer:
    """The same memory as a buffer of another shape, if there is a view for that."""
    source = buffer.type
    if kind.dtype != source.dtype:
        reader.fail(node, f"memory of {source.dtype} is not seen as {kind.dtype}; use T.reinterpret on its elements")
    if kind.shape == source.shape and kind.strides == source.strides:
        return buffer
    if kind.rank == 1 and kind.shape[0] == product(source.shape):
        op = reader.emit(node, lambda: FlattenOp(buffer.value))
        reader.emit(node, op.verify_)
        reader.block.add_op(op)
        return bind_buffer(reader, SSAValue.get(op.view, type=BufferType), name)
    shape = ", ".join(map(str, source.shape))
    reader.fail(node, f"memory of shape [{shape}] is seen in this shape, or as one row of all elements")


def match_region(reader: TirExpressionReader, node: ast.Call, name: str, region: Region) -> Buffer:
    """`T.match_buffer(A[i:i + 4, j], (4,))`: a view of a part of a buffer."""
    given = Arguments(reader.source, node, "T.match_buffer", f"param shape dtype {LAYOUT}", _RENAMED)
    source = region.buffer.type
    ranges = [index for index, axis in enumerate(region.axes) if axis.upper is not None]
    extents = [_extent(reader, node, region.axes[index]) for index in ranges]
    shape = _dims(reader, given.require("shape"), implicit=False)
    kept = [(index, extent) for index, extent in zip(ranges, extents, strict=True)]
    if len(shape) < len(kept):
        kept = [(index, extent) for index, extent in kept if extent != constant(1)]
    if len(shape) != len(kept):
        reader.fail(node, f"expected {len(ranges)} dimensions, one for each range, got {len(shape)}")
    for (_, extent), dim in zip(kept, shape, strict=True):
        if extent is not None and extent != dim:
            reader.fail(node, f"expected a view of extent {extent}, got {dim}")
    numbers = [index for index, _ in kept]
    _bind_layout(reader, given, source, numbers)
    axes = [_region_axis(reader, node, axis, is_range=index in numbers) for index, axis in enumerate(region.axes)]
    kind = BufferType(shape, source.dtype, strides=[source.strides[index] for index in numbers], scope=source.scope)
    op = reader.emit(node, lambda: MatchBufferOp(region.buffer.value, axes, kind))
    reader.emit(node, op.verify_)
    op.view.name_hint = as_name_hint(name)
    reader.block.add_op(op)
    return bind_buffer(reader, SSAValue.get(op.view, type=BufferType), name)


def _extent(reader: TirExpressionReader, node: ast.AST, axis: Axis) -> Dim | None:
    upper, lower = axis.upper, axis.lower
    if upper is None or isinstance(lower, Vector):
        return constant(1)
    pair = reader.emit(node, lambda: promoted(upper, lower))
    if isinstance(pair[0], nodes.Size) and isinstance(pair[1], nodes.Size):
        return pair[0].dim - pair[1].dim
    known = known_difference(pair[0], pair[1])
    return None if known is None else constant(known)


def _bind_layout(reader: TirExpressionReader, given: Arguments, source: BufferType, axes: Sequence[int]) -> None:
    """Names for strides of a view: they are those of the buffer."""
    strides = given.get("strides")
    if isinstance(strides, ast.List | ast.Tuple):
        for place, axis in zip(strides.elts, axes, strict=False):
            name = place.value if isinstance(place, ast.Constant) else place.id if isinstance(place, ast.Name) else None
            if isinstance(name, str) and name not in reader.scope:
                reader.scope.bind(name, source.strides[axis])


def _region_axis(reader: TirExpressionReader, node: ast.AST, axis: Axis, *, is_range: bool) -> RegionAxis:
    lower = reader.index_value(node, axis.lower)
    if axis.upper is None or not is_range:
        return RegionAxis(lower)
    return RegionAxis(lower, reader.index_value(node, axis.upper))
