"""Tensors that workers share: how they are cut, and the views that a worker has of them."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from relax_dialect.inference import ONE, Inference
from relax_dialect.ops.collective import DividingOp, divided
from relax_dialect.ops.fields import dims
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.sharding import REPLICATE, MeshAxis, ShardingAttr, placements_of
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import DimLike
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.types import DimAttr


class PlacementOp(Operator, ABC):
    """Says how workers share a tensor.

    ```mlir
    %0 = relax.dist.annotate_sharding %x mesh = [2, p] placement = "S[0], R" axes = "x, y"
    ```

    The workers stand in a mesh of so many along each axis; the axes have names, `axis0, axis1` unless they are given.
    For each axis of it, the placement says that all workers have all (`R`), which dimension is cut into tiles, one for
    each (`S[0]`; `S[0:4]` where four elements each stay together), or that they have terms of a sum or another
    combination (`P`, `P[max]`). A tensor is written with the shape of the whole, of which a placement changes no value;
    its type says how it is shared.

    C1: the sizes of the mesh are at least 1.
    C2: the placement has `R`, `S[dimension]` or `P` for each axis of the mesh, and no dimension twice.
    C3: the dimensions are within the rank.
    C4: there is a name for each axis of the mesh, none twice.
    """

    mesh = prop_def(ArrayAttr[DimAttr])
    placement = prop_def(StringAttr)
    axes = opt_prop_def(StringAttr)
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, mesh: Sequence[DimLike], placement: str, axes: str | None = None):
        super().__init__([x], self.placement_properties(mesh, placement, axes))

    @staticmethod
    def placement_properties(mesh: Sequence[DimLike], placement: str, axes: str | None = None) -> dict[str, Attribute]:
        """The properties for the arguments of the constructor."""
        names = None if axes is None else StringAttr(axes)
        found: dict[str, Attribute] = {"mesh": dims(mesh), "placement": StringAttr(placement)}
        return found if names is None else found | {"axes": names}

    @classmethod
    def of(cls, x: SSAValue | Operation, sharding: ShardingAttr) -> PlacementOp:
        """The op for a sharding."""
        sizes = [axis.size for axis in sharding.mesh]
        names = ", ".join(axis.name for axis in sharding.mesh)
        return cls(x, sizes, ", ".join(map(str, sharding.placements)), names)

    @property
    def sharding(self) -> ShardingAttr:
        """The mesh and the placement."""
        return self._sharding(Inference(type(self), self.operand_types, self.properties))

    @classmethod
    def _sharding(cls, inference: Inference) -> ShardingAttr:
        sizes, text = inference.dims("mesh"), inference.string("placement")
        if any(size.constant_value is not None and size.constant_value < 1 for size in sizes):
            inference.fail(f"expected a mesh with sizes of at least 1, got [{', '.join(map(str, sizes))}]")  # C1
        try:
            placements = placements_of(text)
        except VerifyException:
            placements = ()
        if len(placements) != len(sizes) or (text.strip() and not placements):
            inference.fail(
                f'expected R, S[dimension] or P for each of the {len(sizes)} axes of the mesh, got "{text}"'
            )  # C2
        given = inference.optional_string("axes")
        names = (
            [f"axis{at}" for at in range(len(sizes))] if given is None else [each.strip() for each in given.split(",")]
        )
        if len(names) != len(sizes) or not all(map(str.isidentifier, names)) or len(set(names)) != len(names):
            inference.fail(f'expected {len(sizes)} different names for the axes of the mesh, got "{given}"')  # C4
        mesh = (MeshAxis(*pair) for pair in zip(names, sizes, strict=True))
        try:
            found = ShardingAttr(tuple(zip(mesh, placements, strict=True)))
            found.verify_rank(inference.tensor(0).rank)
        except VerifyException as error:
            inference.fail(str(error))  # C2, C3
        return found

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        return (inference.tensor(0).with_sharding(cls._sharding(inference)),)  # C1, C2, C3, C4


@op_definition
class AnnotateShardingOp(PlacementOp):
    """The tensor itself, which the workers share as the placement says."""

    name = "relax.dist.annotate_sharding"


@op_definition
class RedistributeOp(PlacementOp):
    """The tensor itself, which the workers share as the placement says from here on."""

    name = "relax.dist.redistribute"


@op_definition
class LocalViewOp(PlacementOp):
    """The tile of a tensor that a worker has: each dimension by the number of its tiles.

    What is computed with it is computed by each worker for itself, until a `relax.dist.global_view`.

    C1: the dimensions are multiples of the number of their tiles, which is constant.
    C2: no worker has a term of the tensor.
    """

    name = "relax.dist.local_view"

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        parts, x = tiles_of(inference, cls._sharding(inference)), inference.tensor(0)
        if x.dims is None:
            return (x,)
        dims = [
            None if dim is None else divided(inference, dim, parts.get(at, 1)) for at, dim in enumerate(x.dims)
        ]  # C1
        return (x.with_shape(dims),)


@op_definition
class GlobalViewOp(PlacementOp):
    """The tensor of which workers have such tiles: each dimension times the number of its tiles.

    C1: the number of tiles is constant.
    C2: no worker has a term of the tensor.
    """

    name = "relax.dist.global_view"

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        sharding, x = cls._sharding(inference), inference.tensor(0)
        parts = tiles_of(inference, sharding)
        if x.dims is None:
            return (x.with_sharding(sharding),)
        dims = [None if dim is None else dim * parts.get(at, 1) for at, dim in enumerate(x.dims)]
        return (x.with_shape(dims).with_sharding(sharding),)


def tiles_of(inference: Inference, sharding: ShardingAttr) -> dict[int, int]:
    """Into how many tiles dimensions are cut; fails unless these numbers are constant, and where workers have terms."""
    found: dict[int, int] = {}
    for dim, axis in sharding.shards.items():
        if axis.size.constant_value is None:
            inference.fail(f"expected a constant size of the mesh along axis {axis.name}, got {axis.size}")  # C1
        if sharding.units[dim] != 1:
            inference.fail(f"expected tiles of equal size, without units, got {sharding.text}")  # C1
        found[dim] = axis.size.constant_value
    if len(found) + sharding.placements.count(REPLICATE) != len(sharding.placements):
        inference.fail(f"expected placements R or S[dimension], got {sharding.text}")  # C2
    return found


@op_definition
class RedistributeReplicaToShardOp(DividingOp):
    """The worker's tile of a tensor that all workers have.

    ```mlir
    %0 = relax.dist.redistribute_replica_to_shard %x num_workers = 2 axis = 1
    %1 = relax.dist.redistribute_replica_to_shard %x num_workers = 2 group = "x" tile = n_x index = x_index
    ```

    Which worker of its group this is may be a dimension, the `index`; then nobody is asked.
    """

    name = "relax.dist.redistribute_replica_to_shard"

    index = opt_prop_def(DimAttr)

    def __init__(
        self,
        x: SSAValue | Operation,
        num_workers: int,
        axis: int = 0,
        group: str | None = None,
        tile: DimLike | None = None,
        index: DimLike | None = None,
    ):
        more = {} if index is None else {"index": dims([index]).data[0]}
        Operator.__init__(self, [x], self.dividing_properties(num_workers, axis, group, tile) | more)


def workers_that_share(op: PlacementOp) -> str | None:
    """What a program that runs as one lacks for a placement; nothing if its mesh has one worker."""
    sharding = op.sharding
    cut = [f"dimension {dim} in {axis.size} tiles" for dim, axis in sharding.shards.items() if axis.size != ONE]
    if sharding.workers == 1:
        return None
    if not cut:
        return f"has a copy for each of {sharding.workers or 'several'} workers, but a program runs as one"
    return f"has {' and '.join(cut)} for as many workers, but a program runs as one"
