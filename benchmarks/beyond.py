"""Maps, reductions and norms of 256 MiB, which no cache holds: the most there is to reach is a copy of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from benchmarks import elementwise, normalization, reductions
from benchmarks.memory import Case, run
from benchmarks.timing import in_processes

COLUMNS = 4096
HALF, WHOLE, THIRD = (8192, COLUMNS), (16384, COLUMNS), (5461, COLUMNS)
"""Shapes of the data, such that arguments and result have 256 MiB together."""

ROW = (COLUMNS,)
ROUNDS = 15

SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "add, 512 x 1024": (THIRD, THIRD),
    "gelu, 512 x 1024": (HALF,),
    "silu, 512 x 1024": (HALF,),
    "softmax, 512 x 1024": (HALF,),
    "layer norm, 512 x 1024": (HALF, ROW, ROW),
    "rms norm, 512 x 1024": (HALF, ROW),
    "running sums along 1, 512 x 1024": (HALF,),
    "running sums along 0, 512 x 1024": (HALF,),
    "sum of rows, 512 x 1024": (WHOLE,),
    "sum of columns, 512 x 1024": (WHOLE,),
    "sum, 512 x 1024": (WHOLE,),
    "max of rows, 512 x 1024": (WHOLE,),
    "variance of rows, 512 x 1024": (WHOLE,),
    "argmax along 1, 512 x 1024": (WHOLE,),
    "argmax along 0, 512 x 1024": (WHOLE,),
}
"""What the arguments of some cases are here."""


def _arrays(shapes: Sequence[tuple[int, ...]]) -> Callable[[np.random.Generator], Sequence[np.ndarray]]:
    return lambda rng: [rng.random(shape, np.float32) - np.float32(0.5) for shape in shapes]


def _cases() -> Iterator[Case]:
    for case in (*elementwise.CASES, *normalization.CASES, *reductions.CASES):
        shapes = SHAPES.get(case.name)
        if shapes is not None:
            name = f"{case.name.removesuffix('512 x 1024')}{' x '.join(map(str, shapes[0]))}"
            yield replace(case, name=name, arguments=_arrays(shapes))
    yield Case(
        f"a row by a matrix, {' x '.join(map(str, WHOLE))}",
        "%x: !relax.tensor<[1, m], f32>, %y: !relax.tensor<[m, n], f32>",
        "relax.matmul %x, %y",
        _arrays(((1, WHOLE[0]), WHOLE)),
        np.matmul,
        lambda torch: torch.mm,
        "MatMul",
    )


def table(threads: int) -> None:
    """Prints the figures."""
    run("beyond", "Beyond the caches", [*_cases()], threads, ROUNDS)


def main() -> None:
    """On 1 and 2 threads."""
    in_processes("beyond")
