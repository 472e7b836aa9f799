"""Whole networks from ONNX, dynamic dimensions: latency, build time and peak memory beside other systems.

Every system runs in a process of its own, in turns, so that a ratio holds when the machine's speed drifts; results are
compared with those of ONNX Runtime without its optimisations. A build is all from the start of that process, which has
a file, to a function that can be called: the imports of a system's packages too, and the processes that it starts.
`python -m benchmarks.models [--systems a,b] [--networks a,b] [--threads 1,2] [--builds 5] [--precision bf16]`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.systems import SYSTEMS, reference
from benchmarks.timing import Row, print_table

ROUNDS = 3
COLD_BUILDS = 5
CASE_SECONDS = 0.7
ROUNDED = 0.1
"""The tolerance where values are rounded to few bits."""
REFERENCE = "reference"


@dataclass
class Figures:
    """What one system did with one network: the best of all rounds; of builds, every one."""

    builds: list[float] = field(default_factory=list[float])
    """Seconds of the clock, from the start of a process that finds nothing cached."""
    processors: list[float] = field(default_factory=list[float])
    """Seconds of all processors for those."""
    rebuilds: list[float] = field(default_factory=list[float])
    """Of processes that find what another has cached."""
    memory: int = 0
    """Bytes in memory at most, above those of an interpreter that has imported nothing."""
    latency: dict[str, float] = field(default_factory=dict[str, float])
    error: str = ""


def worker(
    system: str, network: str, threads: int, precision: str, folder: Path, begin: float, calls: bool
) -> dict[str, Any]:
    """Builds, and times calls if asked, in a process of its own that was started at `begin` of `time.perf_counter`."""
    before = _forget_peak()
    run = (reference if system == REFERENCE else SYSTEMS[system])(str(folder / f"{network}.onnx"), threads, precision)
    build, processor = time.perf_counter() - begin, sum(os.times()[:4])
    if not calls:
        return {"build": build, "processor": processor}
    # Only now: a system that needs neither pays for neither.
    import numpy as np

    from benchmarks.networks import NETWORKS

    latency: dict[str, float] = {}
    for case, inputs in NETWORKS[network].cases.items():
        call = run(inputs())
        np.savez(folder / f"{system}_{network}_{case}", *map(np.from_dlpack, call()))
        latency[case] = _best(call)
    return {"build": build, "processor": processor, "latency": latency, "memory": _resident("VmHWM") - before}


def _forget_peak() -> int:
    """Bytes in memory now, from where on the greatest size is counted."""
    Path("/proc/self/clear_refs").write_text("5")
    return _resident("VmRSS")


def _resident(kind: str) -> int:
    """Bytes of this process in memory: `VmRSS` now, `VmHWM` at most."""
    (line,) = (each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith(f"{kind}:"))
    return int(line.split()[1]) * 1024


def _best(call: Any) -> float:
    times: list[float] = []
    end = time.perf_counter() + CASE_SECONDS
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 10_000):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def in_process(
    system: str, network: str, threads: int, precision: str, folder: Path, cache: Path, calls: bool
) -> dict[str, Any]:
    """The worker's figures, or why there are none."""
    command = [sys.executable, "-m", "benchmarks.models", "--worker", system, network, str(threads), precision]
    command += [str(folder), "calls" if calls else "", str(time.perf_counter())]  # one clock for all processes
    limits = {name: str(threads) for name in ("OMP_NUM_THREADS", "TVM_NUM_THREADS")}
    # Python's own files are compiled once, as those of an installed package are.
    places = {"RELAX_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **limits, **places})
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def measure(
    systems: Sequence[str], network: str, threads: int, precision: str, folder: Path, colds: int
) -> dict[str, Figures]:
    """All systems on one network, in turns: `colds` builds without a cache, then rounds with one and with calls.

    One more build comes first and does not count: it brings every system's files into memory.
    """
    from benchmarks.networks import NETWORKS

    (folder / f"{network}.onnx").write_bytes(NETWORKS[network].model().SerializeToString())
    found = {system: Figures() for system in systems}
    for index in range(-1, colds + ROUNDS):
        is_cold = index < colds
        for system, figures in found.items():
            if figures.error:
                continue
            cache = folder / f"cache {index}" if is_cold else folder / "cache 0"
            given = in_process(system, network, threads, precision, folder, cache, not is_cold)
            figures.error = given.get("error", "")
            if not figures.error and index >= 0:
                _note(figures, given, is_cold)
    return found


def _note(figures: Figures, given: dict[str, Any], is_cold: bool) -> None:
    if is_cold:
        figures.builds.append(given["build"])
        figures.processors.append(given["processor"])
        return
    figures.rebuilds.append(given["build"])
    figures.memory = max(figures.memory, given["memory"])
    for case, seconds in given["latency"].items():
        figures.latency[case] = min(seconds, figures.latency.get(case, math.inf))


def differences(system: str, network: str, folder: Path, is_rounded: bool) -> float:
    """The largest difference from the reference, relative to the largest value.

    The root of the mean square where values are rounded to few bits: the next integer of a logit may change a box.
    """
    import numpy as np

    from benchmarks.networks import NETWORKS

    worst = 0.0
    for case in NETWORKS[network].cases:
        mine, theirs = (np.load(folder / f"{name}_{network}_{case}.npz") for name in (system, REFERENCE))
        for key in theirs.files:
            if mine[key].shape != theirs[key].shape:
                return math.inf
            scale = float(np.max(np.abs(theirs[key]), initial=1e-9))
            apart = np.abs(mine[key] - theirs[key])
            worst = max(worst, float(np.sqrt(np.mean(apart**2)) if is_rounded else np.max(apart, initial=0)) / scale)
    return worst


def _tolerance(network: str, precision: str) -> float:
    from benchmarks.networks import NETWORKS

    return max(NETWORKS[network].tolerance, 0 if precision == "f32" else ROUNDED)


def _median(values: Sequence[float]) -> float:
    """The upper one of an even number. The library's function would be imported by every process that is timed."""
    return sorted(values)[len(values) // 2]


def report(network: str, threads: int, precision: str, found: dict[str, Figures], folder: Path) -> list[float]:
    """Prints a network's table; our ratios to the best peer."""
    for system, figures in found.items():
        if figures.error:
            print(f"{network}: {system} failed: {figures.error}")
    ready = {system: figures for system, figures in found.items() if not figures.error}
    if importlib.util.find_spec("onnxruntime") is not None:
        in_process(REFERENCE, network, threads, precision, folder, folder, calls=True)
        tolerance = _tolerance(network, precision)
        is_rounded = tolerance >= ROUNDED
        wrong = {system: differences(system, network, folder, is_rounded) for system in ready}
        print(", ".join(f"{system} differs by {value:.1e}" for system, value in wrong.items()))
        if not wrong.pop("ours", 0) <= tolerance:
            raise AssertionError(f"{network}: ours differs from the reference by more than {tolerance}")
        # A peer may round otherwise, which random weights make much of.
        limit = 1.0 if is_rounded else tolerance
        for system in (each for each, value in wrong.items() if not value <= limit):
            print(f"{network}: {system} is left out, its results differ")
            del ready[system]
    if "ours" not in ready:
        return []
    ours = ready.pop("ours")
    rows = [
        Row(f"{network} {case}", seconds, {name: each.latency[case] for name, each in ready.items()})
        for case, seconds in ours.latency.items()
    ]
    ratios = [min(row.peers.values()) / row.ours for row in rows if row.peers]
    kinds = {"build": "builds", "build, processor": "processors", "build again": "rebuilds"}
    for label, kind in kinds.items():
        for name, best in (("", min), (", median", _median)):
            others = {peer: best(getattr(each, kind)) for peer, each in ready.items()}
            rows.append(Row(f"{label}{name}", best(getattr(ours, kind)), others))
    print_table(f"{network}, {precision}, {threads} thread{'s' * (threads > 1)}", rows)
    memory = {"ours": ours.memory, **{name: each.memory for name, each in ready.items()}}
    print("peak memory: " + ", ".join(f"{name} {size >> 20} MB" for name, size in memory.items()))
    return ratios


def main(arguments: Sequence[str] = ()) -> None:
    """Runs what is asked for; by default everything that is installed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models")
    parser.add_argument("--worker", nargs=7, help=argparse.SUPPRESS)
    parser.add_argument("--systems", default=",".join(name for name in SYSTEMS if name == "ours" or _installed(name)))
    parser.add_argument("--networks", help="all by default")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--builds", type=int, default=COLD_BUILDS, help="how many times to build without a cache")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32", help="of products and convolutions")
    options = parser.parse_args(arguments)
    if options.worker:
        system, network, threads, precision, folder, calls, begin = options.worker
        print(json.dumps(worker(system, network, int(threads), precision, Path(folder), float(begin), bool(calls))))
        return
    from benchmarks.networks import NETWORKS

    networks = (options.networks or ",".join(NETWORKS)).split(",")
    if unknown := [name for name in networks if name not in NETWORKS]:
        parser.error(f"no network {', '.join(unknown)}, there are {', '.join(NETWORKS)}")
    for threads in map(int, options.threads.split(",")):
        ratios: list[float] = []
        for network in networks:
            with tempfile.TemporaryDirectory() as folder:
                systems, colds = options.systems.split(","), max(options.builds, 1)
                found = measure(systems, network, threads, options.precision, Path(folder), colds)
                ratios += report(network, threads, options.precision, found, Path(folder))
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"\ngeometric mean over the best peer, {threads} threads: {mean:.2f}x, least {min(ratios):.2f}x")


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


if __name__ == "__main__":
    main(sys.argv[1:])
