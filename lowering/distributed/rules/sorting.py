"""How tensors may be searched and sorted on several workers.

O1: `sort`, `argsort` and `topk` along every dimension but their axis.

S1: `where` along every dimension of the result, as binary operators.
S2: `argmax` and `argmin` along every dimension that stays.
S3: `bucketize` along every dimension of the values; all workers have the boundaries.
S4: `argmax` and `argmin` along their axis: workers tell each other the extremum of their tiles, and where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.dialects.builtin import f32, i64
from xdsl.ir import Operation, SSAValue

from lowering.distributed.factors import Factors, dims, named, shards
from lowering.distributed.local_shapes import LocalShapes
from lowering.distributed.rules.binary import elementwise
from relax_dialect.ops.binary import AddOp
from relax_dialect.ops.collective import AllGatherOp
from relax_dialect.ops.creation import FullOp
from relax_dialect.ops.gather import GatherElementsOp
from relax_dialect.ops.manipulation import SqueezeOp
from relax_dialect.ops.reduction import MaxOp, MinOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.sorting import ArgmaxOp, ArgminOp, ArgsortOp, BucketizeOp, SortOp, TopkOp, WhereOp
from relax_dialect.ops.values import PrimOp
from relax_dialect.struct_info.sharding import MeshAxis, tile_size
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, product
from tir_dialect.dtypes import byte_size


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
