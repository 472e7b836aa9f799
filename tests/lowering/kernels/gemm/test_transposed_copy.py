"""A transposed B that is narrow or fits the cache is copied, then read like any other."""

from __future__ import annotations

import numpy as np
import pytest

from lowering.kernels.schedule_cpu import schedule
from tests.lowering.kernels.gemm.support import Sum, check_guarded, kernel, known, run_guarded
from tir_dialect.interpreter import run_prim_func
from tir_dialect.target import Target

pytestmark = pytest.mark.sampled(3)

WIDE = "x86-64-v4 cores=2 l2_bytes=1048576"
TRANSPOSED = Sum("mk,nk->mn")


def ways(m: int, k: int, n: int, machine: str = WIDE) -> set[str]:
    """The routines that the product of two matrices calls, of which the second one is transposed."""
    func = kernel(known(m, k, n, "[{n}, {k}]", 'relax.einsum %x, %y subscripts = "mk,nk->mn"'))
    schedule(func, Target.parse(machine))
    return {word.partition(".")[0] for word in str(func).split("relax.routine.")[1:]}


@pytest.mark.parametrize(("m", "k", "n"), [(100, 90, 80), (30, 1000, 60), (16, 79, 200), (3, 4, 900)])
def test_columns_are_copied_for_enough_rows(m: int, k: int, n: int) -> None:
    assert ways(m, k, n) == {"transpose", "streamed"}


def test_few_rows_and_long_k_are_dot_products() -> None:
    assert not ways(16, 80, 200)
    assert not ways(2, 10, 200)


def test_many_columns_are_packed() -> None:
    assert ways(100, 300, 300) == {"tile"}


def test_strips_of_tall_gemm_have_copied_columns_too() -> None:
    assert ways(4096, 256, 20) == {"transpose", "pack", "tall"}


def test_short_vectors_copy_few_columns_only() -> None:
    assert ways(60, 90, 30, "x86-64-v3 cores=2") == {"transpose", "streamed"}
    assert ways(60, 90, 40, "x86-64-v3 cores=2") == {"tile"}


def test_threads_copy_parts_of_many_columns() -> None:
    def copies(k: int, n: int) -> str:
        func = kernel(known(400, k, n, "[{n}, {k}]", 'relax.einsum %x, %y subscripts = "mk,nk->mn"'))
        schedule(func, Target.parse(WIDE))
        return str(func).split("tir.call unchecked @relax.routine.transpose")[0]

    assert "tir.for parallel (%task)" in copies(200, 200)
    assert "tir.for parallel (%task)" not in copies(100, 100)


@pytest.mark.parametrize("n", [1, 4, 8, 15, 16, 17, 33, 64, 100, 300])
@pytest.mark.parametrize("subscripts", ["mk,nk->mn", "km,nk->mn", "km,kn->mn", "bmk,bnk->bmn"])
def test_values_between_guard_pages(subscripts: str, n: int) -> None:
    for m, k in ((1, 3), (5, 16), (16, 33), (31, 1), (40, 0), (70, 100), (0, 5)):
        check_guarded(Sum(subscripts), {"m": m, "n": n, "k": k, "b": 3})


def test_strips_and_long_k() -> None:
    for m, k, n in ((4099, 80, 20), (90, 3000, 40), (300, 200, 330)):
        check_guarded(TRANSPOSED, {"m": m, "n": n, "k": k})


def test_known_sizes() -> None:
    rng = np.random.default_rng(0)
    for m, k, n in ((100, 90, 80), (33, 7, 101), (20, 30, 120)):
        x, y = rng.standard_normal((m, k), np.float32), rng.standard_normal((n, k), np.float32)
        text = known(m, k, n, "[{n}, {k}]", 'relax.einsum %x, %y subscripts = "mk,nk->mn"')
        result = run_guarded(text, [x, y, np.full((m, n), 7, np.float32)], {})
        np.testing.assert_allclose(result, x.astype("f8") @ y.T, rtol=1e-4, atol=1e-4)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_all_vectors(target: str, dtype: str) -> None:
    case = Sum("mk,nk->mn", dtype)
    func = kernel(case.text)
    schedule(func, Target.parse(f"{target} cores=2"))
    for m, k, n in ((7, 5, 9), (21, 7, 20)):
        arrays = case.arrays({"m": m, "k": k, "n": n})
        result = np.full((m, n), np.nan, arrays[0].dtype)
        run_prim_func(func, [*arrays, result])
        case.check(result, arrays)
