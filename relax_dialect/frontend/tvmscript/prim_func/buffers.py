"""Buffers of PrimFuncs: annotations, `T.match_buffer`, allocation, views of regions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from relax_dialect.frontend.tvmscript.prim_func.dtypes import split_dtype
from relax_dialect.frontend.tvmscript.prim_func.values import Buffer, Declared, Pointer
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.frontend.tvmscript.text.static import StaticReader
from tir_dialect.dims import Dim, constant, product
from tir_dialect.dtypes import byte_size
from tir_dialect.name_hints import as_name_hint
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.types import BufferType, host_scope

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader

LAYOUT = "data strides elem_offset scope align offset_factor buffer_type axis_separators layout annotations"
DECLARATIONS = frozenset({"decl_buffer", "buffer_decl", "Buffer"})
"""What gives memory that is there a shape."""

RENAMED = {"offset": "elem_offset", "alignment": "align"}


def read_buffer_type(
    reader: StaticReader, node: ast.Call, what: str, first: str = "", *, implicit: bool, is_parameter: bool = False
) -> Declared:
    """As `_buffer_type`, with what a buffer type cannot be as an error at the place."""
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
    given = Arguments(reader.source, node, what, f"{first} shape dtype {LAYOUT}", RENAMED)
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
    """Refuses a scope that is said of memory that has another one already."""
    node = given.get("scope")
    if node is not None and not is_none(node) and kind.scope != scope:
        reader.fail(node, f'{what} expected the scope of its memory, "{scope}", got "{kind.scope}"; leave it out')


def is_none(node: ast.expr) -> bool:
    """Whether an argument is written as `None`."""
    return isinstance(node, ast.Constant) and node.value is None


def read_annotation(reader: StaticReader, node: ast.expr, *, implicit: bool = False) -> Declared | None:
    """`T.Buffer((n, 4), "float32")` or `T.Buffer[(n, 4), "float32"]`; `None` for another annotation."""
    try:
        return _annotation(reader, node, implicit=implicit)
    except VerifyException as error:
        reader.fail(node, str(error))


def _annotation(reader: StaticReader, node: ast.expr, *, implicit: bool) -> Declared | None:
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


# Inside of functions


def allocate(reader: TirExpressionReader, node: ast.Call, name: str, what: str) -> Buffer:
    """A new buffer."""
    kind = read_buffer_type(reader, node, what, implicit=False)
    return alloc(reader, node, kind.type, name, kind.lanes)


def alloc(reader: TirExpressionReader, node: ast.AST, kind: BufferType, name: str, lanes: int | None = None) -> Buffer:
    """Memory of a type, named as in the text."""
    op = reader.emit(node, lambda: AllocBufferOp(kind))
    op.buffer.name_hint = as_name_hint(name)
    reader.block.add_op(op)
    return bind_buffer(reader, SSAValue.get(op.buffer, type=BufferType), name, lanes)


def bind_buffer(
    reader: TirExpressionReader, value: SSAValue[BufferType], name: str, lanes: int | None = None
) -> Buffer:
    """A buffer that expressions can use."""
    buffer = Buffer.of(value, name, lanes)
    reader.names.buffers[buffer.tensor] = value
    return buffer


def allocate_pointer(reader: TirExpressionReader, node: ast.Call) -> Pointer:
    """`T.allocate([n], "float32", "global")`: memory that `T.decl_buffer` gives a shape."""
    given = Arguments(
        reader.source, node, "T.allocate", "extents dtype scope condition annotations", {"shape": "extents"}
    )
    dtype, lanes = element_dtype(reader, given.require("dtype"))
    extents = read_dims(reader, given.require("extents"), implicit=False)
    return Pointer(product([*extents, constant(lanes or 1)]), dtype, _scope(reader, given.get("scope")))
