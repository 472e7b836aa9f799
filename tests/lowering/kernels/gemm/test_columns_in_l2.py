"""GEMM whose columns fit the second-level cache: read in place with vectors of whole cache lines."""

from __future__ import annotations

import numpy as np
import pytest

from lowering.kernels.schedule_cpu import schedule
from tests.lowering.kernels.gemm.support import Sum, check_guarded, kernel, known, run_guarded
from tir_dialect.target import Target

PRODUCT = Sum("mk,kn->mn")
WIDE = "x86-64-v4 cores=2 l2_bytes=1048576"


def ways(text: str, machine: str) -> set[str]:
    """Of the routines for whole products, and the tiles of packed ones, those that a kernel calls."""
    func = kernel(text)
    schedule(func, Target.parse(machine))
    return {name for name in ("streamed", "tile") if f"@relax.routine.{name}" in str(func)}


@pytest.mark.parametrize(
    ("m", "k", "n", "is_near"),
    [(100, 90, 80, True), (100, 256, 256, True), (100, 256, 257, False), (100, 20, 3276, True), (100, 300, 300, False)],
)
def test_columns_are_near_if_a_quarter_of_the_cache_has_room(m: int, k: int, n: int, is_near: bool) -> None:
    assert ways(known(m, k, n), WIDE) == ({"streamed"} if is_near else {"tile"})


def test_what_is_read_otherwise_is_packed() -> None:
    assert ways(known(100, 90, 80), "x86-64-v3 cores=2") == {"tile"}  # lines of the cache are two vectors
    turned = known(100, 90, 80, op='relax.einsum %x, %y subscripts = "mk,kn->nm"').replace("matmul", "einsum")
    assert ways(turned, WIDE) == {"streamed"}  # its columns are the rows of the first matrix, which are copied
    spread = Sum("mkb,kn->mn").text.replace("[%b, %k, %m, %n]", "").replace("m, k, b", "100, 90, 2")
    assert ways(spread.replace("k, n", "90, 80"), WIDE) == {"tile"}


def test_a_call_decides_where_sizes_are_unknown() -> None:
    assert ways(PRODUCT.text, WIDE) == {"streamed", "tile"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("n", [65, 80, 100, 120, 300])
def test_values_between_guard_pages(n: int) -> None:
    for m, k in ((1, 70), (17, 0), (31, 1), (100, 100), (270, 200)):
        check_guarded(PRODUCT, {"m": m, "n": n, "k": k})


def test_known_sizes() -> None:
    rng = np.random.default_rng(0)
    for m, k, n in ((100, 90, 80), (33, 7, 101), (20, 530, 120)):
        x, y = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
        result = run_guarded(known(m, k, n), [x, y, np.full((m, n), 7, np.float32)], {})
        np.testing.assert_allclose(result, x.astype("f8") @ y, rtol=1e-4, atol=1e-4)
