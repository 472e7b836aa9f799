"""Matrix products: one artefact for all sizes, against the best libraries on the same arrays, on 1 and 2 threads.

Peers: NumPy (OpenBLAS) and, where installed, PyTorch (oneDNN) and ONNX Runtime (MLAS).
"""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from benchmarks.compute import Case, run
from benchmarks.timing import in_processes

CUBES = (64, 128, 256, 512, 777, 1024, 2048)
FEW_ROWS = ((2, 768, 3072), (8, 768, 3072), (8, 1024, 1024))
FEW_COLUMNS = ((4096, 256, 32), (4096, 256, 64), (4096, 768, 32), (1000, 64, 16))
OTHERS = ((257, 129, 65), (128, 768, 768), (128, 768, 3072), (64, 4096, 64), *FEW_ROWS, *FEW_COLUMNS)
BYTES = ((1, 768, 768), (128, 768, 768), (512, 512, 512), (1024, 1024, 1024))
SIZES = (*((n, n, n) for n in CUBES), *OTHERS)


def program(dtype: str, result: str = "", transposed: bool = False) -> str:
    """The product of two matrices; `transposed` means the second one is given as its columns."""
    body = 'relax.einsum %x, %y subscripts = "mk,nk->mn"' if transposed else f"relax.matmul %x, %y{result}"
    second = "[n, k]" if transposed else "[k, n]"
    return f"""
relax.func @main[%m, %k, %n](%x: !relax.tensor<[m, k], {dtype}>, %y: !relax.tensor<{second}, {dtype}>)
    -> !relax.object {{
  %0 = {body}
  relax.return %0
}}"""


def _with_columns(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x @ y.T


def _cases() -> Iterator[Case]:
    rng, text = np.random.default_rng(0), program("f32")
    for m, k, n in SIZES:
        x, y = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
        work = 2.0 * m * k * n
        yield Case(f"{m} x {k} x {n}", text, (x, y), work, np.matmul, lambda torch: torch.mm, "MatMul")
    for m, k, n in ((256, 256, 256), (128, 768, 3072)):
        x, y = rng.random((m, k), np.float32), rng.random((n, k), np.float32)
        yield Case(
            f"{m} x {k} x {n}, second transposed",
            program("f32", transposed=True),
            (x, y),
            2.0 * m * k * n,
            _with_columns,
            lambda torch: torch.nn.functional.linear,
        )


def _other_types() -> Iterator[Case]:
    rng, n = np.random.default_rng(0), 512
    work = 2.0 * n**3
    x, y = rng.random((n, n)), rng.random((n, n))
    yield Case(f"{n}, f64", program("f64"), (x, y), work, np.matmul, lambda torch: torch.mm)
    for name, dtype in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        yield Case(
            f"{n}, {name}", program(name), (x.astype(dtype), y.astype(dtype)), work, torch=lambda torch: torch.mm
        )
    x, y = (rng.integers(-128, 128, (n, n)).astype(np.int8) for _ in range(2))
    yield Case(f"{n}, i8 to i32", program("i8", " out_dtype = i32"), (x, y), work, torch=lambda torch: torch._int_mm)
    for m, k, n in BYTES:  # weights of seven bits: without VNNI sums of two products of more are wrong in ONNX Runtime
        x, y = rng.integers(0, 256, (m, k)).astype(np.uint8), rng.integers(-64, 64, (k, n)).astype(np.int8)
        name = f"{m} x {k} x {n}, ui8 and i8 weights"
        yield Case(name, "", (x, y), 2.0 * m * k * n, onnx="MatMulInteger", weights=True, result="int32")


def cases() -> list[Case]:
    """All of them."""
    return [*_cases(), *_other_types()]


def table(threads: int) -> None:
    """The tables for a number of threads."""
    run("matmul", "Matrix products in f32", [*_cases()], threads)
    run("matmul", "Matrix products in other types", [*_other_types()], threads)


def main() -> None:
    """One process for each number of threads."""
    in_processes("matmul")
