"""Fields of structs in memory, and memory on the stack: what calling conventions are written with."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f64, i32, i64

from relax_dialect.frontend.tvmscript.prim_func.addresses import (
    ADDRESS,
    memory_at,
    moved,
    names_handle,
    to_address,
)
from relax_dialect.frontend.tvmscript.prim_func.buffers import alloc
from relax_dialect.frontend.tvmscript.prim_func.promotion import converted
from relax_dialect.frontend.tvmscript.prim_func.values import Axis, Buffer, Pointer, Region, pointer_to
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from tir_dialect.calling_conventions import FIELDS, STACK_BYTES, Field
from tir_dialect.dims import constant
from tir_dialect.dtypes import lookup
from tir_dialect.ops.raw_memory import MemoryAtOp
from tir_dialect.te.coerce import is_float
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.types import BufferType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader


def element(buffer: Buffer, place: int = 0) -> Region:
    """An element of a buffer with one dimension."""
    return Region(buffer, (Axis(constant(place)),))


def struct_at(reader: TirExpressionReader, node: ast.AST, field: Field, struct: Scalar, index: object) -> Scalar:
    """Where a field of a struct in an array lies."""
    if isinstance(index, int):
        start: object = index * field.struct_bytes + field.offset
    else:
        place = converted(reader.scalar_operand(node, index), ADDRESS)
        start = reader.emit(node, lambda: place * field.struct_bytes + field.offset)
    return struct if start == 0 else moved(reader, node, struct, start)


def field_at(
    reader: TirExpressionReader, node: ast.AST, field: Field, struct: Scalar, index: object, *, float_payload: bool
) -> Buffer:
    """The memory of a field of a struct in an array; a payload is eight bytes of an integer or of a float."""
    dtype = field.dtype or (f64 if float_payload else i64)
    place = struct_at(reader, node, field, struct, index)
    return memory_at(reader, node, place, BufferType([1], dtype), field.name)


def _field(reader: TirExpressionReader, node: ast.expr) -> Field:
    number = reader.integer(node)
    if (field := FIELDS.get(number)) is None:
        reader.fail(node, f"expected one of {', '.join(map(str, FIELDS))} as a field of a struct, got {number}")
    return field


def struct_get(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.tvm_struct_get(args, index, field, dtype)`: read where the value is used, as other memory."""
    given = Arguments(reader.source, node, "T.tvm_struct_get", "arr index field dtype")
    struct = to_address(reader, node, reader.value(given.require("arr")))
    field, index, kind = (
        _field(reader, given.require("field")),
        reader.value(given.require("index")),
        given.get("dtype"),
    )
    if field.is_address:
        return struct_at(reader, node, field, struct, index)
    dtype = i64 if kind is None or names_handle(reader, kind) else reader.dtype(kind)
    wanted = lookup(dtype).type
    value = get_field(reader, node, field, struct, index, float_payload=is_float(wanted))
    return reader.emit(node, lambda: converted(value, wanted))


def get_field(
    reader: TirExpressionReader,
    node: ast.AST,
    field: Field,
    struct: Scalar,
    index: object,
    *,
    float_payload: bool = False,
) -> Scalar:
    """What a field has, read where the value is used."""
    return reader.load(node, element(field_at(reader, node, field, struct, index, float_payload=float_payload)))


def struct_set(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.tvm_struct_set(args, index, field, value)`."""
    given = Arguments(reader.source, node, "T.tvm_struct_set", "arr index field value", {}, ("dtype",))
    struct = to_address(reader, node, reader.value(given.require("arr")))
    field, index = _field(reader, given.require("field")), reader.value(given.require("index"))
    value_node = given.require("value")
    set_field(reader, value_node, field, struct, index, reader.value(value_node))
    return 0


def set_field(
    reader: TirExpressionReader, node: ast.AST, field: Field, struct: Scalar, index: object, value: object
) -> None:
    """Writes a number or a pointer to a field; a payload has the eight bytes of either."""
    if field.is_address:
        reader.fail(node, "a struct lies where it lies; expected a field that can be written")
    if isinstance(value, Pointer | Buffer | str):
        value = to_address(reader, node, value)
    operand = reader.scalar_operand(node, value)
    floats = isinstance(operand, float) or (isinstance(operand, Scalar) and is_float(operand.dtype))
    place = field_at(reader, node, field, struct, index, float_payload=floats)
    reader.store(node, element(place), operand)


def stack_alloca(reader: TirExpressionReader, node: ast.Call) -> Pointer:
    """`T.tvm_stack_alloca("array", 3)`: room for so many structs, which the function has while it runs."""
    given = Arguments(reader.source, node, "T.tvm_stack_alloca", "dtype_str num", {}, ("dtype",))
    name, count = reader.text(given.require("dtype_str")), reader.integer(given.require("num"))
    if (size := STACK_BYTES.get(name)) is None:
        reader.fail(given.require("dtype_str"), f"expected one of {', '.join(STACK_BYTES)}, got {name}")
    return on_stack(reader, node, name, size * count)


def on_stack(reader: TirExpressionReader, node: ast.AST, name: str, size: int) -> Pointer:
    """So many bytes of memory that the function has while it runs, of words of four or eight bytes."""
    kind = (
        BufferType([size // 8], i64, align=16)
        if size % 8 == 0 and name != "arg_tcode"
        else BufferType([size // 4], i32)
    )
    return pointer_to(alloc(reader, node, kind, f"stack_{name}"))


def stack_shape(reader: TirExpressionReader, node: ast.Call) -> Pointer:
    """`T.tvm_stack_make_shape(n, m)`: the numbers as an array."""
    given = Arguments(reader.source, node, "T.tvm_stack_make_shape", "*extents", {}, ("dtype",)).rest
    memory = on_stack(reader, node, "shape", 8 * max(len(given), 1))
    assert memory.buffer is not None  # it has just been made
    for place, each in enumerate(given):
        reader.store(each, element(memory.buffer, place), reader.value(each))
    return memory


def static_handle(reader: TirExpressionReader, node: ast.Call) -> Pointer:
    """`T.tvm_static_handle()`: where a program may keep a pointer between calls; here it forgets, and finds null."""
    memory = on_stack(reader, node, "handle", 8)
    assert memory.buffer is not None  # it has just been made
    reader.store(node, element(memory.buffer), 0)
    return memory


def is_null(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.isnullptr(p)`; there is memory behind every pointer but addresses."""
    value_node = Arguments(reader.source, node, "T.isnullptr", "x", {}, ("dtype", "span")).require("x")
    value = reader.value(value_node)
    if isinstance(value, Buffer):
        value = pointer_to(value)
    if isinstance(value, Pointer) and not (
        value.buffer is not None and isinstance(value.buffer.value.owner, MemoryAtOp)
    ):
        return False
    return reader.apply(node, "EQ", to_address(reader, value_node, value), 0)


STRUCT_FORMS: Mapping[str, Callable[[TirExpressionReader, ast.Call], object]] = {
    "tvm_struct_get": struct_get,
    "tvm_struct_set": struct_set,
    "tvm_stack_alloca": stack_alloca,
    "tvm_stack_make_shape": stack_shape,
    "tvm_static_handle": static_handle,
    "isnullptr": is_null,
}
"""Calls of `T` that look at memory as structs."""
