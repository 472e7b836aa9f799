"""Explicit memory, as lowered texts have it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.tvmscript.relax_func.vm_builtins import view
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.scope import FunctionRef
from relax_dialect.frontend.tvmscript.text.static import describe
from relax_dialect.ops.memory import AllocStorageOp, AllocTensorOp, KillOp, StorageTensorOp
from relax_dialect.struct_info.types import ObjectType, ShapeType, TensorType
from tir_dialect.dims import Dim, constant, product, symbol
from tir_dialect.dtypes import byte_size

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader

Form: TypeAlias = "Callable[[ExpressionReader, ast.Call], object]"


def _dims(reader: ExpressionReader, node: ast.expr) -> list[Dim]:
    shape = reader.shape(node, reader.value(node))
    if not isinstance(shape, Expr):
        return shape
    info = shape.type
    if not isinstance(info, ShapeType) or info.rank is None:
        reader.fail(node, f"expected a shape of known length, got {info}")
    if info.known_dims is None:
        # what is not known of the dimensions gets a name
        named = ShapeType([symbol(reader.builder.fresh_symbol()) for _ in range(info.rank)])
        info = reader.emit(node, lambda: reader.builder.match_cast(shape, named)).type
    return list(info.known_dims or ()) if isinstance(info, ShapeType) else []


def _alloc_storage(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.memory.alloc_storage(R.shape([n]), device, scope, dtype)`: so many elements, or bytes without a dtype."""
    return _storage(reader, node, "size device storage_scope dtype ty_args")


def _vm_alloc_storage(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.vm.alloc_storage(R.shape([n]), device, dtype, scope)`."""
    return _storage(reader, node, "size device dtype storage_scope ty_args")


def _storage(reader: ExpressionReader, node: ast.Call, parameters: str) -> object:
    names = {"shape": "size", "virtual_device_index": "device", "runtime_device_index": "device"}
    given = Arguments(reader.source, node, "alloc_storage", parameters, names)
    size = product(_dims(reader, given.require("size")))
    if (dtype := given.get("dtype")) is not None:
        size = size * byte_size(reader.dtype(dtype))
    return reader.emit(node, lambda: reader.builder.expr(reader.builder.insert(AllocStorageOp(size)).result))


def _storage_tensor(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.memory.alloc_tensor(storage, offset, R.shape([n]), dtype)`; the offset is in bytes."""
    given = Arguments(reader.source, node, "alloc_tensor", "storage offset shape dtype runtime_device_ind ty_args")
    storage, offset_node = reader.read(given.require("storage")), given.require("offset")
    offset = reader.dim(offset_node)
    info = TensorType(_dims(reader, given.require("shape")), reader.dtype(given.require("dtype")))
    return reader.emit(
        node, lambda: reader.builder.expr(reader.builder.insert(StorageTensorOp(storage.value, offset, info)).result)
    )


def _alloc_tensor(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.builtin.alloc_tensor(R.shape([n]), dtype, device)`."""
    names = "shape dtype runtime_device_index storage_scope ty_args"
    given = Arguments(reader.source, node, "alloc_tensor", names)
    info = TensorType(_dims(reader, given.require("shape")), reader.dtype(given.require("dtype")))
    return reader.emit(node, lambda: reader.builder.expr(reader.builder.insert(AllocTensorOp(info)).result))


def _kill(reader: ExpressionReader, node: ast.Call) -> object:
    names = {"storage": "value", "tensor": "value", "obj": "value"}
    value = reader.read(Arguments(reader.source, node, "the call", "value", names).require("value"))
    reader.emit(node, lambda: reader.builder.insert(KillOp(value.value)))
    return None


def _view(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.memory.view(x, shape, dtype, offset)`: a reshape where it shows all elements as they are, else a copy."""
    given = Arguments(reader.source, node, "R.memory.view", "data shape dtype relative_byte_offset")
    value = reader.read(given.require("data"))
    value = reader.refine(node, value, TensorType(None, None))
    shape_node, dtype_node, offset_node = (_given(reader, given, name) for name in _VIEWED)
    dtype = None if dtype_node is None else reader.dtype(dtype_node)
    offset = constant(0) if offset_node is None else reader.dim(offset_node)
    shape = value if shape_node is None else reader.shape(shape_node, reader.value(shape_node))
    return reader.emit(node, lambda: view(value, shape, dtype, offset))


_VIEWED = ("shape", "dtype", "relative_byte_offset")


def _given(reader: ExpressionReader, given: Arguments, name: str) -> ast.expr | None:
    """An argument that is not `None`; nor the empty tuple, which stands for it once the call has all arguments."""
    node = given.get(name)
    is_empty = isinstance(node, ast.Call) and not node.args and reader.aliases.name_in("relax", node.func) == "tuple"
    return None if is_empty or (isinstance(node, ast.Constant) and node.value is None) else node


def _call_tir_dyn(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.vm.call_tir_dyn(f, (x, y, R.shape([n])))`: a PrimFunc with its results among the arguments, sizes last."""
    given = Arguments(reader.source, node, "R.vm.call_tir_dyn", "func args")
    callee, args = reader.value(given.require("func")), given.require("args")
    if not isinstance(callee, FunctionRef | str):
        reader.fail(node, f"R.vm.call_tir_dyn expected a PrimFunc or the name of a function, got {describe(callee)}")
    arguments = [reader.expr(args, each) for each in reader.fields(args, reader.value(args))]
    if isinstance(callee, str):
        return reader.emit(node, lambda: reader.builder.call_packed(callee, *arguments, out=ObjectType()))
    last = arguments[-1].type if arguments else None
    if isinstance(last, ShapeType) and last.known_dims is not None:
        arguments[-1:] = [reader.expr(args, dim) for dim in last.known_dims]
    return reader.program.call(reader, node, callee.name, arguments)


MEMORY_FORMS: Mapping[str, Form] = {
    "memory.alloc_storage": _alloc_storage,
    "vm.alloc_storage": _vm_alloc_storage,
    "vm.builtin.alloc_storage": _vm_alloc_storage,
    "vm.builtin.alloc_tensor": _storage_tensor,
    "memory.alloc_tensor": _storage_tensor,
    "vm.alloc_tensor": _storage_tensor,
    "builtin.alloc_tensor": _alloc_tensor,
    "memory.view": _view,
    "memory.kill_storage": _kill,
    "memory.kill_tensor": _kill,
    "vm.kill_object": _kill,
    "vm.call_tir_dyn": _call_tir_dyn,
}
