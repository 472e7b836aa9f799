"""`T.tvm_stack_make_array`: memory as a tensor for a packed function."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.prim_func.addresses import moved, to_address
from relax_dialect.frontend.tvmscript.prim_func.boxes import TensorAt, tensor_on_stack
from relax_dialect.frontend.tvmscript.prim_func.dtypes import element_name
from relax_dialect.frontend.tvmscript.prim_func.structs import set_field
from relax_dialect.frontend.tvmscript.prim_func.values import Buffer, Place, Pointer, pointer_to
from relax_dialect.frontend.tvmscript.prim_func.views import view
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.static import is_dtype_name
from tir_dialect.calling_conventions import FIELDS
from tir_dialect.dims import Dim
from tir_dialect.dtypes import byte_size, dtype_name, parse_dtype
from tir_dialect.types import BufferType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader


def make_array(reader: TirExpressionReader, node: ast.Call) -> Buffer | TensorAt:
    """`T.tvm_stack_make_array(data, shape, strides, ndim, value, elem_offset)`; the value shows the dtype."""
    names = "data shape strides ndim value elem_offset"
    given = Arguments(reader.source, node, "T.tvm_stack_make_array", names, {}, ("dtype",))
    data_node = given.require("data")
    data, offset_node = reader.value(data_node), given.get("elem_offset")
    if isinstance(data, Buffer):
        data = pointer_to(data)
    dtype = data.dtype if isinstance(data, Pointer) else parse_dtype(_dtype(reader, given.require("value")))
    offset = reader.index(node, 0 if offset_node is None else reader.value(offset_node))
    shape, strides = (_extents(reader, given.get(name)) for name in ("shape", "strides"))
    known, steps = _known(shape), _known(strides)
    if isinstance(data, Pointer) and known is not None and (strides is None or steps is not None):
        return view(reader, node, data, BufferType(known, dtype, strides=steps), "tensor", offset)
    place = reader.apply(node, "Mul", offset, byte_size(dtype))
    memory = moved(reader, node, to_address(reader, data_node, data), place)
    tensor = tensor_on_stack(reader, node, memory, shape or [], dtype_name(dtype))
    for name, number in (("strides", 3), ("shape", 2)):
        where = given.get(name)
        if where is not None and (name == "strides" or shape is None):
            set_field(reader, where, FIELDS[number], tensor, 0, reader.value(where))
    if shape is None:
        set_field(reader, node, FIELDS[4], tensor, 0, reader.value(given.require("ndim")))
    return TensorAt(tensor)


def _known(places: list[Place] | None) -> list[Dim] | None:
    """The numbers, if all of them are known before the program runs."""
    dims = [each for each in places or () if isinstance(each, Dim)]
    return dims if places is not None and len(dims) == len(places) else None


def _extents(reader: TirExpressionReader, node: ast.expr | None) -> list[Place] | None:
    """The numbers in `T.tvm_stack_make_shape(n, m)`; `None` if they are elsewhere."""
    match node:
        case ast.Call() if reader.aliases.name_in("tir", node.func) == "tvm_stack_make_shape":
            return [reader.index(each, reader.value(each)) for each in node.args]
        case _:
            return None


def _dtype(reader: TirExpressionReader, node: ast.expr) -> str:
    """The dtype that `T.float32(0)` or `T.Cast("float32", 0)` shows."""
    if isinstance(node, ast.Call):
        name = element_name(reader.aliases.name_in("tir", node.func) or "")
        texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
        for each in (name, *texts):
            if isinstance(each, str) and is_dtype_name(each):
                return each
    reader.fail(node, 'expected a number that shows the dtype, as T.float32(0) or T.Cast("float32", 0)')
