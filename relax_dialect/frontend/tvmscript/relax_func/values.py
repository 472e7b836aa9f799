"""Calls that give values which are known when the text is read: constants, shapes, scalars, strings."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.evaluator import is_number, items_of
from relax_dialect.frontend.tvmscript.text.static import describe, is_dtype_name
from relax_dialect.frontend.tvmscript.text.typed_numbers import typed
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim
from tir_dialect.dtypes import parse_dtype

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader

Form: TypeAlias = "Callable[[ExpressionReader, ast.Call], object]"


def _const(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.const(1.0, "float32")`, or nested lists of numbers."""
    given = Arguments(reader.source, node, "R.const", "value dtype")
    dtype_node = given.get("dtype")
    dtype = None if dtype_node is None or _is_none(dtype_node) else reader.dtype(dtype_node)
    return constant(reader, given.require("value"), dtype)


def constant(reader: ExpressionReader, node: ast.expr, dtype: Attribute | None) -> Expr:
    """The tensor of numbers in a text, of the dtype that these have if none is said."""
    value = reader.value(node)
    if not _is_data(value):
        reader.fail(node, f"R.const expected numbers, got {describe(value)}")
    return reader.emit(node, lambda: reader.builder.const(_as_lists(value), dtype or _default_dtype(value)))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _default_dtype(value: object) -> Attribute | None:
    """Integers are `i32`, as in TVM; floats are `f32`, truth values `i1`."""
    items = items_of(value)
    if items is not None:
        kinds = {_default_dtype(each) for each in items}
        return kinds.pop() if len(kinds) == 1 else None
    return i32 if isinstance(value, int) and not isinstance(value, bool) else None


def _is_data(value: object) -> bool:
    items = items_of(value)
    return is_number(value) or _is_array(value) if items is None else all(map(_is_data, items))


def _is_array(value: object) -> bool:
    """Whether a value is an array of Python's surroundings; without NumPy loaded there are none."""
    return type(value).__module__ == "numpy"


def _as_lists(value: object) -> object:
    items = items_of(value)
    return value if items is None else [_as_lists(each) for each in items]


def _shape(reader: ExpressionReader, node: ast.Call) -> object:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ShapeDims

    values = Arguments(reader.source, node, "R.shape", "value", {"values": "value"}).require("value")
    found = reader.value(values)
    if isinstance(found, Expr):
        return found
    return ShapeDims(reader.to_dim(values, each) for each in reader.fields(values, found))


def _tuple(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.tuple(x, y)`, or `R.Tuple([x, y])`, as Python makes it."""
    fields = Arguments(reader.source, node, "R.tuple", "*fields").rest
    if len(fields) == 1 and isinstance(fields[0], ast.List):
        fields = fields[0].elts
    return reader.elements(fields)


def _prim_value(reader: ExpressionReader, node: ast.Call) -> object:
    """A number or a dimension; `R.prim_value(T.float32(2))` is a number of that dtype."""
    argument = Arguments(reader.source, node, "R.prim_value", "value").require("value")
    value = reader.value(argument)
    if not isinstance(value, bool | int | float | Dim | Expr):
        reader.fail(node, f"R.prim_value expected a number or a dimension, got {describe(value)}")
    name = reader.aliases.name_in("tir", argument.func) if isinstance(argument, ast.Call) else None
    if name is None or not is_dtype_name(name) or isinstance(value, bool | Dim | Expr):
        return value
    return reader.emit(argument, lambda: typed(value, parse_dtype(name)))


def _str(reader: ExpressionReader, node: ast.Call) -> object:
    return reader.text(Arguments(reader.source, node, "R.str", "value").require("value"))


def _dtype(reader: ExpressionReader, node: ast.Call) -> object:
    return reader.dtype(Arguments(reader.source, node, "R.dtype", "value").require("value"))


def _null(reader: ExpressionReader, node: ast.Call) -> object:
    return reader.emit(node, lambda: function_of(operator_classes()["relax.null"])())


def _tuple_get_item(reader: ExpressionReader, node: ast.Call) -> object:
    given = Arguments(reader.source, node, "R.TupleGetItem", "tuple index", {"tuple_value": "tuple"})
    value, index = reader.value(given.require("tuple")), reader.integer(given.require("index"))
    if isinstance(value, Expr):
        return reader.emit(node, lambda: value[index])
    items = items_of(value)
    if items is None or not -len(items) <= index < len(items):
        reader.fail(node, f"expected a tuple with a field {index}, got {describe(value)}")
    return items[index]


def _linear(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.linear(x, weight, bias)`: the product with the transposed weight, and the bias."""
    given = Arguments(reader.source, node, "R.linear", "data weight bias out_dtype")
    data, weight = reader.read(given.require("data")), reader.read(given.require("weight"))
    bias_node, dtype_node = given.get("bias"), given.get("out_dtype")
    dtype = None if dtype_node is None or _is_none(dtype_node) else reader.dtype(dtype_node)
    classes = operator_classes()

    def build() -> Expr:
        transposed = function_of(classes["relax.permute_dims"])(weight)
        product: Expr = function_of(classes["relax.matmul"])(data, transposed, dtype)
        bias = None if bias_node is None else reader.value(bias_node)
        return product if bias is None else product + reader.expr(node, bias)

    return reader.emit(node, build)


def _relu6(reader: ExpressionReader, node: ast.Call) -> object:
    data = reader.read(Arguments(reader.source, node, "R.nn.relu6", "data").require("data"))
    return reader.emit(node, lambda: function_of(operator_classes()["relax.clip"])(data, 0.0, 6.0))


def same(reader: ExpressionReader, node: ast.Call) -> object:
    """What says something to passes of TVM only: the value itself."""
    synonyms = {"data": "x", "value": "x", "input": "x"}
    return reader.value(Arguments(reader.source, node, "the call", "x", synonyms).require("x"))


def _emit(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.emit(value, annotate_ty=None)`."""
    given = Arguments(reader.source, node, "R.emit", "value annotate_ty")
    value, declared = given.require("value"), given.get("annotate_ty")
    if declared is None or _is_none(declared):
        return reader.value(value)
    return reader.refine(value, reader.read(value), reader.types.read(declared))


def _wrap_param(reader: ExpressionReader, node: ast.Call) -> object:
    given = Arguments(reader.source, node, "R.wrap_param", "data dtype")
    value, dtype = reader.read(given.require("data")), given.get("dtype")
    target = reader.dtype(dtype) if dtype is not None else None
    if target is None or (isinstance(value.type, TensorType) and value.type.dtype == target):
        return value
    return reader.emit(node, lambda: value.astype(target))


VALUE_FORMS: Mapping[str, Form] = {
    "const": _const,
    "shape": _shape,
    "ShapeExpr": _shape,
    "tuple": _tuple,
    "Tuple": _tuple,
    "prim_value": _prim_value,
    "PrimValue": _prim_value,
    "str": _str,
    "StringImm": _str,
    "dtype": _dtype,
    "null_value": _null,
    "TupleGetItem": _tuple_get_item,
    "linear": _linear,
    "nn.linear": _linear,
    "nn.relu6": _relu6,
    "stop_lift_params": same,
    "builtin.stop_lift_params": same,
    "memory.ensure_zero_offset": same,
    "emit": _emit,
    "wrap_param": _wrap_param,
}
