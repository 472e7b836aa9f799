"""Structs in memory, `T.tvm_struct_get`, and packed functions that are called with boxed values."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f64, i32, i64

from relax_dialect.frontend.tvmscript.prim_func.buffers import (
    ADDRESS,
    alloc,
    memory_at,
    moved,
    names_handle,
    to_address,
)
from relax_dialect.frontend.tvmscript.prim_func.expressions import Form, TirExpressionReader
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import converted
from relax_dialect.frontend.tvmscript.prim_func.scalars import Axis, Buffer, Pointer, Region, pointer_to
from relax_dialect.frontend.tvmscript.source import Arguments
from tir_dialect import te
from tir_dialect.calling_conventions import ANY_BYTES, FIELDS, STACK_BYTES, TENSOR_BYTES, TO_KIND, Field, Kind, OldKind
from tir_dialect.dims import constant
from tir_dialect.dtypes import lookup
from tir_dialect.ops.calls import CallBoxedOp, CallExternOp
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.raw_memory import MemoryAtOp
from tir_dialect.te.coerce import is_bool, is_float
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype
from tir_dialect.types import BufferType


def element(buffer: Buffer, index: int = 0) -> Region:
    """An element of a buffer with one dimension."""
    return Region(buffer, (Axis(constant(index)),))


def struct_at(reader: TirExpressionReader, node: ast.AST, field: Field, struct: Scalar, index: object) -> Scalar:
    """Where a field of a struct in an array lies."""
    if isinstance(index, int):
        start: object = index * field.struct_bytes + field.offset
    else:
        position = converted(reader.scalar_operand(node, index), ADDRESS)
        start = reader.emit(node, lambda: position * field.struct_bytes + field.offset)
    return struct if start == 0 else moved(reader, node, struct, start)


def field_at(
    reader: TirExpressionReader, node: ast.AST, field: Field, struct: Scalar, index: object, *, float_payload: bool
) -> Buffer:
    """The memory of a field of a struct in an array; a payload is eight bytes of an integer or of a float."""
    dtype = field.dtype or (f64 if float_payload else i64)
    position = struct_at(reader, node, field, struct, index)
    return memory_at(reader, node, position, BufferType([1], dtype), field.name)


def _field(reader: TirExpressionReader, node: ast.expr) -> Field:
    number = reader.integer(node)
    if (field := FIELDS.get(number)) is None:
        reader.fail(node, f"expected one of {', '.join(map(str, FIELDS))} as a field of a struct, got {number}")
    return field


def struct_get(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.tvm_struct_get(args, index, field, dtype)`: read where the value is used, as other memory."""
    given = reader.arguments(node, "T.tvm_struct_get", "arr index field dtype")
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
    given = reader.arguments(node, "T.tvm_struct_set", "arr index field value", {}, ("dtype",))
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
    position = field_at(reader, node, field, struct, index, float_payload=floats)
    reader.store(node, element(position), operand)


def stack_alloca(reader: TirExpressionReader, node: ast.Call) -> Pointer:
    """`T.tvm_stack_alloca("array", 3)`: room for so many structs, which the function has while it runs."""
    given = reader.arguments(node, "T.tvm_stack_alloca", "dtype_str num", {}, ("dtype",))
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
    given = reader.arguments(node, "T.tvm_stack_make_shape", "*extents", {}, ("dtype",)).rest
    memory = on_stack(reader, node, "shape", 8 * max(len(given), 1))
    assert memory.buffer is not None  # it has just been made
    for index, each in enumerate(given):
        reader.store(each, element(memory.buffer, index), reader.value(each))
    return memory


def static_handle(reader: TirExpressionReader, node: ast.Call) -> Pointer:
    """`T.tvm_static_handle()`: where a program may keep a pointer between calls; here it forgets, and finds null."""
    memory = on_stack(reader, node, "handle", 8)
    assert memory.buffer is not None  # it has just been made
    reader.store(node, element(memory.buffer), 0)
    return memory


