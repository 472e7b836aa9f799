"""How long builds take, without a cache and again in a new process: symbolic kernels, and whole networks from ONNX.

Seconds of the processor, which tell more than the clock on a machine that others use, and of the clock, of the best of
`ROUNDS` processes. "Kernels cached" is what a change of the program costs that leaves kernels alone, "again" finds the
whole executable. `python -m benchmarks compile`, or `python -m benchmarks.compile [name ...]`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

ROUNDS = 2

UNARY = ("exp", "tanh", "sigmoid", "sqrt", "sin", "cos", "erf", "log", "floor", "rsqrt")
BINARY = ("add", "multiply", "subtract", "divide", "maximum", "minimum")
REDUCTIONS = ("sum", "mean", "max", "min", "prod")


def matmul() -> Any:
    """A product whose three sizes are symbols."""
    from relax_dialect.builder import BlockBuilder

    bb = BlockBuilder()
    with bb.function("main", {"x": ("m", "k"), "w": ("k", "n")}) as (x, w):
        bb.emit_func_output(x @ w)
    return bb.get()


def kernels() -> Any:
    """50 functions of one kernel each: maps, reductions, normalisations, products, changes of order; symbolic sizes."""
    from relax_dialect.builder import BlockBuilder, op

    bb = BlockBuilder()
    shapes: dict[str, Mapping[str, tuple[str | int, ...]]] = {}
    bodies: dict[str, Callable[..., Any]] = {}

    def add(name: str, body: Callable[..., Any], **parameters: tuple[str | int, ...]) -> None:
        bodies[name], shapes[name] = body, parameters

    for name in UNARY:
        add(name, getattr(op, name), x=("n", "m"))
    for name in BINARY:
        add(name, getattr(op, name), x=("n", "m"), y=("n", "m"))
        add(f"{name}_row", getattr(op, name), x=("n", "m"), y=("m",))
    for name in REDUCTIONS:
        for axis in (0, 1):
            add(f"{name}_{axis}", partial(getattr(op, name), axes=[axis]), x=("n", "m"))
    for rank in (2, 3):
        names = ("a", "b", "c")[:rank]
        add(f"softmax_{rank}", partial(op.nn.softmax, axis=1), x=names)
        add(f"log_softmax_{rank}", partial(op.nn.log_softmax, axis=1), x=names)
        add(f"gelu_{rank}", op.nn.gelu, x=names)
        add(f"silu_{rank}", op.nn.silu, x=names)
        add(f"transpose_{rank}", op.permute_dims, x=names)
    for width in (64, 256, 768, 1024):
        add(f"product_{width}", op.matmul, x=("n", width), w=(width, width))
        add(f"many_{width}", op.matmul, x=("b", "n", width), w=("b", width, "m"))
    for name, parameters in shapes.items():
        with bb.function(name, parameters) as values:
            bb.emit_func_output(bodies[name](*values))
    assert len(shapes) == 50, len(shapes)
    return bb.get()


def network(name: str) -> Any:
    """A network from ONNX; the model itself is made before."""
    from benchmarks.networks import NETWORKS

    return NETWORKS[name].model()


PROGRAMS: Mapping[str, Callable[[], Any]] = {
    "symbolic matmul": matmul,
    "50 kernels": kernels,
    **{name: lambda name=name: network(name) for name in ("mlp", "bert", "llama", "mobilenet", "resnet", "chain")},
}


def _clock() -> tuple[float, float]:
    return time.process_time(), time.perf_counter()


def worker(name: str, kernels_only: bool) -> dict[str, tuple[float, float]]:
    """Seconds of processor and clock for each step; in a process of its own."""
    # tvm-ffi imports PyTorch where it is installed, for symbols of which nothing is used here
    sys.modules.setdefault("torch", None)
    import onnx

    begin = _clock()
    import_module("relax_dialect.frontend.onnx.importer")
    from lowering import build
    from relax_dialect.frontend.onnx import import_model
    from vm_dialect import VirtualMachine

    found: dict[str, tuple[float, float]] = {}

    def step(label: str) -> None:
        nonlocal begin
        now = _clock()
        found[label], begin = (now[0] - begin[0], now[1] - begin[1]), now

    step("packages")
    if kernels_only:
        from lowering.compiler.program_cache import ProgramCache

        ProgramCache.load = lambda self: None
    program = PROGRAMS[name]()
    begin = _clock()
    module = import_model(program) if isinstance(program, onnx.ModelProto) else program
    step("import")
    VirtualMachine(build(module))
    step("build")
    return found


def in_process(name: str, cache: Path, kernels_only: bool = False) -> dict[str, tuple[float, float]]:
    """The figures of the worker in a new process with a cache of its own."""
    # Python's own files are compiled once, as those of an installed package are.
    python = {"PYTHONDONTWRITEBYTECODE": ""}
    environment = {**os.environ, **python, "RELAX_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.compile", "--worker", name, str(int(kernels_only))]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(name: str) -> dict[str, dict[str, tuple[float, float]]]:
    """The best of each step: cold, with the kernels in the cache, and again."""
    found: dict[str, list[dict[str, tuple[float, float]]]] = {"cold": [], "kernels cached": [], "again": []}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            found["cold"].append(in_process(name, Path(folder)))
            found["kernels cached"].append(in_process(name, Path(folder), kernels_only=True))
            found["again"].append(in_process(name, Path(folder)))
    return {
        way: {step: tuple(map(min, zip(*(each[step] for each in steps), strict=True))) for step in steps[0]}
        for way, steps in found.items()
    }


def main(arguments: Sequence[str] = ()) -> None:
    """Prints a table of all programs, or of those that are named."""
    if arguments[:1] == ["--worker"]:
        print(json.dumps(worker(arguments[1], arguments[2] == "1")))
        return
    if unknown := [name for name in arguments if name not in PROGRAMS]:
        raise SystemExit(f"no program {', '.join(unknown)}, there are {', '.join(PROGRAMS)}")
    print("\n## Builds: seconds of the processor / of the clock\n")
    print("| | cold | kernels cached | again | of which ONNX import | Python packages |")
    print("|---|---|---|---|---|---|")
    for name in arguments or PROGRAMS:
        found = measure(name)
        cells = [name]
        for steps in found.values():
            cells.append(_cell([steps["import"], steps["build"]]))
        cells += [_cell([found["again"]["import"]]), _cell([found["again"]["packages"]])]
        print(f"| {' | '.join(cells)} |", flush=True)


def _cell(parts: Sequence[tuple[float, float]]) -> str:
    processor, clock = map(sum, zip(*parts, strict=True))
    return f"{processor:.2f} / {clock:.2f}"


if __name__ == "__main__":
    main(sys.argv[1:])
