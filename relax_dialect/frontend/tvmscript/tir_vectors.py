"""Vectors: `A[i:i + 8]`, `A[T.Ramp(i, 2, 8)]`, `T.Broadcast(x, 8)`, and arithmetic on them lane by lane."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import IndexType, IntegerAttr, VectorType
from xdsl.ir import Operation, SSAValue

from relax_dialect.frontend.tvmscript.arguments import Arguments
from relax_dialect.frontend.tvmscript.tir_linear import known_difference
from relax_dialect.frontend.tvmscript.tir_promotion import common_dtype, converted, promoted
from relax_dialect.frontend.tvmscript.tir_values import Axis, Buffer, Region, Vector
from tir_dialect.dims import constant
from tir_dialect.dtypes import lookup
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.ops.scalars import RampOp
from tir_dialect.te.coerce import is_bool
from tir_dialect.te.conversions import to_dtype
from tir_dialect.te.emit.casts import emit_cast, value_type
from tir_dialect.te.emit.tables import op_table
from tir_dialect.te.expr import INDEX, DType
from tir_dialect.types import BufferType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.tir_expressions import TirExpressionReader

_NAMES = {
    "Add": "add",
    "Sub": "subtract",
    "Mul": "multiply",
    "Divide": "divide",
    "Negative": "negative",
    "FloorDiv": "floordiv",
    "FloorMod": "floormod",
    "Max": "maximum",
    "Min": "minimum",
    "max": "maximum",
    "min": "minimum",
    "abs": "absolute",
    "fabs": "absolute",
    "pow": "power",
    "power": "power",
    "shift_left": "left_shift",
    "shift_right": "right_shift",
    "nearbyint": "round",
    "Select": "select",
}
"""What the lane-wise functions of `T` are called by the tables of scalar functions, where not the same."""

MAX_LANES = 1 << 16


def ramp(reader: TirExpressionReader, node: ast.Call) -> Vector:
    """`T.Ramp(base, stride, lanes)`: indices."""
    given = Arguments(reader.source, node, "T.Ramp", "base stride lanes span")
    base, step = given.require("base"), given.require("stride")
    lanes = _lanes(reader, given.require("lanes"))
    values = [reader.index_value(each, reader.value(each)) for each in (base, step)]
    return Vector(reader.insert(RampOp(values[0], values[1], lanes)), INDEX)


def broadcast(reader: TirExpressionReader, node: ast.Call) -> Vector:
    """`T.Broadcast(x, lanes)`: the same in every lane."""
    given = Arguments(reader.source, node, "T.Broadcast", "value lanes span")
    lanes = _lanes(reader, given.require("lanes"))
    operand = reader.read_scalar(given.require("value"))
    scalar = reader.emit(node, lambda: promoted(operand)[0])
    return _spread(reader, reader.values(node, scalar)[0], scalar.dtype, lanes)


def _lanes(reader: TirExpressionReader, node: ast.expr) -> int:
    lanes = reader.integer(node)
    if not 0 < lanes <= MAX_LANES:
        reader.fail(node, f"expected 1 to {MAX_LANES} lanes, got {lanes}")
    return lanes


def _spread(reader: TirExpressionReader, value: SSAValue, dtype: DType, lanes: int) -> Vector:
    return Vector(reader.insert(vector.BroadcastOp(value, VectorType(value_type(dtype), [lanes]))), dtype)


# Memory


def load_vector(reader: TirExpressionReader, node: ast.Call, buffer: Buffer) -> Vector:
    """`A.vload([i, j], "float32x4")`."""
    given = Arguments(reader.source, node, "vload", "begin dtype")
    begin = given.require("begin")
    places = begin.elts if isinstance(begin, ast.List | ast.Tuple) else [begin]
    lanes = reader.text(given.require("dtype")).partition("x")[2]
    if not lanes.isdigit() or len(places) != buffer.type.rank or not 0 < int(lanes) <= MAX_LANES:
        reader.fail(node, f"expected {buffer.type.rank} places and a dtype with lanes, as float32x4")
    indices = [reader.index_value(each, reader.value(each)) for each in places]
    return _loaded(reader, node, buffer, indices, int(lanes))


def _loaded(
    reader: TirExpressionReader, node: ast.AST, buffer: Buffer, indices: Sequence[SSAValue], lanes: int | None
) -> Vector:
    op = reader.emit(node, lambda: LoadOp(buffer.value, indices, lanes=lanes))
    reader.emit(node, op.verify_)
    return Vector(reader.insert(op), lookup(buffer.type.dtype).type)


def _places(reader: TirExpressionReader, node: ast.AST, region: Region) -> tuple[list[SSAValue], int | None]:
    """The indices of a row of elements, and how many they are if they are consecutive."""
    indices: list[SSAValue] = []
    lanes: int | None = None
    for number, axis in enumerate(region.axes):
        if isinstance(axis.lower, Vector):
            indices.append(axis.lower.value)
        elif axis.upper is None:
            indices.append(reader.index_value(node, axis.lower))
        else:
            count = _length(reader, node, axis)
            if number + 1 == len(region.axes) and axis.step == 1 and lanes is None:
                indices.append(reader.index_value(node, axis.lower))
                lanes = count
            else:
                ends = reader.index_value(node, axis.lower), reader.index_value(node, constant(axis.step))
                indices.append(reader.insert(RampOp(ends[0], ends[1], count)))
    return indices, lanes


def _length(reader: TirExpressionReader, node: ast.AST, axis: Axis) -> int:
    """The number of elements of a range, which has to be known."""
    if axis.upper is None or isinstance(axis.lower, Vector):
        reader.fail(node, "expected a range of indices")
    upper, lower = axis.upper, axis.lower
    difference = reader.emit(node, lambda: promoted(upper, lower))
    span = known_difference(difference[0], difference[1])
    if span is None or axis.step <= 0 or not 0 < span <= MAX_LANES:
        reader.fail(node, "expected a range of constant, positive length, as A[i:i + 8]")
    return -(-span // axis.step)


def as_vector(reader: TirExpressionReader, node: ast.AST, value: object) -> Vector | None:
    """A vector, or the elements of a region as one."""
    if isinstance(value, Vector):
        return value
    if isinstance(value, Region):
        indices, lanes = _places(reader, node, value)
        return _loaded(reader, node, value.buffer, indices, lanes)
    return None


def store_vector(reader: TirExpressionReader, node: ast.AST, region: Region, value: object) -> None:
    """`A[i:i + 8] = v`."""
    indices, lanes = _places(reader, node, region)
    dtype = lookup(region.buffer.type.dtype).type
    row = as_vector(reader, node, value)
    if row is None:
        operand = reader.scalar_operand(node, value)
        scalar = reader.emit(node, lambda: converted(operand, dtype))
        count = lanes or next(axis.lower.lanes for axis in region.axes if isinstance(axis.lower, Vector))
        row = _spread(reader, reader.values(node, scalar)[0], dtype, count)
    row = _cast(reader, node, row, dtype)
    if lanes is not None and lanes != row.lanes:
        reader.fail(node, f"expected a vector of {lanes} lanes, got {row.lanes}")
    op = reader.emit(node, lambda: StoreOp(row.value, region.buffer.value, indices))
    reader.emit(node, op.verify_)
    reader.block.add_op(op)


# Arithmetic


def apply_to_vectors(reader: TirExpressionReader, node: ast.AST, name: str, operands: Sequence[object]) -> Vector:
    """A function, lane by lane; scalars count for every lane."""
    rows = [as_vector(reader, node, each) for each in operands]
    known = [row for row in rows if row is not None]
    lanes = known[0].lanes
    if any(row.lanes != lanes for row in known):
        reader.fail(node, f"expected vectors of {lanes} lanes, got {', '.join(str(row.lanes) for row in known)}")
    if name.startswith("cast:"):
        return _cast(reader, node, known[0], reader.emit(node, lambda: to_dtype(name.partition(":")[2])))
    dtype = known[0].dtype
    for row in known[1:]:
        other, before = row.dtype, dtype
        dtype = reader.emit(node, lambda other=other, before=before: common_dtype(before, other))
    values: list[SSAValue] = []
    for row, operand in zip(rows, operands, strict=True):
        if row is None:
            number = reader.scalar_operand(node, operand)
            scalar = reader.emit(node, lambda number=number: converted(number, dtype))
            row = _spread(reader, reader.values(node, scalar)[0], dtype, lanes)
        values.append(_cast(reader, node, row, dtype).value)
    make = op_table(dtype).get(_NAMES.get(name, name))
    if make is None:
        reader.fail(node, f"{name} is not taken on vectors of {dtype}; write a loop, T.vectorized(lanes)")
    return Vector(reader.insert(reader.emit(node, lambda: make(*values))), dtype)


def _cast(reader: TirExpressionReader, node: ast.AST, row: Vector, dtype: DType) -> Vector:
    """Every lane converted, one after the other in memory of its own: there are no conversions of vectors."""
    if row.dtype == dtype:
        return row
    if is_bool(dtype) or isinstance(row.dtype, IndexType) or isinstance(dtype, IndexType):
        reader.fail(node, f"vectors of {row.dtype} are not converted to {dtype}; write a loop, T.vectorized(lanes)")
    before, after = (AllocBufferOp(BufferType([row.lanes], kind, scope="local")) for kind in (row.dtype, dtype))
    first, count = (arith.ConstantOp(IntegerAttr(number, INDEX)) for number in (0, row.lanes))
    loop = ForOp(count.result, name_hint="lane")
    lane = loop.induction_var
    reader.block.add_ops([before, after, first, count, StoreOp(row.value, before.buffer, [first.result]), loop])
    body = loop.body.block

    def insert(op: Operation) -> SSAValue:
        body.add_op(op)
        return op.results[0]

    converted_lane = emit_cast(insert, insert(LoadOp(before.buffer, [lane])), row.dtype, dtype)
    body.add_op(StoreOp(converted_lane, after.buffer, [lane]))
    return Vector(reader.insert(LoadOp(after.buffer, [first.result], lanes=row.lanes)), dtype)
