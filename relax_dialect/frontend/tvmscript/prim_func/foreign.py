"""Calls of functions from outside: C functions and packed functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from relax_dialect.frontend.tvmscript.prim_func.addresses import to_address
from relax_dialect.frontend.tvmscript.prim_func.boxes import (
    BoxAt,
    PointerValue,
    TensorAt,
    boxed_argument,
    call_with_boxes,
    result_of,
)
from relax_dialect.frontend.tvmscript.prim_func.promotion import promoted
from relax_dialect.frontend.tvmscript.prim_func.tensors import make_array
from relax_dialect.frontend.tvmscript.prim_func.values import Buffer, Pointer
from relax_dialect.frontend.tvmscript.prim_func.views import view
from relax_dialect.frontend.tvmscript.prim_func.workspaces import WORKSPACE_FORMS
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from tir_dialect import te
from tir_dialect.dtypes import scalar_type
from tir_dialect.ops.calls import CallExternOp, CallPackedOp
from tir_dialect.te.coerce import is_index
from tir_dialect.te.expr import DType
from tir_dialect.te.operators import to_dtype
from tir_dialect.types import BufferType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader


_WITHOUT_RESULT = ("", "void", "handle")
"""Dtypes of calls whose results no expression uses."""


def typed_arguments(reader: TirExpressionReader, node: ast.Call, what: str, others: str) -> Arguments:
    """The arguments of a call that has a dtype: by keyword, else in front of the others."""
    by_keyword = any(keyword.arg == "dtype" for keyword in node.keywords)
    return Arguments(reader.source, node, what, f"{others} dtype" if by_keyword else f"dtype {others}")


def _call_extern(reader: TirExpressionReader, node: ast.Call) -> object:
    given = typed_arguments(reader, node, "T.call_extern", "func *arguments")
    dtype = reader.text(given.require("dtype"))
    name = reader.text(given.require("func"))
    if (runtime := WORKSPACE_FORMS.get(name)) is not None:
        return runtime(reader, ast.copy_location(ast.Call(node.func, given.rest, []), node))
    return _foreign(reader, node, _evaluated(reader, given.rest), name, dtype, packed=False)


def _evaluated(reader: TirExpressionReader, nodes: Sequence[ast.expr]) -> list[tuple[ast.expr, object]]:
    return [(each, reader.value(each)) for each in nodes]


def _call_pure_extern(reader: TirExpressionReader, node: ast.Call) -> object:
    given = typed_arguments(reader, node, "T.call_pure_extern", "func *arguments")
    dtype, name = reader.text(given.require("dtype")), reader.text(given.require("func"))
    if dtype in _WITHOUT_RESULT:
        return _foreign(reader, node, _evaluated(reader, given.rest), name, dtype, packed=False)
    scalars = [reader.read_scalar(each) for each in given.rest]
    return reader.emit(node, lambda: te.call_extern(to_dtype(dtype), name, *(promoted(each)[0] for each in scalars)))


def _call_packed(reader: TirExpressionReader, node: ast.Call) -> object:
    """A packed function: tensors and numbers as they are, in boxes if there are other values among them."""
    given = Arguments(reader.source, node, "T.call_packed", "func *arguments", {}, ("dtype",))
    name, kind_node = reader.text(given.require("func")), given.get("dtype")
    dtype = "" if kind_node is None else reader.text(kind_node)
    values = [_packed_argument(reader, each) for each in given.rest]
    if not any(map(_needs_box, values)):
        return _foreign(reader, node, list(zip(given.rest, values, strict=True)), name, dtype, packed=True)
    box = call_with_boxes(reader, node, name, values)
    return None if dtype in _WITHOUT_RESULT else result_of(reader, node, box, dtype)


def _packed_argument(reader: TirExpressionReader, node: ast.expr) -> object:
    value = boxed_argument(reader, node)
    if isinstance(value, Pointer):
        value = _first_element(reader, node, value)
    return value


def _needs_box(value: object) -> bool:
    return isinstance(value, str | None | TensorAt | BoxAt | PointerValue) or (
        isinstance(value, Buffer) and value.extents is not None
    )


def _foreign(
    reader: TirExpressionReader,
    node: ast.Call,
    rest: Sequence[tuple[ast.expr, object]],
    name: str,
    dtype: str,
    *,
    packed: bool,
) -> object:
    """Calls a function from outside, here and once."""
    arguments = [_argument(reader, *each) for each in rest]
    pointer = dtype == "handle" and reader.wants_value
    kind = (
        None if dtype in _WITHOUT_RESULT and not pointer else to_dtype_at(reader, node, "int64" if pointer else dtype)
    )
    result = None if kind is None or is_index(kind) else scalar_type(kind)
    op = (CallPackedOp if packed else CallExternOp)(name, arguments, result)
    reader.block.add_op(op)
    return None if kind is None or op.result is None else reader.variable(op.result, kind)


def to_dtype_at(reader: TirExpressionReader, node: ast.AST, dtype: str) -> DType:
    """The dtype of a name."""
    return reader.emit(node, lambda: to_dtype(dtype))


def _argument(reader: TirExpressionReader, node: ast.expr, value: object) -> SSAValue:
    if isinstance(value, str):
        value = to_address(reader, node, value)
    if isinstance(value, Pointer):
        value = _first_element(reader, node, value)
    if isinstance(value, Buffer):
        return value.value
    operand = reader.scalar_operand(node, value)
    scalar = reader.emit(node, lambda: promoted(operand)[0])
    if is_index(scalar.dtype):
        scalar = reader.emit(node, lambda: te.cast(scalar, "i64"))
    return reader.values(node, scalar)[0]


def _first_element(reader: TirExpressionReader, node: ast.expr, memory: Pointer) -> Buffer:
    """Memory as a buffer, whose address is handed over: the whole one, or one that begins further behind."""
    buffer = memory.buffer
    if buffer is None:
        reader.fail(node, "memory without a shape is given one by T.decl_buffer")
    if memory.is_whole:
        return buffer
    return view(reader, node, memory, BufferType([], memory.dtype, scope=memory.scope))


FOREIGN_FORMS: Mapping[str, Callable[[TirExpressionReader, ast.Call], object]] = {
    "call_extern": _call_extern,
    "call_pure_extern": _call_pure_extern,
    "call_packed": _call_packed,
    "tvm_call_packed": _call_packed,
    "call_cpacked": _call_packed,
    "tvm_call_cpacked": _call_packed,
    "tvm_call_trace_packed": _call_packed,
    "tvm_stack_make_array": make_array,
}
"""Calls of `T` of functions from outside."""
