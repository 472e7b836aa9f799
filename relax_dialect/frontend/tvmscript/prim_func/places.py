"""Where the elements of a vector are: consecutive ones of the last dimension, or at indices that are vectors."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from relax_dialect.frontend.tvmscript.prim_func.buffers import bind_buffer
from relax_dialect.frontend.tvmscript.prim_func.dtypes import MAX_LANES
from relax_dialect.frontend.tvmscript.prim_func.lanes import cast_vector
from relax_dialect.frontend.tvmscript.prim_func.linear import known_difference
from relax_dialect.frontend.tvmscript.prim_func.promotion import promoted
from relax_dialect.frontend.tvmscript.prim_func.values import Axis, Buffer, Region, Vector
from relax_dialect.frontend.tvmscript.prim_func.views import element_index
from tir_dialect.dims import constant
from tir_dialect.ops.flatten import FlattenOp
from tir_dialect.ops.scalars import RampOp
from tir_dialect.te.expr import INDEX
from tir_dialect.types import BufferType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader


def places_of(reader: TirExpressionReader, node: ast.AST, region: Region) -> tuple[list[SSAValue], int | None]:
    """The indices of a row of elements, and how many they are if they are consecutive."""
    indices: list[SSAValue] = []
    lanes: int | None = None
    for number, axis in enumerate(region.axes):
        if isinstance(axis.lower, Vector):
            indices.append(cast_vector(reader, node, axis.lower, INDEX).value)
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


def in_a_row(reader: TirExpressionReader, node: ast.AST, region: Region) -> Region:
    """Elements that go on beyond a row of the last dimension, in the buffer as one row; other regions as they are."""
    buffer, axes = region.buffer, region.axes
    inner = 1 if buffer.lanes is not None else 0
    place = len(axes) - 1 - inner
    axis = axes[place] if 0 <= place < len(axes) else None
    if axis is None or axis.upper is None or axis.step != 1 or any(not each.is_point for each in axes[:place]):
        return region
    row = Region(buffer, (axis,))
    _, count = places_of(reader, node, row)
    if count is None or (not inner and not _is_longer(buffer, count)):
        return region
    flat = reader.emit(node, lambda: FlattenOp(buffer.value))
    reader.emit(node, flat.verify_)
    reader.block.add_op(flat)
    first = element_index(reader, node, region)
    lanes = count * (buffer.lanes or 1)
    upper = reader.index(node, reader.apply(node, "Add", first, lanes))
    return Region(bind_buffer(reader, SSAValue.get(flat.view, type=BufferType), "row"), (Axis(first, upper),))


def _is_longer(buffer: Buffer, count: int) -> bool:
    length = buffer.type.shape[-1].constant_value
    return buffer.type.rank > 1 and length is not None and count > length
