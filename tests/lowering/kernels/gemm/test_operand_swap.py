"""Few columns and a transposed A: the transposed GEMM, whose results become rows of the output."""

from __future__ import annotations

import numpy as np
import pytest

from lowering.kernels.schedule_cpu import schedule
from tests.lowering.kernels.gemm.support import Sum, check_guarded, kernel
from tir_dialect.interpreter import run_prim_func
from tir_dialect.target import Target

pytestmark = pytest.mark.sampled(3)

SUBSCRIPTS = ["km,kn->mn", "km,nk->mn"]


def way(subscripts: str, m: int, k: int, n: int) -> bool:
    """Whether a product of matrices of known sizes has its axes swapped."""
    text = Sum(subscripts).text.replace("[%k, %m, %n]", "")
    for pair, sizes in {"k, m": (k, m), "k, n": (k, n), "n, k": (n, k)}.items():
        text = text.replace(f"<[{pair}]", f"<[{sizes[0]}, {sizes[1]}]")
    func = kernel(text)
    schedule(func, Target.parse("x86-64-v4 cores=2"))
    return "%swapped" in str(func)


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_up_to_eight_columns_are_rows_of_the_transposed_gemm(subscripts: str) -> None:
    assert way(subscripts, 100, 50, 8)
    assert not way(subscripts, 100, 50, 9)


def test_rows_along_k_stay_rows() -> None:
    func = kernel(Sum("mk,kn->mn").text)
    schedule(func, Target.parse("x86-64-v4 cores=2"))
    assert "%swapped" not in str(func)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("n", range(10))
@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_values_between_guard_pages(subscripts: str, n: int) -> None:
    """By lines, by tiles, and as one row; short sums are streamed."""
    for m, k in ((0, 40), (1, 33), (16, 100), (35, 32), (50, 31), (333, 101), (70, 200), (40, 0)):
        check_guarded(Sum(subscripts), {"m": m, "n": n, "k": k})


@pytest.mark.parametrize("subscripts", ["bkm,bkn->bmn", "kab,kn->abn", "km,kn->nm"])
def test_other_gemms(subscripts: str) -> None:
    """Batches, several axes of rows, and a result whose axes are swapped."""
    for m, k in ((7, 33), (40, 100)):
        check_guarded(Sum(subscripts), {"m": m, "n": 5, "k": k, "a": m, "b": 3})


@pytest.mark.sampled(8)
@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_all_vectors(target: str, dtype: str) -> None:
    for subscripts in SUBSCRIPTS:
        case = Sum(subscripts, dtype)
        func = kernel(case.text)
        schedule(func, Target.parse(f"{target} cores=2"))
        for m, k, n in ((21, 33, 2), (70, 40, 7), (18, 34, 1)):
            arrays = case.arrays({"m": m, "k": k, "n": n})
            result = np.full((m, n), np.nan, arrays[0].dtype)
            run_prim_func(func, [*arrays, result])
            case.check(result, arrays)


def test_threads_have_parts_of_the_rows() -> None:
    check_guarded(Sum("km,kn->mn"), {"m": 3001, "n": 3, "k": 300})
