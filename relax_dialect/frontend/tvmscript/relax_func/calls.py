"""Calls that are not operators: functions, packed functions, constants, casts, memory."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from xdsl.utils.exceptions import VerifyException

from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.tvmscript.relax_func.box_calls import BOX_FORMS
from relax_dialect.frontend.tvmscript.relax_func.device_calls import DEVICE_FORMS
from relax_dialect.frontend.tvmscript.relax_func.dist_calls import DIST_FORMS
from relax_dialect.frontend.tvmscript.relax_func.gradient_calls import GRADIENT_FORMS
from relax_dialect.frontend.tvmscript.relax_func.image_calls import IMAGE_FORMS
from relax_dialect.frontend.tvmscript.relax_func.inspect_calls import INSPECT_FORMS
from relax_dialect.frontend.tvmscript.relax_func.layout_calls import LAYOUT_FORMS
from relax_dialect.frontend.tvmscript.relax_func.loss_calls import LOSS_FORMS
from relax_dialect.frontend.tvmscript.relax_func.memory_calls import MEMORY_FORMS
from relax_dialect.frontend.tvmscript.relax_func.prim_calls import PRIM_FORMS
from relax_dialect.frontend.tvmscript.relax_func.python_calls import PYTHON_FORMS
from relax_dialect.frontend.tvmscript.relax_func.reduction_calls import REDUCTION_FORMS
from relax_dialect.frontend.tvmscript.relax_func.tir_calls import (
    call_dps_packed,
    call_tir,
    call_tir_inplace,
    call_tir_with_grad,
)
from relax_dialect.frontend.tvmscript.relax_func.values import VALUE_FORMS
from relax_dialect.frontend.tvmscript.relax_func.vision_calls import VISION_FORMS
from relax_dialect.frontend.tvmscript.relax_func.vm_builtins import VM_BUILTINS, Builtin
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.captured import PythonFunction
from relax_dialect.frontend.tvmscript.text.scope import FunctionRef
from relax_dialect.frontend.tvmscript.text.static import describe
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.refine import refine
from relax_dialect.struct_info.types import ObjectType, ShapeType, TensorType, TupleType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader

Form: TypeAlias = "Callable[[ExpressionReader, ast.Call], object]"

_TYPES = {"sinfo_args": "ty_args", "type_args": "ty_args", "out_ty": "ty_args", "out_sinfo": "ty_args"}


def call_function(reader: ExpressionReader, node: ast.Call) -> object:
    """A call of a function of the module, of a function value, or of a method of a value."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
        value = reader.expr(node.func, reader.value(node.func.value))
        target = Arguments(reader.source, node, "astype", "dtype").require("dtype")
        return reader.emit(node, lambda: value.astype(reader.dtype(target)))
    callee = reader.value(node.func)
    arguments = [reader.read(each) for each in Arguments(reader.source, node, "the call", "*arguments").rest]
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


def _callee(reader: ExpressionReader, node: ast.expr) -> str | Callable[..., object]:
    """The name of a packed function, a function value, or what stands for a function of TVM's run-time library."""
    value = reader.value(node)
    if isinstance(value, FunctionRef):
        return value.name
    if isinstance(value, str):
        return VM_BUILTINS.get(value, value)
    if isinstance(value, Expr):
        return value
    reader.fail(node, f"expected the name of a packed function, got {describe(value)}")


