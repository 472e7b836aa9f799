"""From annotations to the program of each worker."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering.distributed.lower_distributed import LowerDistributedPass
from lowering.distributed.merge_collectives import MergeCollectivesPass
from lowering.distributed.overlap_collectives import OverlapCollectivesPass
from lowering.distributed.propagate_sharding import PropagateShardingPass


def shard(module: ModuleOp, mesh: Mapping[str, int] | None = None) -> ModuleOp:
    """The program of a worker, for a program of which some tensors are annotated, which is left as it is.

    `mesh` gives axes other sizes than the program says.
    """
    local = module.clone()
    sizes = dict(mesh or {})
    passes = PropagateShardingPass(sizes), LowerDistributedPass(sizes), MergeCollectivesPass(), OverlapCollectivesPass()
    for each in passes:
        each.apply(Context(), local)
    return local
