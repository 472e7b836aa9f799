"""Packed functions that are called with boxed values: texts, pointers, tensors that a text writes field by field."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i32

from relax_dialect.frontend.tvmscript.prim_func.addresses import ADDRESS, memory_at, to_address
from relax_dialect.frontend.tvmscript.prim_func.promotion import converted
from relax_dialect.frontend.tvmscript.prim_func.structs import (
    element,
    get_field,
    on_stack,
    set_field,
    struct_at,
)
from relax_dialect.frontend.tvmscript.prim_func.values import Buffer
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from tir_dialect import te
from tir_dialect.calling_conventions import ANY_BYTES, FIELDS, TENSOR_BYTES, TO_KIND, Kind, OldKind
from tir_dialect.dtypes import lookup
from tir_dialect.ops.boxed_calls import CallBoxedOp
from tir_dialect.ops.calls import CallExternOp
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.te.coerce import is_bool, is_float
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype
from tir_dialect.types import BufferType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader

KIND, PADDING, PAYLOAD, OLD_PAYLOAD, INTEGER = (FIELDS[number] for number in (13, 14, 15, 12, 17))


@dataclass(frozen=True, eq=False)
class TensorAt:
    """A `DLTensor` in memory."""

    address: Scalar


@dataclass(frozen=True, eq=False)
class BoxAt:
    """A `TVMFFIAny` in memory."""

    address: Scalar


@dataclass(frozen=True, eq=False)
class PointerValue:
    """A pointer as an argument, which is an integer everywhere else."""

    address: Scalar


def call_with_boxes(reader: TirExpressionReader, node: ast.AST, name: str, values: Sequence[object]) -> Scalar:
    """Boxes the values and calls a function; gives where the result lies."""
    stack = to_address(reader, node, on_stack(reader, node, "tvm_ffi_any", ANY_BYTES * (len(values) + 1)))
    for place, value in enumerate(values):
        _put(reader, node, stack, place, value)
    call_at(reader, node, name, stack, len(values))
    return struct_at(reader, node, KIND, stack, len(values))


def call_at(reader: TirExpressionReader, node: ast.AST, name: str, values: Scalar, count: int) -> None:
    """Calls a function with the boxes at an address."""
    reader.block.add_op(CallBoxedOp(name, reader.values(node, values)[0], count))


def result_of(reader: TirExpressionReader, node: ast.AST, box: Scalar, dtype: str) -> Scalar:
    """The number in a box, read where it is used."""
    wanted = to_dtype(dtype)
    payload = get_field(reader, node, PAYLOAD, box, 0, float_payload=is_float(wanted))
    return reader.emit(node, lambda: converted(payload, wanted))


def _put(reader: TirExpressionReader, node: ast.AST, stack: Scalar, place: int, value: object) -> None:
    if isinstance(value, BoxAt):
        copy_box(reader, node, value.address, struct_at(reader, node, KIND, stack, place))
        return
    kind, payload = _boxed(reader, node, value)
    for field, each in ((KIND, int(kind)), (PADDING, 0), (PAYLOAD, payload)):
        set_field(reader, node, field, stack, place, each)


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
    for place, extent in enumerate(shape):
        set_field(reader, node, INTEGER, extents, place, extent)
    code, bits = lookup(to_dtype(dtype)).dlpack
    fields: Mapping[int, object] = {1: data, 2: extents, 3: 0, 4: len(shape), 5: code, 6: bits, 7: 1, 8: 0, 9: 0, 10: 1}
    for number, value in fields.items():
        set_field(reader, node, FIELDS[number], tensor, 0, value)
    return tensor


def copy_box(reader: TirExpressionReader, node: ast.AST, source: Scalar, target: Scalar) -> None:
    """Copies a box, which has no other owner afterwards than before."""
    for field in (KIND, PADDING, PAYLOAD):
        set_field(reader, node, field, target, 0, get_field(reader, node, field, source, 0))


def release(reader: TirExpressionReader, node: ast.AST, box: Scalar) -> None:
    """Gives up what a box holds, if that is an object."""
    kind = get_field(reader, node, KIND, box, 0)
    op = IfOp(reader.values(node, _is_object(reader, node, kind))[0])
    outer, reader.block = reader.block, op.then_body.block
    held = memory_at(reader, node, get_field(reader, node, PAYLOAD, box, 0), BufferType([1], i32), "held")
    reader.block.add_op(CallExternOp("TVMFFIObjectDecRef", [held.value], i32))
    reader.block = outer
    reader.block.add_op(op)


def _is_object(reader: TirExpressionReader, node: ast.AST, kind: Scalar) -> Scalar:
    found = reader.apply(node, "GE", kind, int(Kind.FIRST_OBJECT))
    assert isinstance(found, Scalar)  # of scalars
    return found


# Lowered calls


def call_lowered(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.call_packed_lowered("f", stack, begin, end)`, or `("f", values, kinds, begin, end)` of older texts."""
    given = Arguments(reader.source, node, "the call", "func *arguments", {}, ("dtype",))
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
    """A call with payloads and kinds in arrays of their own: the same payloads in boxes, and the result back."""
    count = end - begin
    stack = to_address(reader, node, on_stack(reader, node, "tvm_ffi_any", ANY_BYTES * (count + 1)))
    for place in range(count):
        old = reader.load(node, element(kinds, begin + place))
        set_field(reader, node, KIND, stack, place, _mapped(reader, node, old, TO_KIND))
        set_field(reader, node, PADDING, stack, place, 0)
        payload = get_field(reader, node, OLD_PAYLOAD, values, begin + place)
        set_field(reader, node, PAYLOAD, stack, place, payload)
    call_at(reader, node, name, stack, count)
    box = struct_at(reader, node, KIND, stack, count)
    set_field(reader, node, OLD_PAYLOAD, values, end, get_field(reader, node, PAYLOAD, box, 0))
    back = {kind: old for old, kind in reversed([*TO_KIND.items()])}
    new = get_field(reader, node, KIND, box, 0)
    reader.store(node, element(kinds, end), _mapped(reader, node, new, back, OldKind.OBJECT))
    return box


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


# Lists of boxes, the registers of TVM's virtual machine


def list_item(reader: TirExpressionReader, node: ast.Call) -> BoxAt:
    """`T.anylist_getitem(list, i)`."""
    given = Arguments(reader.source, node, "T.anylist_getitem", "list index", {}, ("dtype",))
    return BoxAt(_item(reader, node, given))


def reset_item(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.anylist_resetitem(list, i)`: the item holds nothing then."""
    given = Arguments(reader.source, node, "T.anylist_resetitem", "list index", {}, ("dtype",))
    box = _item(reader, node, given)
    release(reader, node, box)
    for field in (KIND, PADDING, PAYLOAD):
        set_field(reader, node, field, box, 0, 0)
    return 0


def set_item(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.anylist_setitem_call_packed(list, i, "f", ...)`: the item is what the function returns."""
    given = Arguments(
        reader.source, node, "T.anylist_setitem_call_packed", "list index func *arguments", {}, ("dtype",)
    )
    box, name = _item(reader, node, given), reader.text(given.require("func"))
    result = call_with_boxes(reader, node, name, [boxed_argument(reader, each) for each in given.rest])
    release(reader, node, box)
    copy_box(reader, node, result, box)
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


BOX_FORMS: Mapping[str, Callable[[TirExpressionReader, ast.Call], object]] = {
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
"""Calls of `T` with values in boxes."""
