"""`cut-constants`: a worker has its tiles of the constants only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.diagnostics import fail
from lowering.distributed.lower_distributed import MESH
from lowering.registry import Pass
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.distributed import RedistributeReplicaToShardOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.sharding import ShardingAttr, coordinates, tile_bounds
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dtypes import from_numpy
from tir_dialect.weights import Weight, WeightAttr


@dataclass(frozen=True)
class CutConstantsPass(Pass):
    """Replaces constants of which a worker takes its tile by these tiles. The program is then that of one worker.

    Before:

    ```mlir
    %0 = relax.constant "w" : !relax.tensor<[8, 6], f32>
    %1 = relax.dist.redistribute_replica_to_shard %0 num_workers = 2 axis = 1 group = "x" tile = 3 index = x_index
    ```

    After, for `rank=1`:

    ```mlir
    %1 = relax.constant "w[x = 1]" : !relax.tensor<[8, 3], f32>
    ```

    Constants whose elements are not in this process stay.
    """

    name = "cut-constants"
    requires = ("relax.dist.redistribute_replica_to_shard",)

    rank: int
    """The number of the worker."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Cuts the constants of every function of a worker."""
        for func in [inner for inner in op.ops if isinstance(inner, FuncOp)]:
            mesh = func.attributes.get(MESH)
            if not isinstance(mesh, ShardingAttr):
                continue
            if not 0 <= self.rank < (mesh.workers or 0):
                fail(func, f"expected a rank below {mesh.workers}, got {self.rank}")
            sizes = {axis.name: axis.size.constant_value or 1 for axis in mesh.mesh}
            apply_patterns(func, [TileOfConstant(coordinates(sizes, self.rank))])


@dataclass(frozen=True)
class TileOfConstant(RewritePattern):
    """A tile of a constant is a constant: `tile(constant w)  ->  constant w[x = 1]`."""

    at: Mapping[str, int]
    """The index of the worker along each axis."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: RedistributeReplicaToShardOp, rewriter: PatternRewriter) -> None:
        constant, group = op.x.owner, op.group_name
        if not isinstance(constant, ConstantOp) or (array := constant.array) is None or op.index is None:
            return
        begin, end = tile_bounds(array.shape[op.along], op.num_workers.value.data, self.at[group])
        tile = np.ascontiguousarray(array[(slice(None),) * op.along + (slice(begin, end),)])
        name = constant.weight_name
        given = Weight(f"{name}[{group} = {self.at[group]}]", tile) if name is not None else Weight.of_content(tile)
        made = ConstantOp(WeightAttr(given), TensorType(tile.shape, from_numpy(tile.dtype)))
        made.result.name_hint = op.result.name_hint
        rewriter.insert(made)
        if made.result.type == op.result.type:
            rewriter.replace(op, [], [made.result])
        else:
            rewriter.replace(op, MatchCastOp(made.result, op.result.type))
