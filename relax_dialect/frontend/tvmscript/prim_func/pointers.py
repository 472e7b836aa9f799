"""Memory from some place on: `T.address_of`, `T.tvm_access_ptr`, `A.access_ptr`, offsets in bytes."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.prim_func.addresses import moved, to_address
from relax_dialect.frontend.tvmscript.prim_func.buffers import element_dtype
from relax_dialect.frontend.tvmscript.prim_func.values import Buffer, Place, Pointer, pointer_to
from relax_dialect.frontend.tvmscript.prim_func.views import element_address
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from tir_dialect.dims import constant
from tir_dialect.dtypes import byte_size
from tir_dialect.te.expr import Expr as Scalar

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader


def address_of(reader: TirExpressionReader, node: ast.Call) -> Pointer:
    """`T.address_of(A[i])`: the memory from an element on."""
    target = Arguments(reader.source, node, "T.address_of", "element", {}, ("dtype",)).require("element")
    owner = reader.value(target.value if isinstance(target, ast.Subscript) else target)
    if not isinstance(owner, Buffer):
        reader.fail(node, "expected the address of a buffer or of one of its elements, as A[0]")
    if not isinstance(target, ast.Subscript):
        return pointer_to(owner)
    return element_address(reader, node, reader.region(target, owner))


def access_pointer(reader: TirExpressionReader, node: ast.Call, buffer: Buffer) -> Pointer:
    """`A.access_ptr("r", offset=i)`: the memory of a buffer; what is done with it need not be said."""
    names = "access_mask ptr_type content_lanes offset extent"
    offset = Arguments(reader.source, node, "access_ptr", names).get("offset")
    return replace(pointer_to(buffer), start=_place(reader, offset))


def access_data(reader: TirExpressionReader, node: ast.Call) -> Pointer | Scalar:
    """`T.tvm_access_ptr(T.type_annotation("float32"), A.data, offset, extent, rw_mask)`."""
    given = Arguments(reader.source, node, "T.tvm_access_ptr", "ptype data offset extent rw_mask")
    found, offset = reader.value(given.require("data")), given.get("offset")
    if isinstance(found, Scalar):
        size = reader.apply(node, "Mul", _place(reader, offset), _typed_bytes(reader, given.require("ptype")))
        return moved(reader, node, found, size)
    memory = _as_memory(reader, given.require("data"), found)
    return replace(memory, start=_sum(reader, node, memory.start, _place(reader, offset)))


def further_bytes(reader: TirExpressionReader, node: ast.Call) -> Pointer | Scalar:
    """`T.handle_add_byte_offset(p, n)`, `T.ptr_byte_offset(p, n, dtype)`: so many bytes behind a place."""
    given = Arguments(
        reader.source, node, "the call", "handle offset dtype", {"data": "handle", "byte_offset": "offset"}
    )
    memory, offset = reader.value(given.require("handle")), given.require("offset")
    if isinstance(memory, Scalar | int):
        return moved(reader, node, to_address(reader, node, memory), reader.value(offset))
    memory = _as_memory(reader, given.require("handle"), memory)
    size = byte_size(memory.dtype)
    steps = reader.apply(node, "floordiv", reader.value(offset), size) if size > 1 else reader.value(offset)
    return replace(memory, start=_sum(reader, node, memory.start, reader.index(offset, steps)))


def _typed_bytes(reader: TirExpressionReader, node: ast.expr) -> int:
    """The size of an element by `T.type_annotation("float32")`."""
    arguments = node.args if isinstance(node, ast.Call) else [node]
    dtype, lanes = element_dtype(reader, arguments[0])
    return byte_size(dtype) * (lanes or 1)


def _as_memory(reader: TirExpressionReader, node: ast.expr, found: object) -> Pointer:
    if isinstance(found, Buffer):
        return pointer_to(found)
    if not isinstance(found, Pointer):
        reader.fail(node, "expected the memory of a buffer, as A.data")
    return found


def _place(reader: TirExpressionReader, node: ast.expr | None) -> Place:
    return constant(0) if node is None else reader.index(node, reader.value(node))


def _sum(reader: TirExpressionReader, node: ast.AST, one: Place, other: Place) -> Place:
    return reader.index(node, reader.apply(node, "Add", one, other))