def _call_packed(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.call_packed("name", x, ty_args=...)`; in a dataflow region, where nothing has effects, as a pure one."""
    return _pure_packed(reader, node) if reader.in_dataflow else _packed(reader, node, "R.call_packed")


def _packed(reader: ExpressionReader, node: ast.Call, what: str) -> object:
    given = Arguments(
        reader.source,
        _without_attributes(node),
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


def _without_attributes(node: ast.Call) -> ast.Call:
    """A call of a packed function without its attributes, which no function gets: TVM too drops them."""
    known = {*_TYPES, *_TYPES.values(), "func", "py_func_name", "inplace_indices"}
    keywords = [each for each in node.keywords if each.arg is None or each.arg in known]
    return ast.copy_location(ast.Call(node.func, node.args, keywords), node)


def _pure_packed(reader: ExpressionReader, node: ast.Call) -> object:
    given = Arguments(reader.source, node, "R.call_pure_packed", "func *args ty_args", _TYPES)
    callee = _callee(reader, given.require("func"))
    arguments = [reader.read(each) for each in given.rest]
    info = _result_type(reader, given)
    if isinstance(callee, str):
        return reader.emit(node, lambda: reader.builder.call_pure_packed(callee, *arguments, out=info))
    return _refined(reader, node, reader.emit(node, lambda: callee(*arguments)), info or ObjectType())


def _builtin_with_ctx(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.call_builtin_with_ctx("name", (x,), ty_args=...)`: the machine hands over its context by itself."""
    given = Arguments(reader.source, node, "R.call_builtin_with_ctx", "func args ty_args", _TYPES)
    callee, args = _callee(reader, given.require("func")), given.require("args")
    if not isinstance(callee, str):
        reader.fail(node, "R.call_builtin_with_ctx expected the name of a function that takes the machine's context")
    arguments = [reader.expr(args, each) for each in reader.fields(args, reader.value(args))]
    info = _result_type(reader, given) or ObjectType()
    return reader.emit(node, lambda: reader.builder.call_packed(callee, *arguments, out=info))


def _invoke(reader: ExpressionReader, node: ast.Call, *, pure: bool) -> object:
    """`R.invoke_closure(f, (x,), ty_args=...)`, or `R.invoke_pure_closure`."""
    name = "R.invoke_pure_closure" if pure else "R.invoke_closure"
    given = Arguments(reader.source, node, name, "closure args ty_args", _TYPES)
    function, args = reader.read(given.require("closure")), given.require("args")
    if not isinstance(function.type, FuncType):
        function = reader.refine(node, function, FuncType(None, pure=pure))
    arguments = [reader.expr(args, each) for each in reader.fields(args, reader.value(args))]
    result = reader.emit(node, lambda: function(*arguments))
    return _refined(reader, node, result, _result_type(reader, given) or ObjectType())


def _make_closure(reader: ExpressionReader, node: ast.Call) -> object:
    given = Arguments(reader.source, node, "R.make_closure", "func args")
    callee, args = reader.value(given.require("func")), given.require("args")
    if not isinstance(callee, FunctionRef):
        reader.fail(node, f"R.make_closure expected a function of the module, got {describe(callee)}")
    captured = [reader.expr(args, each) for each in reader.fields(args, reader.value(args))]
    return reader.program.closure(reader, node, callee.name, captured)


def _match_cast(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.match_cast(x, type)`: dimensions that are new in the type are bound here."""
    given = Arguments(reader.source, node, "R.match_cast", "value ty", {"struct_info": "ty"})
    value, declared = reader.read(given.require("value")), reader.types.read(given.require("ty"))
    return cast_to(reader, node, value, declared)


def _match_shape(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.match_shape(x, (n, m))` of a tensor or a shape; names that are new are bound here."""
    given = Arguments(reader.source, node, "R.match_shape", "value pattern")
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
    given = Arguments(reader.source, node, "R.print", "*values format")
    values = [reader.read(each) for each in given.rest]
    text = _format(reader, given.get("format"), values)
    return _effect(reader, node, "print", [text, values])


def _assert(reader: ExpressionReader, node: ast.Call) -> object:
    given = Arguments(reader.source, node, "R.assert_op", "condition format_args format")
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
    from relax_dialect.builder.operator_functions import function_of, operator_classes

    reader.emit(node, lambda: function_of(operator_classes()[f"relax.{name}"])(*arguments))
    return None


def _extern_func(reader: ExpressionReader, node: ast.Call) -> object:
    given = Arguments(reader.source, node, "R.ExternFunc", "global_symbol ty")
    name = reader.text(given.require("global_symbol"))
    if name in VM_BUILTINS:
        return Builtin(VM_BUILTINS[name])
    info = reader.types.optional(given.get("ty"))
    if info is not None and not isinstance(info, FuncType):
        raise VerifyException(f"expected the type of a function, got {info}")
    return reader.emit(node, lambda: reader.builder.extern_func(name, info))


def _emit_te(reader: ExpressionReader, node: ast.Call) -> object:
    from relax_dialect.frontend.tvmscript.relax_func.tensor_expressions import emit_te

    return emit_te(reader, node)


FORMS: Mapping[str, Form] = {
    **BOX_FORMS,
    **DEVICE_FORMS,
    **DIST_FORMS,
    **IMAGE_FORMS,
    **INSPECT_FORMS,
    **LAYOUT_FORMS,
    **LOSS_FORMS,
    **GRADIENT_FORMS,
    **VISION_FORMS,
    **VALUE_FORMS,
    **MEMORY_FORMS,
    **PRIM_FORMS,
    **PYTHON_FORMS,
    **REDUCTION_FORMS,
    "call_tir": call_tir,
    "call_tir_inplace": call_tir_inplace,
    "call_tir_with_grad": call_tir_with_grad,
    "call_tir_dyn": call_tir,
    "call_dps_packed": call_dps_packed,
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
    "emit_te": _emit_te,
}
"""What `R.<name>(...)` is, where it is no operator."""
