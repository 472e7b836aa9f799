"""How elements may be taken on several workers.

I1: `take` along every dimension of the tensor but its axis, and along every dimension of the indices.
I2: `strided_slice` along every dimension that it does not cut.
I3: `take` along its axis: each worker has a term of the result, which is 0 where another one has what an index means.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.dialects.builtin import IntegerType, Signedness, i64
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.distributed.factors import Factors, dims, named, shards
from lowering.distributed.local_shapes import LocalShapes
from relax_dialect.ops.binary import (
    AddOp,
    FloorModOp,
    GreaterEqualOp,
    LessOp,
    LogicalAndOp,
    MaximumOp,
    MinimumOp,
    SubtractOp,
)
from relax_dialect.ops.creation import FullOp, ZerosOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.indexing import StridedSliceOp, TakeOp
from relax_dialect.ops.manipulation import ExpandDimsOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.sorting import WhereOp
from relax_dialect.ops.values import PrimOp
from relax_dialect.struct_info.sharding import MeshAxis, tile_size
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant

_UNSIGNED = IntegerType(64, Signedness.UNSIGNED)


@shards(TakeOp)
def take(op: TakeOp) -> Factors:
    """I1, I3; a worker that has no such element has a zero of the dtype, which has to be known."""
    x, indices = len(dims(op.x)), named("i", len(dims(op.indices)))
    axis = 0 if op.axis is None else op.axis.value.data % x
    extent, dtype = dims(op.x)[axis], _dtype(op.x)
    labels = named("d", x, [axis])
    result = (*labels[:axis], *indices, *labels[axis + 1 :])
    if extent is None or dtype is None:
        return Factors([labels, indices], [result])
    table = (*labels[:axis], "k", *labels[axis + 1 :])
    local = partial(_own_slices, op, axis, extent, dtype)
    return Factors([table, indices], [result], {"k": "sum"}, local={"k": local})


def _own_slices(
    op: TakeOp,
    axis: int,
    extent: Dim,
    dtype: Attribute,
    operands: Sequence[SSAValue],
    along: MeshAxis,
    shapes: LocalShapes,
) -> SSAValue:
    """What a worker adds to the result of `take` along an axis of which it has a tile.

    ```mlir
    %local = relax.subtract %position, %begin
    %slices = relax.take %tile, %local axis = 0 mode = "clip"
    %result = relax.where %is_own, %slices, %zero
    ```
    """
    x, indices = operands

    def made(op: Operation) -> SSAValue:
        shapes.insert(op)
        return op.results[0]

    shape = made(ShapeOp([]))

    def scalar(value: Dim, dtype: Attribute = i64) -> SSAValue:
        return made(FullOp(shape, made(PrimOp(value)), dtype))

    def as_dtype(x: SSAValue, dtype: Attribute) -> SSAValue:
        return x if _dtype(x) == dtype else made(AstypeOp(x, dtype))

    # Unsigned numbers may be too large for `i64` until they are positions.
    wide = _UNSIGNED if _dtype(indices) == _UNSIGNED else i64
    position, zero = as_dtype(indices, wide), scalar(constant(0))
    if op.mode.data == "wrap":
        position = made(FloorModOp(position, scalar(extent, wide)))
    else:
        if op.mode.data == "fast" and wide == i64:
            is_negative = made(LessOp(position, zero))
            position = made(WhereOp(is_negative, made(AddOp(position, scalar(extent))), position))
        position = made(MinimumOp(position, scalar(extent - 1, wide)))
        if wide == i64:
            position = made(MaximumOp(position, zero))
    begin = shapes.indices[along.name] * tile_size(extent, along.size)
    local = made(SubtractOp(as_dtype(position, i64), scalar(begin)))
    is_in = made(GreaterEqualOp(local, zero))
    is_own = made(LogicalAndOp(is_in, made(LessOp(local, scalar(shapes.tile(extent, along))))))
    if trailing := len(dims(op.x)) - axis - 1:
        is_own = made(ExpandDimsOp(is_own, range(-trailing, 0)))
    slices = made(TakeOp(x, local, axis, "clip"))
    return made(WhereOp(is_own, slices, made(ZerosOp(shape, dtype))))


def _dtype(value: SSAValue) -> Attribute | None:
    return value.type.dtype if isinstance(value.type, TensorType) else None


@shards(StridedSliceOp)
def strided_slice(op: StridedSliceOp) -> Factors:
    """I2."""
    rank = len(dims(op.x))
    labels = named("d", rank, [axis % rank for axis in op.axes.get_values()])
    return Factors([labels], [labels])
