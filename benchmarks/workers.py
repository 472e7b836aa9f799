"""Transformers on one, two and four ranks of one thread: times of calls, what was predicted, and memory of weights.

Jobs take turns, a few calls each, so that what else the machine does disturbs all of them alike.
"""

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
from lowering.distributed.report import Machine, operations, predict

CALLS = 100
"""In a turn."""
TURNS = 15
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


class Job:
    """Ranks that call programs when they are told to."""

    def __init__(self, ranks: int, threads: int):
        mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
        command = [mpiexec, "-n", str(ranks), sys.executable, "-m", "benchmarks.workers"]
        environment = {**os.environ, "RELAX_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.started = self._answer()

    def _answer(self) -> dict[str, Any]:
        for line in self.process.stdout or ():
            if line.startswith("{"):
                return json.loads(line)
        raise RuntimeError("the ranks have ended")

    def turn(self, name: str) -> dict[str, float]:
        """Seconds of a call in the best case, and processor seconds of a call on rank 0."""
        assert self.process.stdin is not None
        print(name, file=self.process.stdin, flush=True)
        return self._answer()

    def end(self) -> None:
        """Ends the ranks."""
        self.process.communicate("\n", timeout=60)


def main() -> None:
    """Lets jobs take turns, and prints tables."""
    jobs = {key: Job(*key) for key in ((1, 2), *((ranks, 1) for ranks in RANKS))}
    for name, (module, plans, _, sizes) in programs().items():
        turns = [{key: job.turn(name) for key, job in jobs.items() if key[0] <= 2} for _ in range(TURNS)]
        turns[0] |= {key: job.turn(name) for key, job in jobs.items() if key[0] > 2}
        best = {key: min(turn[key]["seconds"] for turn in turns if key in turn) for key in jobs}
        measured = {key: {"seconds": best[key], "bytes": job.started[name]} for key, job in jobs.items()}
        _report(name, module, plans, sizes, measured, jobs[2, 1].started)
        ratios = sorted(turn[1, 2]["seconds"] / turn[2, 1]["seconds"] for turn in turns)
        works = sorted(turn[1, 2]["cpu"] / turn[2, 1]["cpu"] / 2 for turn in turns)
        print(
            f"  two ranks against two threads: {ratios[TURNS // 2]:.2f} of the speed (quartiles "
            f"{ratios[TURNS // 4]:.2f} and {ratios[-1 - TURNS // 4]:.2f}), processor time {works[TURNS // 2]:.2f}",
            flush=True,
        )
    for job in jobs.values():
        job.end()


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
    """What one rank does; the first one reads what to do, and answers."""
    from lowering.distributed.program import ShardedProgram
    from relax_dialect.ops.values import ConstantOp
    from vm_dialect.mpi import MPI

    comm, calls = MPI.COMM_WORLD, dict[str, Callable[[], object]]()
    found: dict[str, Any] = links()
    for name, (module, plans, arguments, _) in programs().items():
        annotate(module, {"x": plans}, {"x": comm.size})
        program = ShardedProgram(module, {"x": comm.size})
        calls[name] = partial(program.call_local, program.arguments(*arguments))
        used = [op for op in program.module.walk() if isinstance(op, ConstantOp) and next(iter(op.result.uses), None)]
        found[name] = sum(op.array.nbytes for op in used if op.array is not None)
    while True:
        if comm.rank == 0:
            print(json.dumps(found), flush=True)
        name = _told(comm)
        if name not in calls:
            return
        started = time.process_time()
        found = {"seconds": best(calls[name]), "cpu": (time.process_time() - started) / CALLS}


def _told(comm: Any) -> str:
    """A line of the standard input of the first rank; the other ones sleep until it comes."""
    line = np.zeros(64, np.uint8)
    if comm.rank == 0:
        text = sys.stdin.readline().strip().encode()
        line[: len(text)] = list(text)
    request = comm.Ibcast(line)
    while not request.Test():
        time.sleep(1e-3)
    comm.Barrier()
    return bytes(line).rstrip(b"\0").decode()


if __name__ == "__main__":
    measure()
