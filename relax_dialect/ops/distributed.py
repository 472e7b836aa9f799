"""Tensors that workers share: how they are cut, and the views that a worker has of them."""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def

from relax_dialect.inference import Inference
from relax_dialect.ops.collective import DividingOp, divided
from relax_dialect.ops.fields import integers
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.types import TensorType
from tir_dialect.ops.assembly_format import op_definition


class PlacementOp(Operator, ABC):
    """Says how workers share a tensor: `%0 = relax.dist.annotate_sharding %x mesh = [2, 3] placement = "S[0], R"`.

    The workers stand in a mesh of so many along each axis. For each axis of it, the placement says that all workers
    have all (`R`), or which dimension is cut into parts, one for each (`S[0]`). A tensor is written with the shape of
    the whole, of which a placement changes no value.

    C1: the sizes of the mesh are at least 1.
    C2: the placement has `R` or `S[dimension]` for each axis of the mesh, and no dimension twice.
    C3: the dimensions are within the rank.
    """

    mesh = prop_def(DenseArrayBase.constr(i64))
    placement = prop_def(StringAttr)
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, mesh: Sequence[int], placement: str):
        super().__init__([x], self.placement_properties(mesh, placement))

    @staticmethod
    def placement_properties(mesh: Sequence[int], placement: str) -> dict[str, Attribute]:
        """The properties for the arguments of the constructor."""
        return {"mesh": integers(mesh), "placement": StringAttr(placement)}

    @property
    def parts(self) -> dict[int, int]:
        """Into how many parts dimensions are cut."""
        return self._parts(Inference(type(self), self.operand_types, self.properties))

    @classmethod
    def _parts(cls, inference: Inference) -> dict[int, int]:
        mesh, text = inference.integers("mesh"), inference.string("placement")
        if any(size < 1 for size in mesh):
            inference.fail(f"expected a mesh with sizes of at least 1, got {list(mesh)}")  # C1
        words = [word.strip() for word in text.split(",")] if text.strip() else []
        found = [re.fullmatch(r"R|S\[(\d+)\]", word) for word in words]
        if len(words) != len(mesh) or not all(found):
            inference.fail(
                f'expected R or S[dimension] for each of the {len(mesh)} axes of the mesh, got "{text}"'
            )  # C2
        cut = [(int(each[1]), size) for each, size in zip(found, mesh, strict=True) if each is not None and each[1]]
        inference.axes([dimension for dimension, _ in cut], 1 + max((each for each, _ in cut), default=0))  # C2
        if (rank := inference.tensor(0).rank) is not None:
            inference.axes([dimension for dimension, _ in cut], rank)  # C3
        return dict(cut)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        cls._parts(inference)  # C1, C2, C3
        return (inference.tensor(0),)


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
    """The part of a tensor that a worker has: each dimension by the number of its parts.

    C1: the dimensions are multiples of the number of their parts.
    """

    name = "relax.dist.local_view"

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        parts, x = cls._parts(inference), inference.tensor(0)
        if x.dims is None:
            return (x,)
        dims = [
            None if dim is None else divided(inference, dim, parts.get(at, 1)) for at, dim in enumerate(x.dims)
        ]  # C1
        return (x.with_shape(dims),)


@op_definition
class GlobalViewOp(PlacementOp):
    """The tensor of which workers have such parts: each dimension times the number of its parts."""

    name = "relax.dist.global_view"

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        parts, x = cls._parts(inference), inference.tensor(0)
        if x.dims is None:
            return (x,)
        return (x.with_shape([None if dim is None else dim * parts.get(at, 1) for at, dim in enumerate(x.dims)]),)


@op_definition
class RedistributeReplicaToShardOp(DividingOp):
    """The worker's part of a tensor that all workers have.

    ```mlir
    %0 = relax.dist.redistribute_replica_to_shard %x num_workers = 2 axis = 1
    ```
    """

    name = "relax.dist.redistribute_replica_to_shard"


def missing_parts(op: PlacementOp) -> str | None:
    """Why a view of parts cannot be made: other workers have the rest; nothing where there is no rest."""
    cut = [f"dimension {dimension} in {count} parts" for dimension, count in op.parts.items() if count > 1]
    return f"has {' and '.join(cut)} for as many workers, but a program runs as one" if cut else None
