"""Products of a matrix and a vector, or a few: bound by the memory that the matrix is read from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.compute import Case, run
from benchmarks.matmul import program
from benchmarks.timing import in_processes

SIZES = ((768, 768), (768, 3072), (3072, 768), (4096, 4096))


def _cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for rows in (1, 4):
        for k, n in SIZES:
            x, y = rng.random((rows, k), np.float32), rng.random((k, n), np.float32)
            work, name = 2.0 * rows * k * n, f"{rows} x {k} x {n}"
            yield Case(name, program("f32"), (x, y), work, np.matmul, lambda torch: torch.mm, "MatMul")
            yield Case(
                f"{name}, matrix transposed",
                program("f32", transposed=True),
                (x, np.ascontiguousarray(y.T)),
                work,
                lambda x, y: x @ y.T,
                lambda torch: torch.nn.functional.linear,
            )


def cases() -> list[Case]:
    """All of them."""
    return [*_cases()]


def table(threads: int) -> None:
    """The table for a number of threads."""
    run("gemv", "GEMV and GEMM with small M in f32", cases(), threads)


def main() -> None:
    """One process for each number of threads."""
    in_processes("gemv")
