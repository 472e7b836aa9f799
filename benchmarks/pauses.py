"""Parallel kernels that are called once in a while, in several processes.

After a pause the system may wake a worker on the processor of the caller and leave it there, where it runs once the
caller has done all the work. Whether it does differs between processes. `python -m benchmarks pauses`
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

SIZE = 256
PROCESSES = 6
CALLS = 12
SETTLED = 4
"""The last calls, from which the figure is taken."""
PAUSE = 0.1

COLUMNS = ("one thread, after pauses", "two threads, in a row", "two threads, after pauses")


def main() -> None:
    """Prints the time of a matrix product in each process."""
    print(f"\n## Calls after pauses of {PAUSE} s: product of {SIZE} x {SIZE} matrices, median of {SETTLED} calls\n")
    print("| process | " + " | ".join(COLUMNS) + " |\n|---" + "|---" * len(COLUMNS) + "|")
    for process in range(1, PROCESSES + 1):
        (alone,), (busy, rested) = _times(1, PAUSE), _times(2, 0, PAUSE)
        print(f"| {process} | {alone * 1e6:.0f} us | {busy * 1e6:.0f} us | {rested * 1e6:.0f} us |")


def _times(threads: int, *pauses: float) -> list[float]:
    """Seconds of a call after each of some pauses, in a process of its own."""
    code = f"from benchmarks.pauses import worker; worker({pauses!r})"
    environment = {**os.environ, "RELAX_NUM_THREADS": str(threads)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    return list(map(float, done.stdout.split()))


def worker(pauses: tuple[float, ...]) -> None:
    """Prints what `_times` gives."""
    call = _product()
    call()
    print(*(_settled(call, pause) for pause in pauses))


def _settled(call: Callable[[], object], pause: float) -> float:
    times: list[float] = []
    for _ in range(CALLS):
        time.sleep(pause)
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return median(times[-SETTLED:])


def _product() -> Callable[[], object]:
    import numpy as np
    import tvm_ffi

    from lowering import build
    from relax_dialect.builder import BlockBuilder
    from vm_dialect import VirtualMachine

    bb = BlockBuilder()
    with bb.function("main", {"x": ("m", "k"), "w": ("k", "n")}) as (x, w):
        bb.emit_func_output(x @ w)
    function = VirtualMachine(build(bb.get()))["main"]
    matrix = tvm_ffi.from_dlpack(np.ones((SIZE, SIZE), np.float32))
    return lambda: function(matrix, matrix)


if __name__ == "__main__":
    main()
