"""Calls of functions, closures and packed functions; casts; explicit memory and the functions of TVM's run time."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader, Form
from relax_dialect.frontend.tvmscript.relax_func.operators import RESULTS, relax_op
from relax_dialect.frontend.tvmscript.scopes import FunctionRef, PythonFunction, describe
from relax_dialect.frontend.tvmscript.source import Arguments
from relax_dialect.inference import DEFAULT_PROVER
from relax_dialect.ops.memory import AllocStorageOp, AllocTensorOp, KillOp, StorageTensorOp
from relax_dialect.ops.values import DTypeOp, NullOp, PrimOp
from relax_dialect.struct_info.join import refine
from relax_dialect.struct_info.types import FuncType, ObjectType, PrimType, ShapeType, StructInfo, TensorType, TupleType
from tir_dialect.dims import Dim, constant, product, symbol
from tir_dialect.dtypes import byte_size


@dataclass(frozen=True)
class Builtin:
    """A function of the library as a value."""

    call: Callable[..., Any]


def _copy(value: Any) -> Any:
    """The same value: TVM's function too gives back what it gets."""
    return value


def _operator(name: str) -> Callable[..., Any]:
    return lambda *arguments: function_of(operator_classes()[name])(*arguments)


def view(value: Expr, shape: Expr | Sequence[Dim], dtype: Attribute | None, offset: Dim) -> Expr:
    """A tensor's bytes from one on with another shape and dtype; a tensor stands for its shape."""
    info = value.type
    if isinstance(shape, Expr) and isinstance(shape.type, TensorType):
        shape = shape.type.known_dims or _operator("relax.shape_of")(shape)
    if isinstance(info, TensorType) and dtype in (None, info.dtype) and offset == constant(0) and _same(info, shape):
        return _operator("relax.reshape")(value, shape)
    return relax_op("reinterpret")(value, shape, dtype, offset=offset)


def _same(info: TensorType, shape: Expr | Sequence[Dim]) -> bool:
    """Whether a shape has provably as many elements as a tensor."""
    dims, known = shape, info.known_dims
    if isinstance(dims, Expr):
        dims = dims.type.known_dims if isinstance(dims.type, ShapeType) else None
    return dims is not None and known is not None and DEFAULT_PROVER.equal(product(dims), product(known)) is True


def _create_view(value: Expr, shape: Expr, dtype: Expr, offset: Expr) -> Expr:
    """What `R.memory.view` becomes in TVM: all of its arguments are values."""
    owner, start = dtype.value.owner, offset.type
    if not isinstance(owner, DTypeOp | NullOp) or not isinstance(start, PrimType) or start.value is None:
        raise ValueError("a view expected a dtype and an offset that are known when the text is read")
    return view(value, shape, None if isinstance(owner, NullOp) else owner.value, start.value)


def _to_device(value: Expr, kind: Expr, number: Expr) -> Expr:
    """The same value, which is on the CPU already."""
    if (_known(kind, "the kind of a device"), _known(number, "the number of a device")) != (_CPU, 0):
        raise ValueError("the CPU is the only device: expected R.prim_value(1), R.prim_value(0)")
    return value


