"""Kernels scheduled by hand: the same formulas and steps here and in TVM. `python -m benchmarks scheduled`

Ours are compiled twice, with symbols for the sizes and with constants; those of TVM with constants only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contestants import Call, Contestant
from benchmarks.timing import in_processes, measure_in_turns

ROUNDS, SECONDS = 15, 0.01

Sizes = Sequence[Any]
"""Numbers or symbols."""


@dataclass(frozen=True)
class Case:
    """A formula, its schedule, and sizes."""

    name: str
    formula: Callable[[Any, Sizes], list[Any]]
    """From the module `te` and sizes to placeholders and the result."""
    steps: Callable[[Any], None]
    """What is done with a schedule."""
    sizes: tuple[int, ...]
    operations: float
    """Additions and multiplications."""


def product(te: Any, sizes: Sizes) -> list[Any]:
    """`C = A @ B`."""
    n, m, k = sizes
    a, b = te.placeholder((n, k), "float32", "A"), te.placeholder((k, m), "float32", "B")
    r = te.reduce_axis((0, k), "r")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], r), name="C")]


def blur(te: Any, sizes: Sizes) -> list[Any]:
    """A mean of three rows, then of three columns."""
    n, m = sizes
    a = te.placeholder((n + 2, m + 2), "float32", "A")
    b = te.compute((n, m + 2), lambda i, j: (a[i, j] + a[i + 1, j] + a[i + 2, j]) / 3.0, name="B")
    return [a, te.compute((n, m), lambda i, j: (b[i, j] + b[i, j + 1] + b[i, j + 2]) / 3.0, name="C")]


def in_blocks(sch: Any) -> None:
    """Blocks of 32 x 32, sums in memory."""
    block = sch.get_sblock("C")
    i, j, r = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 32])
    j0, j1 = sch.split(j, [None, 32])
    r0, r1 = sch.split(r, [None, 4])
    sch.reorder(i0, j0, r0, r1, i1, j1)
    sch.vectorize(j1)
    sch.parallel(i0)
    sch.decompose_reduction(block, r0)


def in_tiles(sch: Any, rows: int = 32, *, unrolled: bool = False) -> None:
    """Blocks whose sums are in a cache."""
    block = sch.get_sblock("C")
    i, j, r = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, rows])
    j0, j1 = sch.split(j, [None, 32])
    r0, r1 = sch.split(r, [None, 4])
    sch.reorder(i0, j0, r0, r1, i1, j1)
    sch.reverse_compute_at(sch.cache_write(block, 0, "global"), j0)
    if unrolled:
        sch.unroll(i1)
        sch.unroll(r1)
    sch.vectorize(j1)
    sch.parallel(i0)
    sch.decompose_reduction(block, r0)


def in_registers(sch: Any) -> None:
    """Blocks of 8 x 32 whose sums are in registers."""
    in_tiles(sch, 8, unrolled=True)


def fused(sch: Any) -> None:
    """The first stage in tiles of the second."""
    i, j = sch.get_loops(sch.get_sblock("C"))
    i0, i1 = sch.split(i, [None, 32])
    j0, j1 = sch.split(j, [None, 256])
    sch.reorder(i0, j0, i1, j1)
    sch.compute_at(sch.get_sblock("B"), j0)
    sch.vectorize(sch.split(j1, [None, 16])[1])
    sch.vectorize(sch.split(sch.get_loops(sch.get_sblock("B"))[-1], [None, 16])[1])
    sch.parallel(i0)


CASES = (
    Case("product in blocks of 32 x 32", product, in_blocks, (1024, 1024, 1024), 2 * 1024.0**3),
    Case("product in blocks of 32 x 32, cached", product, in_tiles, (1024, 1024, 1024), 2 * 1024.0**3),
    Case("product in tiles of 8 x 32 in registers", product, in_registers, (1024, 1024, 1024), 2 * 1024.0**3),
    Case("blur in two stages, fused in tiles", blur, fused, (2048, 2048), 6.0 * 2048**2),
)


def _ours(case: Case, *, symbolic: bool) -> Call:
    from xdsl.dialects.builtin import ModuleOp

    from lowering.compiler.kernels import compile_prim_funcs
    from tir_dialect import te
    from tir_dialect.schedule import Schedule
    from vm_dialect.tensors import from_numpy

    sizes = [te.var(f"n{axis}") for axis in range(len(case.sizes))] if symbolic else case.sizes
    func = te.create_prim_func(case.formula(te, sizes), name="main")
    case.steps(Schedule(func))
    function = compile_prim_funcs(ModuleOp([func])).packed("main")
    tensors = [from_numpy(_aligned(array)) for array in _arrays(case)]

    def call() -> Any:
        function(*tensors)
        return tensors[-1]

    return call


def _tvm(case: Case, threads: int) -> Call | None:
    os.environ["TVM_NUM_THREADS"] = str(threads)
    try:
        import tvm
        from tvm import te
    except ImportError:
        return None
    from llvmlite import binding

    schedule = tvm.s_tir.Schedule(te.create_prim_func(case.formula(te, case.sizes)))
    case.steps(schedule)
    function = tvm.compile(schedule.mod, target={"kind": "llvm", "mcpu": binding.get_host_cpu_name()})["main"]
    tensors = [tvm.runtime.tensor(array) for array in _arrays(case)]

    def call() -> Any:
        function(*tensors)
        return tensors[-1].numpy()

    return call


def _arrays(case: Case) -> list[np.ndarray]:
    from tir_dialect import te

    rng = np.random.default_rng(0)
    shapes = [[int(str(extent)) for extent in tensor.shape] for tensor in case.formula(te, case.sizes)]
    return [rng.random(shape, np.float32) for shape in shapes]


def _aligned(array: np.ndarray) -> np.ndarray:
    """A copy at the beginning of a cache line, as TVM makes its tensors."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def table(threads: int) -> None:
    """The table for a number of threads."""
    systems = {
        "symbols": Contestant(lambda number: _ours(CASES[number], symbolic=True)),
        "constants": Contestant(lambda number: _ours(CASES[number], symbolic=False)),
        "TVM": Contestant(lambda number: _tvm(CASES[number], threads)),
    }
    print(f"\n## Kernels scheduled by hand, f32, threads: {threads} (`python -m benchmarks scheduled`)\n")
    print(
        "| | GFLOP/s, symbolic sizes | constant sizes | TVM, constant sizes | symbolic, of TVM |\n|---|---|---|---|---|"
    )
    for number, case in enumerate(CASES):
        print(_row(case, number, systems), flush=True)
    for system in systems.values():
        system.close()


def _row(case: Case, number: int, systems: dict[str, Contestant]) -> str:
    results = {name: system.prepare(number) for name, system in systems.items()}
    known = {name: result for name, result in results.items() if result is not None}
    for name, result in known.items():
        np.testing.assert_allclose(result, known["symbols"], 1e-3, err_msg=f"{case.name} by {name}")
    times = measure_in_turns({name: systems[name].time for name in known}, ROUNDS, min, SECONDS)
    cells = [f"{case.operations / times[name] / 1e9:.1f}" if name in times else "" for name in systems]
    ratio = f"{times['TVM'] / times['symbols']:.2f}x" if "TVM" in times else ""
    return f"| {' | '.join([case.name, *cells, ratio])} |"


def main() -> None:
    """One process for each number of threads."""
    in_processes("scheduled")
