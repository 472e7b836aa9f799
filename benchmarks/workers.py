"""Transformers on one, two and four ranks of one thread: times of calls, what was predicted, and memory of weights."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from examples.models.bert import BertConfig, sentence_embeddings
from examples.models.bert import random_weights as encoder_weights
from examples.models.llama import LlamaConfig, decoder, random_weights
from lowering.distributed.plans import BERT, LLAMA, LLAMA_CACHE, Plan, annotate
from lowering.distributed.prediction import Machine, operations, predict

CALLS = 30
RANKS = (1, 2, 4)
LARGE = (8, 64, 1024)
"""Numbers of workers that are only predicted."""

DECODER = LlamaConfig(512, 2, 8, 4, 1408, 4000)
ENCODER = BertConfig(hidden_size=384, num_hidden_layers=2, num_attention_heads=8, intermediate_size=1536)
BATCH, PAST, LENGTH = 1, 64, 64


def programs() -> dict[str, tuple[ModuleOp, list[Plan], list[np.ndarray], dict[str, int]]]:
    """A module, its plans, arguments, and the sizes of its symbols."""
    rng = np.random.default_rng(0)
    cache = (BATCH, PAST, DECODER.num_key_value_heads, DECODER.head_size)
    caches = [rng.standard_normal(cache).astype(np.float32) for _ in range(2 * DECODER.num_hidden_layers)]
    ids = rng.integers(0, 1000, (BATCH, LENGTH))
    sizes = {"batch": BATCH, "length": 1, "past": PAST}
    return {
        "decoder": (decoder(DECODER, random_weights(DECODER)), [LLAMA, LLAMA_CACHE], [ids[:, :1], *caches], sizes),
        "encoder": (
            sentence_embeddings(ENCODER, encoder_weights(ENCODER)),
            [BERT],
            [ids, np.ones_like(ids)],
            {"batch": BATCH, "length": LENGTH},
        ),
    }


def main() -> None:
    """Starts the ranks, whose first one says what it measured, and prints a table."""
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
    measured: dict[tuple[int, int], dict[str, Any]] = {}
    for ranks, threads in ((1, 2), *((ranks, 1) for ranks in RANKS)):
        command = [mpiexec, "-n", str(ranks), sys.executable, "-m", "benchmarks.workers"]
        environment = {**os.environ, "RELAX_NUM_THREADS": str(threads)}
        done = subprocess.run(command, check=True, timeout=900, capture_output=True, text=True, env=environment)
        line = next(line for line in done.stdout.splitlines() if line.startswith("{"))
        measured[ranks, threads] = json.loads(line)
    for name, (module, plans, _, sizes) in programs().items():
        _report(name, module, plans, sizes, {key: each[name] for key, each in measured.items()}, measured[2, 1])


def _report(
    name: str,
    module: ModuleOp,
    plans: Sequence[Plan],
    sizes: dict[str, int],
    measured: dict[tuple[int, int], dict[str, float]],
    links: dict[str, float],
) -> None:
    alone = measured[1, 1]["seconds"]
    symbols = {symbol: sizes.get(symbol, 1) for symbol in operations(module, "main").symbols}
    machine = Machine(links["latency"], links["bandwidth"], operations(module, "main").evaluate(symbols) / alone)
    annotate(module, {"x": list(plans)}, {"x": 2})
    print(f"{name}: one process of two threads {1e3 * measured[1, 2]['seconds']:.2f} ms")
    for found in predict(module, "x", (*RANKS, *LARGE), sizes, machine):
        text = f"  {found.workers:>4} ranks: predicted {1e3 * found.seconds:8.3f} ms"
        if (here := measured.get((found.workers, 1))) is not None:
            share = here["bytes"] / measured[1, 1]["bytes"]
            text += f", measured {1e3 * here['seconds']:8.3f} ms, {share:.0%} of the weights on rank 0"
        print(text, flush=True)


def best(call: Callable[[], object]) -> float:
    """The least seconds of a call."""
    times: list[float] = []
    for _ in range(CALLS):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def links() -> dict[str, float]:
    """Latency and bandwidth of rings, from all-reduces of a small and of a large array."""
    from vm_dialect.mpi import MPI

    comm, seconds = MPI.COMM_WORLD, list[float]()
    if comm.size == 1:
        return {}
    for size in (64, 1 << 18):
        x, out = np.ones(size, np.float32), np.empty(size, np.float32)
        seconds.append(best(partial(comm.Allreduce, x, out)))
    messages, sent = 2 * (comm.size - 1), 2 * (comm.size - 1) / comm.size * 4 * (1 << 18)
    return {"latency": seconds[0] / messages, "bandwidth": sent / max(seconds[1] - seconds[0], 1e-9)}


def measure() -> None:
    """What one rank does; the first one prints it."""
    from lowering.distributed.program import ShardedProgram
    from relax_dialect.ops.values import ConstantOp
    from vm_dialect.mpi import MPI

    ranks = MPI.COMM_WORLD.size
    found: dict[str, Any] = links()
    for name, (module, plans, arguments, _) in programs().items():
        annotate(module, {"x": plans}, {"x": ranks})
        program = ShardedProgram(module, {"x": ranks})
        own = program.arguments(*arguments)
        used = [op for op in program.module.walk() if isinstance(op, ConstantOp) and next(iter(op.result.uses), None)]
        size = sum(op.array.nbytes for op in used if op.array is not None)
        found[name] = {"seconds": best(partial(program.call_local, own)), "bytes": size}
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    measure()