def _known(value: Expr, what: str) -> int:
    """A number or truth value that the text says."""
    number = value.type.value if isinstance(value.type, PrimType) else None
    if number is not None and number.constant_value is not None:
        return number.constant_value
    op = value.value.owner
    if isinstance(op, PrimOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data
    raise ValueError(f"{what} has to be known when the text is read, got {value.type}")


def _unique(x: Expr, *options: Expr) -> object:
    """`relax.run.unique(x, sorted, return_index, return_inverse, return_counts, axis)`; results are always sorted."""
    flags = [bool(_known(each, "an option of relax.run.unique")) for each in options[1:4]]
    names = ("return_index", "return_inverse", "return_counts")
    at = None if len(options) < 5 or _is_null(options[4]) else _known(options[4], "the axis of relax.run.unique")
    result = relax_op("unique")(x, at, **dict(zip(names, flags, strict=False)))
    return RESULTS["unique"](result, {})


def _tuple_get_item(fields: Expr, index: Expr) -> Expr:
    return fields[_known(index, "the index of a field")]


def _tuple_reset_item(fields: Expr, index: Expr) -> Expr:
    """The tuple with null in a position; TVM's function changes the one that it gets."""
    position = _known(index, "the index of a field")
    kept = [_operator("relax.null")() if number == position else field for number, field in enumerate(fields)]
    return _operator("relax.tuple")(*kept)


_CPU = 1
"""DLPack's number of the kind of device."""

VM_BUILTINS: Mapping[str, Callable[..., Any]] = {
    "relax.run.nonzero": _operator("relax.nonzero"),
    "relax.run.unique": _unique,
    "runtime.TVMTensorCreateView": _create_view,
    "vm.builtin.copy": _copy,
    "vm.builtin.ensure_zero_offset": _copy,
    "vm.builtin.make_tuple": _operator("relax.tuple"),
    "vm.builtin.null_value": _operator("relax.null"),
    "vm.builtin.reshape": _operator("relax.reshape"),
    "vm.builtin.shape_of": _operator("relax.shape_of"),
    "vm.builtin.tensor_to_shape": _operator("relax.tensor_to_shape"),
    "vm.builtin.to_device": _to_device,
    "vm.builtin.tuple_getitem": _tuple_get_item,
    "vm.builtin.tuple_reset_item": _tuple_reset_item,
}
"""What `R.call_packed("<name>", ...)` or a call of `R.ExternFunc("<name>")` emits in place of the call."""


def _dims(reader: ExpressionReader, node: ast.expr) -> list[Dim]:
    shape = reader.shape(node, reader.value(node))
    if not isinstance(shape, Expr):
        return shape
    info = shape.type
    if not isinstance(info, ShapeType) or info.rank is None:
        reader.fail(node, f"expected a shape of known length, got {info}")
    if info.known_dims is None:
        # what is not known about the dimensions gets a name
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
    given = reader.arguments(node, "alloc_storage", parameters, names)
    size = product(_dims(reader, given.require("size")))
    if (dtype := given.get("dtype")) is not None:
        size = size * byte_size(reader.dtype(dtype))
    return reader.emit(node, lambda: reader.builder.expr(reader.builder.insert(AllocStorageOp(size)).result))


def _storage_tensor(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.memory.alloc_tensor(storage, offset, R.shape([n]), dtype)`; the offset is in bytes."""
    given = reader.arguments(node, "alloc_tensor", "storage offset shape dtype runtime_device_ind ty_args")
    storage, offset_node = reader.read(given.require("storage")), given.require("offset")
    offset = reader.dim(offset_node)
    info = TensorType(_dims(reader, given.require("shape")), reader.dtype(given.require("dtype")))
    return reader.emit(
        node, lambda: reader.builder.expr(reader.builder.insert(StorageTensorOp(storage.value, offset, info)).result)
    )


def _alloc_tensor(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.builtin.alloc_tensor(R.shape([n]), dtype, device)`."""
    names = "shape dtype runtime_device_index storage_scope ty_args"
    given = reader.arguments(node, "alloc_tensor", names)
    info = TensorType(_dims(reader, given.require("shape")), reader.dtype(given.require("dtype")))
    return reader.emit(node, lambda: reader.builder.expr(reader.builder.insert(AllocTensorOp(info)).result))


def _kill(reader: ExpressionReader, node: ast.Call) -> object:
    names = {"storage": "value", "tensor": "value", "obj": "value"}
    value = reader.read(reader.arguments(node, "the call", "value", names).require("value"))
    reader.emit(node, lambda: reader.builder.insert(KillOp(value.value)))
    return None


def _view(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.memory.view(x, shape, dtype, offset)`: a reshape where it shows all elements as they are, else a copy."""
    given = reader.arguments(node, "R.memory.view", "data shape dtype relative_byte_offset")
    value = reader.read(given.require("data"))
    value = reader.refine(node, value, TensorType(None, None))
    shape_node, dtype_node, offset_node = (_given(reader, given, name) for name in _VIEWED)
    dtype = None if dtype_node is None else reader.dtype(dtype_node)
    offset = constant(0) if offset_node is None else reader.dim(offset_node)
    shape = value if shape_node is None else reader.shape(shape_node, reader.value(shape_node))
    return reader.emit(node, lambda: view(value, shape, dtype, offset))


_VIEWED = ("shape", "dtype", "relative_byte_offset")


def _given(reader: ExpressionReader, given: Arguments, name: str) -> ast.expr | None:
    """An argument that says something: neither `None`, nor what TVM prints for an argument that is left out."""
    match node := given.get(name):
        case ast.Constant(value=None):
            return None
        case ast.Call(args=[], func=func) if reader.aliases.name_in("relax", func) in ("tuple", "null_value"):
            return None
        case ast.Name(id=variable) if _is_null(reader.scope.find(variable)):
            return None
        case _:
            return node


def _is_null(value: object) -> bool:
    return isinstance(value, Expr) and isinstance(value.value.owner, NullOp)


def _call_tir_dyn(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.vm.call_tir_dyn(f, (x, y, R.shape([n])))`: a PrimFunc with its results among the arguments, sizes last."""
    given = reader.arguments(node, "R.vm.call_tir_dyn", "func args")
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


_TYPES = {"sinfo_args": "ty_args", "type_args": "ty_args", "out_ty": "ty_args", "out_sinfo": "ty_args"}


def call_function(reader: ExpressionReader, node: ast.Call) -> object:
    """A call of a function of the module, of a function value, or of a method of a value."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
        value = reader.expr(node.func, reader.value(node.func.value))
        target = reader.arguments(node, "astype", "dtype").require("dtype")
        return reader.emit(node, lambda: value.astype(reader.dtype(target)))
    callee = reader.value(node.func)
    arguments = [reader.read(each) for each in reader.arguments(node, "the call", "*arguments").rest]
    if isinstance(callee, Builtin):
        return reader.emit(node, lambda: callee.call(*arguments))
    if isinstance(callee, FunctionRef):
        return reader.program.call(reader, node, callee.name, arguments)
    if isinstance(callee, Expr) and isinstance(callee.type, FuncType):
        return reader.emit(node, lambda: callee(*arguments))
    if isinstance(callee, Expr) and isinstance(callee.type, ObjectType):
        function = reader.refine(node.func, callee, FuncType(None))
        return reader.emit(node, lambda: function(*arguments))
    if isinstance(callee, PythonFunction):
        reader.fail(node.func, f"{callee} is a function of Python, which is not executed; R.emit_te reads its source")
    got = str(callee.type) if isinstance(callee, Expr) else describe(callee)
    reader.fail(node.func, f"expected a function to call, got {got}")


def _result_type(reader: ExpressionReader, given: Arguments) -> StructInfo | None:
    """The type that the call or the annotation gives."""
    node = given.get("ty_args")
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return reader.expected
    infos = reader.types.several(node)
    return infos[0] if len(infos) == 1 else TupleType(infos)


_LOWERED_SHAPES = frozenset(
    {
        "vm.builtin.alloc_shape_heap",
        "vm.builtin.check_func_info",
        "vm.builtin.check_prim_value_info",
        "vm.builtin.check_shape_info",
        "vm.builtin.check_tensor_info",
        "vm.builtin.check_tuple_info",
        "vm.builtin.make_prim_value",
        "vm.builtin.make_shape",
        "vm.builtin.match_prim_value",
        "vm.builtin.match_shape",
    }
)
"""What TVM's `VMShapeLower` makes of symbolic shapes: sizes are in memory then, and types do not say them."""


def _taken(reader: ExpressionReader, node: ast.expr, name: str) -> str:
    """The name of a packed function; an error for one that only TVM's virtual machine has."""
    if name in _LOWERED_SHAPES:
        reader.fail(node, f"{name} is what TVM lowers shapes to; print the module before relax.transform.VMShapeLower")
    return name


def _callee(reader: ExpressionReader, node: ast.expr) -> str | Callable[..., object]:
    """The name of a packed function, a function value, or what stands for a function of TVM's run-time library."""
    value = reader.value(node)
    if isinstance(value, FunctionRef):
        return value.name
    if isinstance(value, str):
        return VM_BUILTINS.get(_taken(reader, node, value), value)
    if isinstance(value, Expr):
        return value
    reader.fail(node, f"expected the name of a packed function, got {describe(value)}")


def _call_packed(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.call_packed("name", x, ty_args=...)`; in a dataflow region, where nothing has effects, as a pure one."""
    return _pure_packed(reader, node) if reader.in_dataflow else _packed(reader, node, "R.call_packed")


def _packed(reader: ExpressionReader, node: ast.Call, what: str) -> object:
    # A call of a packed function without its attributes, which no function gets: TVM too drops them.
    known = {*_TYPES, *_TYPES.values(), "func", "py_func_name", "inplace_indices"}
    keywords = [each for each in node.keywords if each.arg is None or each.arg in known]
    given = reader.arguments(
        ast.copy_location(ast.Call(node.func, node.args, keywords), node),
        what,
        "func *args ty_args inplace_indices",
        _TYPES | {"py_func_name": "func"},
    )
    callee = _callee(reader, given.require("func"))
    arguments = [reader.read(each) for each in given.rest]
    info = _result_type(reader, given) or ObjectType()
    if isinstance(callee, str):
        return reader.emit(node, lambda: reader.builder.call_packed(callee, *arguments, out=info))
    return _refined(reader, node, reader.emit(node, lambda: callee(*arguments)), info)


def _pure_packed(reader: ExpressionReader, node: ast.Call) -> object:
    given = reader.arguments(node, "R.call_pure_packed", "func *args ty_args", _TYPES)
    callee = _callee(reader, given.require("func"))
    arguments = [reader.read(each) for each in given.rest]
    info = _result_type(reader, given)
    if isinstance(callee, str):
        return reader.emit(node, lambda: reader.builder.call_pure_packed(callee, *arguments, out=info))
    return _refined(reader, node, reader.emit(node, lambda: callee(*arguments)), info or ObjectType())


def _builtin_with_ctx(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.call_builtin_with_ctx("name", (x,), ty_args=...)`: the machine hands over its context by itself."""
    given = reader.arguments(node, "R.call_builtin_with_ctx", "func args ty_args", _TYPES)
    callee, args = _callee(reader, given.require("func")), given.require("args")
    if not isinstance(callee, str):
        reader.fail(node, "R.call_builtin_with_ctx expected the name of a function that takes the machine's context")
    arguments = [reader.expr(args, each) for each in reader.fields(args, reader.value(args))]
    info = _result_type(reader, given) or ObjectType()
    return reader.emit(node, lambda: reader.builder.call_packed(callee, *arguments, out=info))


def _invoke(reader: ExpressionReader, node: ast.Call, *, pure: bool) -> object:
    """`R.invoke_closure(f, (x,), ty_args=...)`, or `R.invoke_pure_closure`."""
    name = "R.invoke_pure_closure" if pure else "R.invoke_closure"
    given = reader.arguments(node, name, "closure args ty_args", _TYPES)
    function, args = reader.read(given.require("closure")), given.require("args")
    if not isinstance(function.type, FuncType):
        function = reader.refine(node, function, FuncType(None, pure=pure))
    arguments = [reader.expr(args, each) for each in reader.fields(args, reader.value(args))]
    result = reader.emit(node, lambda: function(*arguments))
    return _refined(reader, node, result, _result_type(reader, given) or ObjectType())


def _make_closure(reader: ExpressionReader, node: ast.Call) -> object:
    given = reader.arguments(node, "R.make_closure", "func args")
    callee, args = reader.value(given.require("func")), given.require("args")
    if not isinstance(callee, FunctionRef):
        reader.fail(node, f"R.make_closure expected a function of the module, got {describe(callee)}")
    captured = [reader.expr(args, each) for each in reader.fields(args, reader.value(args))]
    return reader.program.closure(reader, node, callee.name, captured)


def _match_cast(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.match_cast(x, type)`: dimensions that are new in the type are bound here."""
    given = reader.arguments(node, "R.match_cast", "value ty", {"struct_info": "ty"})
    value, declared = reader.read(given.require("value")), reader.types.read(given.require("ty"))
    return cast_to(reader, node, value, declared)


def _match_shape(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.match_shape(x, (n, m))` of a tensor or a shape; names that are new are bound here."""
    given = reader.arguments(node, "R.match_shape", "value pattern")
    pattern = given.require("pattern")
    nodes = pattern.elts if isinstance(pattern, ast.Tuple | ast.List) else [pattern]
    return call_match_shape(reader, node, nodes)


def call_match_shape(reader: ExpressionReader, call: ast.expr, nodes: Sequence[ast.expr]) -> Expr:
    """Matches the first argument of a call with dimensions."""
    node = call if isinstance(call, ast.Call) else None
    if node is None or not node.args:
        reader.fail(call, "R.match_shape expected a tensor or a shape")
    source = reader.read(node.args[0])
    dims = [reader.dim(each, implicit=True) for each in nodes]
    if isinstance(source.type, ShapeType):
        return cast_to(reader, node, source, ShapeType(dims))
    dtype = source.type.dtype if isinstance(source.type, TensorType) else None
    expected = reader.expected
    if dtype is None and isinstance(expected, TensorType):
        dtype = expected.dtype
    if isinstance(expected, ShapeType):
        return cast_to(reader, node, source, ShapeType(dims))
    return cast_to(reader, node, source, TensorType(dims, dtype))


def cast_to(reader: ExpressionReader, node: ast.AST, value: Expr, declared: StructInfo) -> Expr:
    """A checked cast that keeps what is known besides."""
    return reader.emit(node, lambda: reader.builder.match_cast(value, refine(declared, value.type)))


def _refined(reader: ExpressionReader, node: ast.AST, value: object, info: StructInfo) -> object:
    return reader.refine(node, value, info) if isinstance(value, Expr) else value


def _print(reader: ExpressionReader, node: ast.Call) -> object:
    given = reader.arguments(node, "R.print", "*values format")
    values = [reader.read(each) for each in given.rest]
    text = _format(reader, given.get("format"), values)
    return _effect(reader, node, "print", [text, values])


def _assert(reader: ExpressionReader, node: ast.Call) -> object:
    given = reader.arguments(node, "R.assert_op", "condition format_args format")
    condition = reader.read(given.require("condition"))
    args = given.get("format_args")
    given_values = () if args is None else reader.fields(args, reader.value(args))
    values = [reader.expr(node, each) for each in given_values]
    text = _format(reader, given.get("format"), values)
    # Python's format drops values that have no mark.
    return _effect(reader, node, "assert", [condition, text, values[: text.count("{")] if text else values])


def _format(reader: ExpressionReader, node: ast.expr | None, values: Sequence[Expr]) -> str:
    text = "" if node is None else reader.text(node)
    return text if text or not values else " ".join("{}" for _ in values)


def _effect(reader: ExpressionReader, node: ast.Call, name: str, arguments: Sequence[object]) -> object:
    reader.emit(node, lambda: relax_op(f"{name}")(*arguments))
    return None


def _extern_func(reader: ExpressionReader, node: ast.Call) -> object:
    given = reader.arguments(node, "R.ExternFunc", "global_symbol ty")
    name = _taken(reader, given.require("global_symbol"), reader.text(given.require("global_symbol")))
    if name in VM_BUILTINS:
        return Builtin(VM_BUILTINS[name])
    info = reader.types.optional(given.get("ty"))
    if info is not None and not isinstance(info, FuncType):
        raise VerifyException(f"expected the type of a function, got {info}")
    return reader.emit(node, lambda: reader.builder.extern_func(name, info))


FUNCTION_FORMS: Mapping[str, Form] = {
    "call_packed": _call_packed,
    "call_pure_packed": _pure_packed,
    "call_inplace_packed": lambda reader, node: _packed(reader, node, "R.call_inplace_packed"),
    "call_py_func": lambda reader, node: _packed(reader, node, "R.call_py_func"),
    "call_builtin_with_ctx": _builtin_with_ctx,
    "invoke_closure": lambda reader, node: _invoke(reader, node, pure=False),
    "invoke_pure_closure": lambda reader, node: _invoke(reader, node, pure=True),
    "make_closure": _make_closure,
    "emit_match_cast": _match_cast,
    "match_cast": _match_cast,
    "match_shape": _match_shape,
    "print": _print,
    "assert_op": _assert,
    "ExternFunc": _extern_func,
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
"""Calls of functions, casts and explicit memory."""
