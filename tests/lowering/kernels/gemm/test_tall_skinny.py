"""Tall-skinny GEMM: many rows, which come from memory, and few columns, which are packed first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lowering.kernels.schedule_cpu import schedule
from tests.lowering.kernels.gemm.support import Sum, check_guarded, kernel, known, run_guarded
from tir_dialect.interpreter import run_prim_func
from tir_dialect.target import KIB, Target

PRODUCT = Sum("mk,kn->mn")
TARGET = Target.parse("x86-64-v3 cores=2")


def scheduled(text: str, target: Target = TARGET) -> str:
    """The code of a kernel."""
    func = kernel(text)
    schedule(func, target)
    return str(func)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("n", [9, 16, 17, 20, 31, 32, 33, 36, 48, 63, 64])
def test_any_number_of_columns(n: int) -> None:
    for m, k in ((2049, 257), (2046, 256), (50_000, 11), (1003, 530)):
        check_guarded(PRODUCT, {"m": m, "n": n, "k": k})


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16"])
def test_other_types(dtype: str) -> None:
    for n in (12, 40):
        check_guarded(Sum("mk,kn->mn", dtype), {"m": 2051, "n": n, "k": 257})


def test_short_k() -> None:
    check_guarded(PRODUCT, {"m": 600_001, "n": 10, "k": 1})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [9, 30, 36, 64])
def test_known_sizes(n: int) -> None:
    rng, m, k = np.random.default_rng(n), 2051, 257
    x, y = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    result = run_guarded(known(m, k, n), [x, y, np.full((m, n), np.nan, np.float32)], {})
    np.testing.assert_allclose(result, x.astype("f8") @ y, rtol=1e-4, atol=1e-4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("m", [64, 65, 67, 69])
def test_the_last_strip_has_all_its_rows(m: int) -> None:
    """On a machine whose cache holds so little that this is quickly interpreted."""
    func, rng = kernel(PRODUCT.text), np.random.default_rng(m)
    schedule(func, replace(TARGET, l2_bytes=4 * KIB))
    x, y = rng.standard_normal((m, 7), np.float32), rng.standard_normal((7, 18), np.float32)
    result = np.full((m, 18), np.nan, np.float32)
    run_prim_func(func, [x, y, result])
    np.testing.assert_allclose(result, x @ y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("m", "k", "n", "is_tall"),
    [
        (4096, 256, 20, True),
        (4096, 256, 64, True),
        (4096, 256, 65, True),  # rows are many more than columns
        (2048, 256, 256, True),
        (2040, 256, 256, False),
        (4096, 1160, 64, False),  # more than half of the second-level cache
        (63, 2000, 20, False),  # rows are few
        (128, 200, 20, False),  # rows are in the cache
    ],
)
def test_columns_are_packed_for_rows_that_come_from_far_away(m: int, k: int, n: int, is_tall: bool) -> None:
    code = scheduled(known(m, k, n))
    assert ("call unchecked @relax.routine.tall.f32.6x16" in code) is is_tall
    assert ("@relax.routine.streamed" in code or "@relax.routine.tile" in code) is not is_tall


def test_tiles_of_two_cache_lines_take_few_columns_only() -> None:
    wide = Target.parse("x86-64-v4 cores=2")
    assert "routine.tall" in scheduled(known(8192, 512, 60), wide)
    assert "routine.tall" not in scheduled(known(8192, 500, 90), wide)
    assert "routine.tall" not in scheduled(known(8192, 256, 90), Target.parse("neoverse-n1 cores=2"))


@pytest.mark.parametrize("n", [65, 200])
def test_more_columns(n: int) -> None:
    text, sizes = known(8 * n + 3, 131, n), {"m": 8 * n + 3, "n": n, "k": 131}
    assert "routine.tall" in scheduled(text)
    arrays = PRODUCT.arrays(sizes)
    result = np.full((sizes["m"], n), 7, np.float32)
    PRODUCT.check(run_guarded(text, [*arrays, result], {}), arrays)


def test_more_columns_are_no_further_way_where_rows_are_unknown() -> None:
    text = PRODUCT.text.replace("[%k, %m, %n]", "[%k, %m]").replace("[k, n]", "[k, 96]")
    assert "routine.tall" not in scheduled(text)


def test_threads_pack_parts_of_many_columns() -> None:
    loop, call = "tir.for parallel (%task)", "tir.call unchecked @relax.routine.pack"
    assert loop in scheduled(known(4096, 256, 256)).split(call)[0]
    assert loop not in scheduled(known(4096, 256, 64)).split(call)[0]


def test_other_layouts_have_other_ways() -> None:
    text = Sum("km,kn->mn").text.replace("[%k, %m, %n]", "")
    transposed = text.replace("k, m]", "256, 4096]").replace("k, n]", "256, 20]")
    assert "routine.tall" not in scheduled(transposed)
