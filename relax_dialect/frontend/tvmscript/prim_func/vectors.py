"""Vectors: `A[i:i + 8]`, `A[T.Ramp(i, 2, 8)]`, `T.Broadcast(x, 8)`, and the elements of buffers that they are."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from relax_dialect.frontend.tvmscript.prim_func.dtypes import MAX_LANES
from relax_dialect.frontend.tvmscript.prim_func.lanes import cast_vector, spread
from relax_dialect.frontend.tvmscript.prim_func.places import in_a_row, places_of
from relax_dialect.frontend.tvmscript.prim_func.promotion import converted, promoted
from relax_dialect.frontend.tvmscript.prim_func.values import Buffer, Region, Vector
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from tir_dialect.dtypes import lookup
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.ops.scalars import RampOp
from tir_dialect.te.expr import INDEX, DType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader


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
    return broadcast_value(reader, node, reader.value(given.require("value")), _lanes(reader, given.require("lanes")))


def broadcast_value(
    reader: TirExpressionReader, node: ast.AST, value: object, lanes: int, dtype: DType | None = None
) -> Vector:
    """A scalar in every lane, converted to a dtype if one is given."""
    operand = reader.scalar_operand(node, value)
    scalar = reader.emit(node, lambda: promoted(operand)[0] if dtype is None else converted(operand, dtype))
    return spread(reader, reader.values(node, scalar)[0], scalar.dtype, lanes)


def _lanes(reader: TirExpressionReader, node: ast.expr) -> int:
    lanes = reader.integer(node)
    if not 0 < lanes <= MAX_LANES:
        reader.fail(node, f"expected 1 to {MAX_LANES} lanes, got {lanes}")
    return lanes


# Memory


def load_lanes(
    reader: TirExpressionReader,
    node: ast.AST,
    buffer: Buffer,
    indices: Sequence[SSAValue],
    lanes: int | None,
    mask: SSAValue | None = None,
) -> Vector:
    """The elements at the indices, of which one may be a vector; lanes that the mask has not are 0."""
    if (guard := reader.mask) is not None:
        mask = guard.value if mask is None else both(reader, node, guard, Vector(mask, guard.dtype)).value
    op = reader.emit(node, lambda: LoadOp(buffer.value, indices, lanes=lanes, mask=mask))
    reader.emit(node, op.verify_)
    return Vector(reader.insert(op), lookup(buffer.type.dtype).type)


def both(reader: TirExpressionReader, node: ast.AST, one: Vector, other: Vector) -> Vector:
    """The lanes that two masks have."""
    if one.lanes != other.lanes:
        reader.fail(node, f"expected a mask of {one.lanes} lanes, got {other.lanes}")
    return Vector(reader.insert(arith.AndIOp(one.value, other.value)), one.dtype)


def store_lanes(
    reader: TirExpressionReader,
    node: ast.AST,
    buffer: Buffer,
    indices: Sequence[SSAValue],
    row: Vector,
    mask: SSAValue | None = None,
) -> None:
    """Writes the elements at the indices, converted to the dtype of the buffer, where the mask has them."""
    row = cast_vector(reader, node, row, lookup(buffer.type.dtype).type)
    op = reader.emit(node, lambda: StoreOp(row.value, buffer.value, indices, mask=mask))
    reader.emit(node, op.verify_)
    reader.block.add_op(op)


def as_vector(reader: TirExpressionReader, node: ast.AST, value: object) -> Vector | None:
    """A vector, or the elements of a region as one; `None` for anything else, a single element too."""
    if isinstance(value, Vector):
        return value
    if isinstance(value, Region) and value.is_vector:
        region = in_a_row(reader, node, value)
        indices, lanes = places_of(reader, node, region)
        return load_lanes(reader, node, region.buffer, indices, lanes)
    return None


def store_vector(reader: TirExpressionReader, node: ast.AST, region: Region, value: object) -> None:
    """`A[i:i + 8] = v`."""
    region = in_a_row(reader, node, region)
    indices, lanes = places_of(reader, node, region)
    row = as_vector(reader, node, value)
    if row is None:
        count = lanes or next(axis.lower.lanes for axis in region.axes if isinstance(axis.lower, Vector))
        row = broadcast_value(reader, node, value, count, lookup(region.buffer.type.dtype).type)
    if lanes is not None and lanes != row.lanes:
        reader.fail(node, f"expected a vector of {lanes} lanes, got {row.lanes}")
    store_lanes(reader, node, region.buffer, indices, row)
