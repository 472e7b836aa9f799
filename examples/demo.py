"""What xdsl-relax does, in one screen: a program with unknown shapes, its way down, and one artefact for all shapes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

sys.path.insert(0, str(Path(__file__).parent))

import packed_functions

from lowering import build
from lowering.parsing import parse_module
from lowering.pipelines import RelaxToVMPass
from relax_dialect.interpreter import run as interpret
from vm_dialect import VirtualMachine

PROGRAM = Path(__file__).with_name("user_facing.mlir")
ENTRY = "relax_func"
SHAPES = ((2, 3, 4), (1, 1, 1), (0, 3, 5), (7, 5, 9), (64, 128, 33), (257, 129, 65))


def heading(text: str) -> None:
    """Prints a line that stands out."""
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n== {text}")


def excerpt(module: ModuleOp, op_name: str) -> None:
    """Prints the ops of one kind at the top of a module."""
    for op in module.ops:
        if op.name == op_name:
            print(op)


def lowered_to_vm(module: ModuleOp) -> ModuleOp:
    """The module as the virtual machine sees it."""
    result = module.clone()
    RelaxToVMPass().apply(Context(), result)
    return result


def numpy_reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """What the program computes."""
    return 2 * np.exp((x @ w).reshape(-1))


def milliseconds(call: Callable[[], object], repeats: int = 20) -> float:
    """The best time of a call."""
    times: list[float] = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e3


def run_shapes(function: Callable[..., object], module: ModuleOp) -> None:
    """One artefact on several shapes, against NumPy and the reference interpreter."""
    generator = np.random.default_rng(0)
    print(f"{'n':>5}{'k':>5}{'m':>5}  {'result':>14}  {'largest error':>13}  {'time':>9}")
    for n, k, m in SHAPES:
        x = generator.standard_normal((n, k), dtype=np.float32) / 8
        w = generator.standard_normal((k, m), dtype=np.float32) / 8
        result = np.from_dlpack(function(x, w))
        expected = numpy_reference(x, w)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(result, interpret(module, ENTRY, [x, w]), rtol=1e-4, atol=1e-5)
        error = float(np.max(np.abs(result - expected), initial=0))
        took = milliseconds(partial(function, x, w))
        print(f"{n:>5}{k:>5}{m:>5}  {result.shape!s:>14}  {error:>13.1e}  {took:>6.3f} ms")


def refuse_wrong_shapes(function: Callable[..., object]) -> None:
    """What a caller reads who passes shapes that do not fit."""
    try:
        function(np.zeros((2, 3), np.float32), np.zeros((4, 5), np.float32))
    except ValueError as error:
        print(f"ValueError: {error}")


NEXT = """relax-run examples/mvp.mlir --entry myfunc --random "f32[3,4]"
relax-opt examples/mvp.mlir -p legalize-ops
relax-translate examples/mvp.mlir --emit asm
python -c "import xdsl_relax as xr; print(xr.compile('examples/mvp.mlir'))"
docs/tutorials/quickstart.ipynb, a notebook; docs/tutorials/walkthrough.md, one program stage by stage"""


def main() -> int:
    """Runs the demonstration; 0 if everything agrees."""
    packed_functions.register()
    module = parse_module(PROGRAM.read_text(), PROGRAM.name)
    heading("A Relax program: n, k and m are not known, the shape of the weight not even its rank")
    excerpt(module, "relax.func")
    heading("The same for the virtual machine: checks, sizes as integers, one arena, calls of kernels")
    machine = lowered_to_vm(module)
    excerpt(machine, "vm.func")
    heading("One of the kernels: legalised from relax.matmul")
    print(next(op for op in machine.ops if op.name == "tir.prim_func" and "matmul" in str(op)))
    heading("Compiled once, to native code")
    begin = time.perf_counter()
    executable = build(module)
    function = VirtualMachine(executable)[ENTRY]
    print(
        f"{sum(len(native.code) for native in executable.native) / 1024:.0f} KiB of machine code "
        f"in {time.perf_counter() - begin:.2f} s (the second time it comes from the cache)"
    )
    heading("Run on several shapes; equal to NumPy and to the reference interpreter")
    run_shapes(function, module)
    heading("Called with shapes that do not fit")
    refuse_wrong_shapes(function)
    print(f"\nOne artefact served {len(SHAPES)} shapes and refused the wrong one.")
    heading("What to try next, after `source .venv/bin/activate`")
    print(NEXT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
