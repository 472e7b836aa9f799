"""`R.inspect.*`: what the head of a tensor says. Types know it; a size that they leave open is read from the tensor."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects.builtin import IntegerType, Signedness, i32, i64
from xdsl.ir import Attribute

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import product
from tir_dialect.dtypes import lookup

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader

_Form: TypeAlias = "Callable[[ExpressionReader, ast.Call], object]"

_U8, _U16 = (IntegerType(bits, Signedness.UNSIGNED) for bits in (8, 16))
"""What TVM has codes, bits and lanes in."""


def _tensor(reader: ExpressionReader, node: ast.Call, given: Arguments) -> tuple[Expr, TensorType]:
    value = reader.refine(node, reader.read(given.require("x")), TensorType(None, None))
    info = value.type
    return value, info if isinstance(info, TensorType) else TensorType(None, None)


def _fact(name: str, dtype: Attribute, read: Callable[[TensorType], int | None]) -> tuple[str, _Form]:
    def form(reader: ExpressionReader, node: ast.Call) -> object:
        given = Arguments(reader.source, node, f"R.inspect.{name}", "x")
        _, info = _tensor(reader, node, given)
        found = read(info)
        if found is None:
            reader.fail(node, f"R.inspect.{name} expected a tensor of which the type knows that, got {info}")
        return reader.emit(node, lambda: reader.builder.prim(found, dtype))

    return f"inspect.{name}", form


def _dtype_part(index: int) -> Callable[[TensorType], int | None]:
    return lambda info: None if info.dtype is None else lookup(info.dtype).dlpack[index]


def _shape_i(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.inspect.tensor_shape_i(x, axis)`."""
    given = Arguments(reader.source, node, "R.inspect.tensor_shape_i", "x axis")
    value, info = _tensor(reader, node, given)
    axis = _axis(reader, given, info)
    known = None if info.dims is None else info.dims[axis]
    if known is not None:
        return known
    classes = operator_classes()
    shape = reader.emit(node, lambda: function_of(classes["relax.shape_of"])(value))
    return reader.emit(node, lambda: function_of(classes["relax.shape_get"])(shape, axis))


def _stride_i(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.inspect.tensor_stride_i(x, axis)`: how many elements a step along the axis passes; tensors have no gaps."""
    given = Arguments(reader.source, node, "R.inspect.tensor_stride_i", "x axis")
    _, info = _tensor(reader, node, given)
    axis = _axis(reader, given, info)
    behind = [dim for dim in (info.dims or ())[axis + 1 :] if dim is not None]
    if info.rank is None or len(behind) != info.rank - axis - 1:
        reader.fail(node, f"R.inspect.tensor_stride_i expected known dimensions behind axis {axis}, got {info}")
    return product(behind)


def _axis(reader: ExpressionReader, given: Arguments, info: TensorType) -> int:
    node = given.require("axis")
    axis = reader.integer(node)
    if axis < 0 or (info.rank is not None and axis >= info.rank):
        reader.fail(node, f"axis {axis} is out of range for {info}")
    return axis


INSPECT_FORMS: Mapping[str, _Form] = dict(
    [
        _fact("tensor_ndim", i32, lambda info: info.rank),
        _fact("tensor_dtype_code", _U8, _dtype_part(0)),
        _fact("tensor_dtype_bits", _U8, _dtype_part(1)),
        _fact("tensor_dtype_lanes", _U16, lambda info: 1),
        _fact("tensor_byte_offset", i64, lambda info: 0),
        _fact("tensor_elem_offset", i64, lambda info: 0),
        ("inspect.tensor_shape_i", _shape_i),
        ("inspect.tensor_stride_i", _stride_i),
    ]
)
