"""Sharded programs: `xr.distributed.ShardedProgram(module, {"x": 4})` in a script that `mpiexec -n 4` starts."""

from lowering.distributed.plans import (
    BERT,
    LLAMA,
    LLAMA_CACHE,
    annotate,
    assign_stages,
    data_parallel,
    expert_parallel,
    sequence_parallel,
    tensor_parallel,
)
from lowering.distributed.program import PipelinedProgram, ShardedProgram, shard
from relax_dialect.interpreter.workers import run_workers

__all__ = [
    "BERT",
    "LLAMA",
    "LLAMA_CACHE",
    "PipelinedProgram",
    "ShardedProgram",
    "annotate",
    "assign_stages",
    "data_parallel",
    "expert_parallel",
    "run_workers",
    "sequence_parallel",
    "shard",
    "tensor_parallel",
]
