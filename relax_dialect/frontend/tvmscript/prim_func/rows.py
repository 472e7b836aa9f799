"""Vectors by way of memory: their bits as another dtype, some of their lanes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.prim_func.addresses import ADDRESS, names_handle, to_address
from relax_dialect.frontend.tvmscript.prim_func.buffers import alloc
from relax_dialect.frontend.tvmscript.prim_func.dtypes import split_dtype
from relax_dialect.frontend.tvmscript.prim_func.foreign import typed_arguments
from relax_dialect.frontend.tvmscript.prim_func.lanes import cast_vector, named_dtype
from relax_dialect.frontend.tvmscript.prim_func.promotion import promoted
from relax_dialect.frontend.tvmscript.prim_func.values import Axis, Buffer, Region, Vector, pointer_to
from relax_dialect.frontend.tvmscript.prim_func.vectors import as_vector, broadcast_value, load_lanes, store_lanes
from relax_dialect.frontend.tvmscript.prim_func.views import view
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from tir_dialect import te
from tir_dialect.dims import constant, product
from tir_dialect.dtypes import lookup
from tir_dialect.ops.memory import StoreOp
from tir_dialect.te.coerce import is_index
from tir_dialect.te.expr import DType
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.types import BufferType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader

_INDEX_BITS = "int64"


def in_memory(reader: TirExpressionReader, node: ast.AST, rows: Sequence[Vector]) -> Buffer:
    """Vectors one behind the other in memory of their own."""
    dtype = _in_buffers(reader, node, rows[0].dtype)
    total = sum(row.lanes for row in rows)
    row_buffer = alloc(reader, node, BufferType([total], lookup(dtype).type, scope="local"), "row")
    place = 0
    for row in rows:
        start = reader.dim_value(node, constant(place))
        store_lanes(reader, node, row_buffer, [start], row)
        place += row.lanes
    return row_buffer


def _in_buffers(reader: TirExpressionReader, node: ast.AST, dtype: DType) -> DType:
    """A dtype that buffers have: indices are kept as 64 bits."""
    return named_dtype(reader, node, _INDEX_BITS) if is_index(dtype) else dtype


def reinterpret(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.reinterpret("int32x4", v)`: the bits of a scalar or vector as another dtype, with any number of lanes."""
    given = typed_arguments(reader, node, "T.reinterpret", "value")
    if names_handle(reader, given.require("dtype")):
        return to_address(reader, node, _bits(reader, given.require("value")))
    bare, lanes = split_dtype(reader.text(given.require("dtype")))
    value_node, target = given.require("value"), named_dtype(reader, node, bare)
    value = reader.value(value_node)
    row = as_vector(reader, value_node, value)
    if row is None and lanes is None:
        operand = reader.scalar_operand(value_node, value)
        return reader.emit(node, lambda: te.reinterpret(promoted(operand)[0], target))
    memory = in_memory(reader, node, [row]) if row is not None else _scalar_in_memory(reader, value_node, value)
    count = lanes or 1
    source, seen = memory.type, BufferType([count], lookup(target).type, scope="local")
    if product(source.shape) * lookup(source.dtype).bytes != constant(count * lookup(seen.dtype).bytes):
        reader.fail(node, f"expected as many bits as {bare}{'' if lanes is None else f'x{lanes}'} has, got {source}")
    other = view(reader, node, pointer_to(memory), seen)
    first = reader.dim_value(node, constant(0))
    if lanes is None:
        return reader.load(node, Region(other, (Axis(constant(0)),)))
    return load_lanes(reader, node, other, [first], lanes)


def _bits(reader: TirExpressionReader, node: ast.expr) -> object:
    """A pointer, or a number that is one."""
    value = reader.value(node)
    return te.reinterpret(value, ADDRESS) if isinstance(value, Scalar) and value.dtype != ADDRESS else value


def _scalar_in_memory(reader: TirExpressionReader, node: ast.AST, value: object) -> Buffer:
    return in_memory(reader, node, [broadcast_value(reader, node, value, 1)])


def shuffle(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.Shuffle([v, w], [0, 5])`: lanes of vectors or scalars; one lane is a scalar."""
    given = Arguments(reader.source, node, "T.Shuffle", "vectors indices span")
    vectors, places = given.require("vectors"), given.require("indices")
    if not isinstance(vectors, ast.List | ast.Tuple) or not isinstance(places, ast.List | ast.Tuple):
        reader.fail(node, "T.Shuffle expected a list of vectors and a list of lanes")
    memory = in_memory(reader, node, _of_one_dtype(reader, node, vectors.elts))
    lanes = [Region(memory, (Axis(reader.index(each, reader.value(each))),)) for each in places.elts]
    if len(lanes) == 1:
        return reader.load(node, lanes[0])
    chosen = alloc(reader, node, BufferType([len(lanes)], memory.type.dtype, scope="local"), "row")
    for place, lane in enumerate(lanes):
        at, value = reader.dim_value(node, constant(place)), reader.values(node, reader.load(node, lane))[0]
        reader.block.add_op(StoreOp(value, chosen.value, [at]))
    return load_lanes(reader, node, chosen, [reader.dim_value(node, constant(0))], len(lanes))


def _of_one_dtype(reader: TirExpressionReader, node: ast.AST, parts: Sequence[ast.expr]) -> list[Vector]:
    """Vectors, scalars as vectors of one lane, all of the dtype of the first one."""
    if not parts:
        reader.fail(node, "expected at least one vector")
    values = [(part, reader.value(part)) for part in parts]
    rows = [as_vector(reader, part, value) or broadcast_value(reader, part, value, 1) for part, value in values]
    return [cast_vector(reader, node, row, rows[0].dtype) for row in rows]


def half(reader: TirExpressionReader, node: ast.Call) -> Vector:
    """`T.vectorlow(dtype, v)`, `T.vectorhigh(dtype, v)`: the first or the second half of the lanes."""
    name = (reader.aliases.name_in("tir", node.func) or "").removeprefix("vector")
    given = typed_arguments(reader, node, f"T.vector{name}", "vector")
    row = as_vector(reader, node, reader.value(given.require("vector")))
    if row is None or row.lanes % 2:
        reader.fail(node, "expected a vector with an even number of lanes")
    memory, count = in_memory(reader, node, [row]), row.lanes // 2
    start = reader.dim_value(node, constant(count if name == "high" else 0))
    return load_lanes(reader, node, memory, [start], count)


def combined(reader: TirExpressionReader, node: ast.Call) -> Vector:
    """`T.vectorcombine(dtype, v, w)`: the lanes of one vector behind those of another one."""
    given = typed_arguments(reader, node, "T.vectorcombine", "first second")
    rows = _of_one_dtype(reader, node, [given.require("first"), given.require("second")])
    memory = in_memory(reader, node, rows)
    first = reader.dim_value(node, constant(0))
    return load_lanes(reader, node, memory, [first], sum(row.lanes for row in rows))
