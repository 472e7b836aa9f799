"""Pointers that a text computes: addresses, as integers of 64 bits, and the memory behind them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from relax_dialect.frontend.tvmscript.prim_func.buffers import (
    LAYOUT,
    RENAMED,
    alloc,
    bind_buffer,
    check_scope,
    element_dtype,
    is_none,
    read_buffer_type,
)
from relax_dialect.frontend.tvmscript.prim_func.promotion import converted
from relax_dialect.frontend.tvmscript.prim_func.values import Buffer, Place, Pointer
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.frontend.tvmscript.text.static import StaticReader, describe
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import byte_size
from tir_dialect.name_hints import as_name_hint
from tir_dialect.ops.raw_memory import AddressOfOp, MemoryAtOp, TextAddressOp
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype
from tir_dialect.types import BufferType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader

ADDRESS = to_dtype("int64")
ROW = 1 << 40
"""The extent of memory whose length the text does not know before the program runs."""


def names_handle(reader: StaticReader, node: ast.expr) -> bool:
    """Whether a dtype is that of a pointer: `"handle"`, `T.handle`, `T.handle("float32", "global").ty`."""
    if isinstance(node, ast.Constant):
        return node.value == "handle"
    if isinstance(node, ast.Attribute) and node.attr == "ty":
        node = node.value
    head = node.func if isinstance(node, ast.Call) else node
    return reader.aliases.name_in("tir", head) in ("handle", "Ptr")


def to_address(reader: TirExpressionReader, node: ast.AST, value: object) -> Scalar:
    """A pointer as an address: an address itself, memory, or a text; 0 is null."""
    if isinstance(value, str):
        return reader.variable(reader.insert(TextAddressOp(value)), ADDRESS, "text")
    if isinstance(value, Buffer):
        return _element(reader, node, value, constant(0))
    if isinstance(value, Pointer):
        return _behind(reader, node, value)
    if isinstance(value, Scalar | int) and not isinstance(value, bool):
        return reader.emit(node, lambda: converted(value, ADDRESS))
    reader.fail(node, f"expected a pointer, got {describe(value)}")


def _behind(reader: TirExpressionReader, node: ast.AST, memory: Pointer) -> Scalar:
    if memory.buffer is None:
        memory.buffer = alloc(reader, node, BufferType([memory.extent], memory.dtype, scope=memory.scope), "memory")
    if memory.is_whole and isinstance(at := memory.buffer.value.owner, MemoryAtOp):
        return reader.variable(at.address, ADDRESS, "address")
    start = _scaled(reader, node, memory.start, byte_size(memory.dtype))
    base = _element(reader, node, memory.buffer, constant(0))
    return base if memory.is_whole else moved(reader, node, base, start)


def _element(reader: TirExpressionReader, node: ast.AST, buffer: Buffer, place: Dim) -> Scalar:
    indices = [reader.dim_value(node, place) for _ in range(buffer.type.rank)]
    return reader.variable(reader.insert(AddressOfOp(buffer.value, indices)), ADDRESS, "address")


def _scaled(reader: TirExpressionReader, node: ast.AST, place: Place | int, size: int) -> Scalar:
    return reader.emit(node, lambda: converted(reader.scalar_operand(node, place), ADDRESS)) * size


def moved(reader: TirExpressionReader, node: ast.AST, address: Scalar, count: object) -> Scalar:
    """An address so many bytes further."""
    operand = reader.scalar_operand(node, count)
    return reader.emit(node, lambda: address + converted(operand, ADDRESS))


def memory_at(reader: TirExpressionReader, node: ast.AST, address: Scalar, kind: BufferType, name: str) -> Buffer:
    """The memory at an address as a buffer."""
    (base,) = reader.values(node, address)
    op = reader.emit(node, lambda: MemoryAtOp(base, kind))
    op.view.name_hint = as_name_hint(name)
    reader.block.add_op(op)
    return bind_buffer(reader, SSAValue.get(op.view, type=BufferType), name)


# Buffers over addresses


def declare_at(reader: TirExpressionReader, node: ast.Call, name: str, what: str, address: Scalar) -> Buffer:
    """`T.decl_buffer(shape, dtype, data=address)`; the shape may be of numbers that the program computes."""
    given = Arguments(reader.source, node, what, f"shape dtype {LAYOUT}", RENAMED)
    dtype_node, place = given.get("dtype"), given.get("elem_offset")
    unsaid = dtype_node is None or is_none(dtype_node)
    dtype, lanes = (f32, None) if unsaid or dtype_node is None else element_dtype(reader, dtype_node)
    if place is not None and not is_none(place):
        address = moved(
            reader,
            node,
            address,
            _scaled(reader, node, reader.index(place, reader.value(place)), byte_size(dtype) * (lanes or 1)),
        )
        others = [keyword for keyword in node.keywords if keyword.arg not in ("elem_offset", "offset")]
        node = ast.copy_location(ast.Call(node.func, node.args, others), node)
    shape = _places(reader, given.require("shape"))
    strides_node = given.get("strides")
    strides = None if strides_node is None or is_none(strides_node) else _places(reader, strides_node)
    if all(isinstance(each, Dim) for each in (*shape, *(strides or ()))):
        declared = read_buffer_type(reader, node, what, implicit=False)
        check_scope(reader, given, what, declared.type, "global")
        found = memory_at(reader, node, address, declared.type, name)
        return Buffer(found.value, found.tensor, declared.lanes)
    if lanes is not None:
        reader.fail(node, "expected a shape of constants for a buffer of vectors")
    row = memory_at(reader, node, address, BufferType([ROW], dtype), name)
    kept = tuple(_once(reader, node, each) for each in shape)
    return Buffer(row.value, row.tensor, None, kept, _strides(reader, node, kept, strides))


def has_static_shape(reader: TirExpressionReader, node: ast.Call) -> bool:
    """Whether the shape of a declaration has no number that the program computes."""
    shape = Arguments(reader.source, node, "T.Buffer", f"shape dtype {LAYOUT}", RENAMED).get("shape")
    if shape is None:
        return True
    value = reader.value(shape)
    items = items_of(value)
    return not any(isinstance(each, Scalar) for each in ((value,) if items is None else items))


def _places(reader: TirExpressionReader, node: ast.expr) -> list[Place]:
    value = reader.value(node)
    items = items_of(value)
    return [reader.index(node, each) for each in ((value,) if items is None else items)]


def _once(reader: TirExpressionReader, node: ast.AST, place: Place) -> Place:
    return place if isinstance(place, Dim) else reader.variable(reader.values(node, place)[0], place.dtype)


def _strides(
    reader: TirExpressionReader, node: ast.AST, shape: Sequence[Place], given: Sequence[Place] | None
) -> tuple[Place, ...]:
    """The strides of a buffer, in elements: row-major unless they are given."""
    if given:
        return tuple(_once(reader, node, each) for each in given)
    strides: list[Place] = [constant(1)]
    for extent in reversed(shape[1:]):
        strides.insert(0, _once(reader, node, reader.index(node, reader.apply(node, "Mul", strides[0], extent))))
    return tuple(strides)