def is_null(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.isnullptr(p)`; there is memory after every pointer but addresses."""
    value_node = reader.arguments(node, "T.isnullptr", "x", {}, ("dtype", "span")).require("x")
    value = reader.value(value_node)
    if isinstance(value, Buffer):
        value = pointer_to(value)
    if isinstance(value, Pointer) and not (
        value.buffer is not None and isinstance(value.buffer.value.owner, MemoryAtOp)
    ):
        return False
    return reader.apply(node, "EQ", to_address(reader, value_node, value), 0)


KIND, PADDING, PAYLOAD, OLD_PAYLOAD, INTEGER = (FIELDS[number] for number in (13, 14, 15, 12, 17))


@dataclass(frozen=True, eq=False)
class TensorAt:
    """A `DLTensor` in memory."""

    address: Scalar


@dataclass(frozen=True, eq=False)
class AnyAt:
    """A `TVMFFIAny` in memory."""

    address: Scalar


@dataclass(frozen=True, eq=False)
class PointerValue:
    """A pointer as an argument, which is an integer everywhere else."""

    address: Scalar


def call_boxed(reader: TirExpressionReader, node: ast.AST, name: str, values: Sequence[object]) -> Scalar:
    """Boxes the values and calls a function; gives where the result lies."""
    stack = to_address(reader, node, on_stack(reader, node, "tvm_ffi_any", ANY_BYTES * (len(values) + 1)))
    for index, value in enumerate(values):
        if isinstance(value, AnyAt):
            copy_any(reader, node, value.address, struct_at(reader, node, KIND, stack, index))
        else:
            kind, payload = _boxed(reader, node, value)
            for field, each in ((KIND, int(kind)), (PADDING, 0), (PAYLOAD, payload)):
                set_field(reader, node, field, stack, index, each)
    call_at(reader, node, name, stack, len(values))
    return struct_at(reader, node, KIND, stack, len(values))


def call_at(reader: TirExpressionReader, node: ast.AST, name: str, values: Scalar, count: int) -> None:
    """Calls a function with the `TVMFFIAny`s at an address."""
    reader.block.add_op(CallBoxedOp(name, reader.values(node, values)[0], count))


def result_of(reader: TirExpressionReader, node: ast.AST, any_value: Scalar, dtype: str) -> Scalar:
    """The number in a `TVMFFIAny`, read where it is used."""
    wanted = to_dtype(dtype)
    payload = get_field(reader, node, PAYLOAD, any_value, 0, float_payload=is_float(wanted))
    return reader.emit(node, lambda: converted(payload, wanted))


def _boxed(reader: TirExpressionReader, node: ast.AST, value: object) -> tuple[Kind, object]:
    match value:
        case str():
            return Kind.TEXT, value
        case Buffer():
            return Kind.TENSOR, tensor_on_stack(reader, node, value, value.extents or value.type.shape)
        case TensorAt(address):
            return Kind.TENSOR, address
        case PointerValue(address):
            return Kind.POINTER, address
        case None:
            return Kind.NONE, 0
        case _:
            operand = reader.scalar_operand(node, value)
    if isinstance(operand, float) or (isinstance(operand, Scalar) and is_float(operand.dtype)):
        return Kind.FLOAT, reader.emit(node, lambda: converted(operand, to_dtype("float64")))
    truth = isinstance(operand, bool) or (isinstance(operand, Scalar) and is_bool(operand.dtype))
    return Kind.BOOL if truth else Kind.INT, reader.emit(node, lambda: converted(operand, ADDRESS))


def tensor_on_stack(
    reader: TirExpressionReader, node: ast.AST, data: Buffer | Scalar, shape: Sequence[object], dtype: str = ""
) -> Scalar:
    """Writes a `DLTensor` without strides over memory; gives its address."""
    if isinstance(data, Buffer):
        dtype = str(data.type.dtype)
        if not data.type.has_default_strides:
            reader.fail(node, "expected a buffer without gaps beside texts and pointers; copy it first")
    tensor = to_address(reader, node, on_stack(reader, node, "array", TENSOR_BYTES))
    extents = to_address(reader, node, on_stack(reader, node, "shape", 8 * max(len(shape), 1)))
    for index, extent in enumerate(shape):
        set_field(reader, node, INTEGER, extents, index, extent)
    code, bits = lookup(to_dtype(dtype)).dlpack
    fields: Mapping[int, object] = {1: data, 2: extents, 3: 0, 4: len(shape), 5: code, 6: bits, 7: 1, 8: 0, 9: 0, 10: 1}
    for number, value in fields.items():
        set_field(reader, node, FIELDS[number], tensor, 0, value)
    return tensor


def copy_any(reader: TirExpressionReader, node: ast.AST, source: Scalar, target: Scalar) -> None:
    """Copies a `TVMFFIAny`, without counting another owner."""
    for field in (KIND, PADDING, PAYLOAD):
        set_field(reader, node, field, target, 0, get_field(reader, node, field, source, 0))


def release_any(reader: TirExpressionReader, node: ast.AST, any_value: Scalar) -> None:
    """Releases the object that a `TVMFFIAny` holds, if it is one."""
    kind = get_field(reader, node, KIND, any_value, 0)
    found = reader.apply(node, "GE", kind, int(Kind.FIRST_OBJECT))
    assert isinstance(found, Scalar)  # of scalars
    op = IfOp(reader.values(node, found)[0])
    outer, reader.block = reader.block, op.then_body.block
    held = memory_at(reader, node, get_field(reader, node, PAYLOAD, any_value, 0), BufferType([1], i32), "held")
    reader.block.add_op(CallExternOp("TVMFFIObjectDecRef", [held.value], i32))
    reader.block = outer
    reader.block.add_op(op)


# Lowered calls


def call_lowered(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.call_packed_lowered("f", stack, begin, end)`, or `("f", values, kinds, begin, end)` of older texts."""
    given = reader.arguments(node, "the call", "func *arguments", {}, ("dtype",))
    name, rest = reader.text(given.require("func")), given.rest
    if len(rest) < 3:
        reader.fail(node, "expected where the values lie, the first of them and the end")
    kind_node = given.get("dtype")
    dtype = "int32" if kind_node is None else reader.text(kind_node)
    dtype = "int64" if dtype in ("", "void", "handle") else dtype
    second = reader.value(rest[1])
    values = to_address(reader, rest[0], reader.value(rest[0]))
    if isinstance(second, int):
        begin, end = second, reader.integer(rest[2])
        first = struct_at(reader, node, KIND, values, begin)
        call_at(reader, node, name, first, end - begin)
        return result_of(reader, node, struct_at(reader, node, KIND, values, end), dtype)
    begin, end = reader.integer(rest[2]), reader.integer(rest[3])
    kinds = memory_at(reader, node, to_address(reader, rest[1], second), BufferType([end + 1], i32), "kinds")
    return result_of(reader, node, _call_with_values(reader, node, name, values, kinds, begin, end), dtype)


def _call_with_values(
    reader: TirExpressionReader, node: ast.AST, name: str, values: Scalar, kinds: Buffer, begin: int, end: int
) -> Scalar:
    """A call with payloads and kinds in arrays of their own: the same payloads in `TVMFFIAny`s, and the result back."""
    count = end - begin
    stack = to_address(reader, node, on_stack(reader, node, "tvm_ffi_any", ANY_BYTES * (count + 1)))
    for index in range(count):
        old = reader.load(node, element(kinds, begin + index))
        set_field(reader, node, KIND, stack, index, _mapped(reader, node, old, TO_KIND))
        set_field(reader, node, PADDING, stack, index, 0)
        payload = get_field(reader, node, OLD_PAYLOAD, values, begin + index)
        set_field(reader, node, PAYLOAD, stack, index, payload)
    call_at(reader, node, name, stack, count)
    any_value = struct_at(reader, node, KIND, stack, count)
    set_field(reader, node, OLD_PAYLOAD, values, end, get_field(reader, node, PAYLOAD, any_value, 0))
    back = {kind: old for old, kind in reversed([*TO_KIND.items()])}
    new = get_field(reader, node, KIND, any_value, 0)
    reader.store(node, element(kinds, end), _mapped(reader, node, new, back, OldKind.OBJECT))
    return any_value


def _mapped(
    reader: TirExpressionReader,
    node: ast.AST,
    number: Scalar,
    table: Mapping[OldKind, Kind] | Mapping[Kind, OldKind],
    other: int = Kind.NONE,
) -> Scalar:
    """What a table has for a number."""
    found: object = te.const(int(other), "i32")
    for key, value in table.items():
        found = reader.apply(node, "Select", reader.apply(node, "EQ", number, int(key)), int(value), found)
    assert isinstance(found, Scalar)  # of scalars
    return found


# Lists of `TVMFFIAny`s, the registers of TVM's virtual machine


def list_item(reader: TirExpressionReader, node: ast.Call) -> AnyAt:
    """`T.anylist_getitem(list, i)`."""
    given = reader.arguments(node, "T.anylist_getitem", "list index", {}, ("dtype",))
    return AnyAt(_item(reader, node, given))


def reset_item(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.anylist_resetitem(list, i)`: the item holds nothing then."""
    given = reader.arguments(node, "T.anylist_resetitem", "list index", {}, ("dtype",))
    any_value = _item(reader, node, given)
    release_any(reader, node, any_value)
    for field in (KIND, PADDING, PAYLOAD):
        set_field(reader, node, field, any_value, 0, 0)
    return 0


def set_item(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.anylist_setitem_call_packed(list, i, "f", ...)`: the item is what the function returns."""
    given = reader.arguments(node, "T.anylist_setitem_call_packed", "list index func *arguments", {}, ("dtype",))
    any_value, name = _item(reader, node, given), reader.text(given.require("func"))
    result = call_boxed(reader, node, name, [boxed_argument(reader, each) for each in given.rest])
    release_any(reader, node, any_value)
    copy_any(reader, node, result, any_value)
    return 0


def _item(reader: TirExpressionReader, node: ast.Call, given: Arguments) -> Scalar:
    start = to_address(reader, node, reader.value(given.require("list")))
    return struct_at(reader, node, KIND, start, reader.value(given.require("index")))


def boxed_argument(reader: TirExpressionReader, node: ast.expr) -> object:
    """An argument as it is boxed: a name that the text says to be a pointer is one."""
    value = reader.value(node)
    if isinstance(value, Scalar) and value in reader.pointers:
        return PointerValue(to_address(reader, node, value))
    return value


STRUCT_FORMS: Mapping[str, Form] = {
    "tvm_struct_get": struct_get,
    "tvm_struct_set": struct_set,
    "tvm_stack_alloca": stack_alloca,
    "tvm_stack_make_shape": stack_shape,
    "tvm_static_handle": static_handle,
    "isnullptr": is_null,
    **dict.fromkeys(
        (
            "call_packed_lowered",
            "tvm_call_packed_lowered",
            "call_cpacked_lowered",
            "tvm_call_cpacked_lowered",
            "tvm_call_trace_packed_lowered",
        ),
        call_lowered,
    ),
    "anylist_getitem": list_item,
    "anylist_resetitem": reset_item,
    "anylist_setitem_call_packed": set_item,
    "anylist_setitem_call_cpacked": set_item,
}
"""Calls of `T` that look at memory as structs, or take boxed values."""
