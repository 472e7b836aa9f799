"""Collectives of compiled programs against raw mpi4py: two ranks, the best of many calls, in microseconds.

Ours are the builtin with messages of MPI and with shared memory, and what native code calls.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

WORKERS = 2
CALLS = 300
SIZES = (256, 16_384, 1 << 20)
"""Elements of `f32`."""


def main() -> None:
    """Starts the ranks, the first of which prints."""
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
    command = [mpiexec, "-n", str(WORKERS), sys.executable, "-m", "benchmarks.collectives"]
    subprocess.run(command, check=True, timeout=600)


def best(call: Callable[..., object], *arguments: object) -> float:
    """The least time of a call on this rank, in microseconds."""
    times: list[float] = []
    for _ in range(CALLS):
        started = time.perf_counter()
        call(*arguments)
        times.append(time.perf_counter() - started)
    return 1e6 * min(times)


def measure() -> None:
    """One line for each size."""
    import tvm_ffi

    from vm_dialect.builtins import register_globals
    from vm_dialect.builtins.collective import allreduce
    from vm_dialect.mpi import MPI, join_mpi
    from vm_dialect.tensors import from_numpy

    comm = MPI.COMM_WORLD
    for size in SIZES:
        x, out = np.ones(size, np.float32), np.empty(size, np.float32)
        call = ("x", WORKERS, "sum", from_numpy(x), from_numpy(out))
        raw = best(comm.Allreduce, x, out, MPI.SUM)
        join_mpi({"x": WORKERS}, shared_memory=False)
        messages = best(allreduce, *call)
        join_mpi({"x": WORKERS})
        register_globals()
        memory = best(allreduce, *call)
        native = best(tvm_ffi.get_global_func("vm.builtin.ccl_allreduce"), *call)
        if comm.rank == 0:
            print(
                f"allreduce of {4 * size:>8} B: mpi4py {raw:8.1f} us, messages {messages:8.1f} us, "
                f"shared memory {memory:8.1f} us, of native code {native:8.1f} us",
                flush=True,
            )


if __name__ == "__main__":
    measure()
