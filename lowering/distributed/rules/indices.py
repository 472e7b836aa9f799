"""How elements may be taken, scattered, searched and sorted on several workers.

G1: `gather_elements` along the axis of the indices, and along other dimensions that are as large in both operands.
G2: `gather_nd` along its batches, the dimensions of the indices, and those of the slices.
G3: `scatter_elements` along every dimension but its axis that is as large in all operands.
G4: `scatter_nd` along the dimensions of the slices.
G5: `one_hot` along the dimensions of the indices.
X1: `index_tensor` along the dimensions of the indices, and along those of the slices.
X2: `index_put` along the dimensions of the slices.
X3: `slice_scatter` along every dimension but its axis.
I1: `take` along every dimension of the tensor but its axis, and along every dimension of the indices.
I2: `strided_slice` along every dimension that it does not cut.
I3: `take` along its axis: each worker has a term of the result, which is 0 where another one has what an index means.
O1: `sort`, `argsort` and `topk` along every dimension but their axis.
S1: `where` along every dimension of the result, as binary operators.
S2: `argmax` and `argmin` along every dimension that stays.
S3: `bucketize` along every dimension of the values; all workers have the boundaries.
S4: `argmax` and `argmin` along their axis: workers tell each other the extremum of their tiles, and where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.dialects.builtin import IntegerType, Signedness, f32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.distributed.factors import Factors, Labels, broadcast, dims, named, shards
from lowering.distributed.local_shapes import LocalShapes
from lowering.distributed.rules.shapes import elementwise
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
from relax_dialect.ops.collective import AllGatherOp
from relax_dialect.ops.creation import FullOp, ZerosOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.gather import (
    GatherElementsOp,
    GatherNDOp,
    IndexPutOp,
    IndexTensorOp,
    OneHotOp,
    ScatterElementsOp,
    ScatterNDOp,
    SliceScatterOp,
)
from relax_dialect.ops.indexing import StridedSliceOp, TakeOp
from relax_dialect.ops.manipulation import ExpandDimsOp, SqueezeOp
from relax_dialect.ops.reduction import MaxOp, MinOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.sorting import ArgmaxOp, ArgminOp, ArgsortOp, BucketizeOp, SortOp, TopkOp, WhereOp
from relax_dialect.ops.values import PrimOp
from relax_dialect.struct_info.sharding import MeshAxis, tile_size
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant, product
from tir_dialect.dtypes import byte_size


@shards(GatherElementsOp)
def gather_elements(op: GatherElementsOp) -> Factors:
    """G1."""
    x, indices = dims(op.x), dims(op.indices)
    axis = op.axis.value.data % len(x)
    common = [at for at, pair in enumerate(zip(x, indices, strict=True)) if at != axis and pair[0] == pair[1]]
    labels = tuple(f"d{at}" if at in common else None for at in range(len(x)))
    taken = tuple("i" if at == axis else label for at, label in enumerate(labels))
    return Factors([labels, taken], [taken])


@shards(GatherNDOp)
def gather_nd(op: GatherNDOp) -> Factors | None:
    """G2; how many coordinates there are has to be known."""
    batches, rank, shape = op.batch_dims.value.data, len(dims(op.x)), dims(op.indices)
    count = shape[-1].constant_value if shape[-1] is not None else None
    if count is None:
        return None
    batch, slices = named("b", batches), named("d", rank - batches - count)
    positions = (*batch, *named("i", len(shape) - 1 - batches))
    return Factors([(*batch, *(None,) * count, *slices), (*positions, None)], [(*positions, *slices)])


@shards(ScatterElementsOp)
def scatter_elements(op: ScatterElementsOp) -> Factors:
    """G3."""
    rank = len(dims(op.x))
    axis = op.axis.value.data % rank if rank else 0
    labels: Labels = tuple(
        f"d{at}" if at != axis and len(set(sizes)) == 1 else None
        for at, sizes in enumerate(zip(dims(op.x), dims(op.indices), dims(op.updates), strict=True))
    )
    return Factors([labels, labels, labels], [labels])


@shards(ScatterNDOp)
def scatter_nd(op: ScatterNDOp) -> Factors | None:
    """G4; how many coordinates there are has to be known."""
    rank, shape = len(dims(op.x)), dims(op.indices)
    count = shape[-1].constant_value if shape[-1] is not None else None
    if count is None:
        return None
    slices = named("d", rank - count)
    x: Labels = (*(None,) * count, *slices)
    return Factors([x, (None,) * len(shape), (*(None,) * (len(shape) - 1), *slices)], [x])


@shards(OneHotOp)
def one_hot(op: OneHotOp) -> Factors:
    """G5."""
    labels, rank = named("i", len(dims(op.indices))), len(dims(op.result))
    axis = op.axis.value.data % rank
    return Factors([labels, (), ()], [(*labels[:axis], None, *labels[axis:])])


@shards(IndexTensorOp)
def index_tensor(op: IndexTensorOp) -> Factors:
    """X1; an index that is broadcast along a dimension is needed as a whole there."""
    count, rank, shape = len(op.indices), len(dims(op.x)), dims(op.result)
    positions, slices = shape[: len(shape) - rank + count], named("d", rank - count)
    indices, taken = broadcast([dims(index) for index in op.indices], positions, "i")
    return Factors([(*(None,) * count, *slices), *indices], [(*taken, *slices)])


@shards(IndexPutOp)
def index_put(op: IndexPutOp) -> Factors:
    """X2; values that are broadcast along a dimension are needed as a whole there."""
    count, values = len(op.indices), dims(op.values)
    slices = dims(op.x)[count:]
    own = values[max(0, len(values) - len(slices)) :]
    (put,), labels = broadcast([own], slices)
    x: Labels = (*(None,) * count, *labels)
    indices: list[Labels] = [(None,) * len(dims(index)) for index in op.indices]
    return Factors([x, (*(None,) * (len(values) - len(own)), *put), *indices], [x])


@shards(SliceScatterOp)
def slice_scatter(op: SliceScatterOp) -> Factors:
    """X3."""
    rank = len(dims(op.x))
    labels = named("d", rank, [op.axis.value.data % rank])
    return Factors([labels, labels], [labels])


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


@shards(SortOp, ArgsortOp, TopkOp)
def along_axis(op: SortOp | ArgsortOp | TopkOp) -> Factors:
    """O1."""
    rank = len(dims(op.x))
    labels = named("d", rank, [op.axis.value.data % rank] if rank else [])
    return Factors([labels], [labels for _ in op.results])


shards(WhereOp)(elementwise)  # S1


@shards(ArgmaxOp, ArgminOp)
def position_of_extremum(op: ArgmaxOp | ArgminOp) -> Factors | None:
    """S2, S4."""
    if op.axis is None:
        return None
    rank = len(dims(op.x))
    axis = op.axis.value.data % rank
    stay = named("d", rank, [axis])
    result = stay if op.keepdims is not None else (*stay[:axis], *stay[axis + 1 :])
    extent = dims(op.x)[axis]
    if extent is None:
        return Factors([stay], [result])
    whole = (*stay[:axis], "k", *stay[axis + 1 :])
    rest = product(dim for at, dim in enumerate(dims(op.x)) if at != axis and dim is not None)
    dtype = op.x.type.dtype if isinstance(op.x.type, TensorType) else None
    brought = rest * (byte_size(i64) + byte_size(f32 if dtype is None else dtype))
    local = partial(_among_tiles, op, axis, extent)
    return Factors([whole], [result], local={"k": local}, brought={"k": brought})


def _among_tiles(
    op: ArgmaxOp | ArgminOp,
    axis: int,
    extent: Dim,
    operands: Sequence[SSAValue],
    along: MeshAxis,
    shapes: LocalShapes,
) -> SSAValue:
    """The position in the whole, of which each worker has a tile along the axis.

    Tiles are in order, so the first of equal extrema is in the first tile that has it:

    ```mlir
    %greatest = relax.ccl.allgather (relax.max %tile)
    %places = relax.ccl.allgather (relax.argmax %tile + %begin)
    %result = relax.gather_elements %places, (relax.argmax %greatest)
    ```
    """
    (x,) = operands

    def made(op: Operation) -> SSAValue:
        shapes.insert(op)
        return op.results[0]

    def of_all(value: SSAValue) -> SSAValue:
        count = along.size.constant_value
        assert count is not None  # a factor is admitted only then
        return made(AllGatherOp(value, count, axis=axis, group=along.name))

    search, extremum = (ArgmaxOp, MaxOp) if isinstance(op, ArgmaxOp) else (ArgminOp, MinOp)
    begin = shapes.indices[along.name] * tile_size(extent, along.size)
    offset = made(FullOp(made(ShapeOp([])), made(PrimOp(begin)), i64))
    extrema = of_all(made(extremum(x, [axis], keepdims=True)))
    positions = of_all(made(AddOp(made(search(x, axis, keepdims=True)), offset)))
    found = made(GatherElementsOp(positions, made(search(extrema, axis, keepdims=True)), axis))
    return found if op.keepdims is not None else made(SqueezeOp(found, [axis]))


@shards(BucketizeOp)
def bucketize(op: BucketizeOp) -> Factors:
    """S3."""
    labels = named("d", len(dims(op.x)))
    return Factors([labels, (None,)], [labels])
