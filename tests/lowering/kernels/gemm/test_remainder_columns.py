"""GEMM with very small N after whole panels."""

from __future__ import annotations

import numpy as np
import pytest
from tvm_ffi import from_dlpack

from lowering.kernels.schedule_cpu import schedule
from tests.lowering.kernels.gemm.support import Sum, check_guarded, compiled, kernel, run_guarded
from tir_dialect.interpreter import run_prim_func
from tir_dialect.target import Target

PRODUCT = Sum("mk,kn->mn")
FOLLOWED = """
relax.func @main[%m, %k, %n](%x: !relax.tensor<[m, k], f32>, %y: !relax.tensor<[k, n], f32>,
                             %z: !relax.tensor<[m, n], f32>) -> !relax.object {
  %0 = relax.matmul %x, %y
  %1 = relax.add %0, %z
  %2 = relax.nn.relu %1
  relax.return %2
}"""


@pytest.mark.parametrize("n", [8, 9, 17, 20, 21, 32, 33, 36, 37, 50, 65, 97, 100])
def test_any_number_of_columns(n: int) -> None:
    for m, k in ((0, 3), (1, 70), (2, 5), (17, 0), (31, 1), (40, 600)):
        check_guarded(PRODUCT, {"m": m, "n": n, "k": k})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", range(9, 14))
def test_panels_as_narrow_as_what_may_be_after_them(n: int) -> None:
    """Two vectors of two doubles: four columns are a whole panel."""
    case = Sum("mk,kn->mn", "f64")
    func = kernel(case.text)
    schedule(func, Target.parse("x86-64-v2"))
    arrays = case.arrays({"m": 18, "k": 3, "n": n})
    result = np.full((18, n), np.nan)
    run_prim_func(func, [*arrays, result])
    case.check(result, arrays)


@pytest.mark.parametrize("n", [9, 16, 17, 36, 37, 48, 64])
def test_many_rows_and_few_columns(n: int) -> None:
    for m, k in ((65, 0), (66, 7), (130, 600)):
        check_guarded(PRODUCT, {"m": m, "n": n, "k": k})


def test_what_follows_is_computed_for_the_last_columns_too() -> None:
    rng = np.random.default_rng(0)
    for m, k, n in ((1, 3, 2), (20, 40, 34), (30, 700, 36), (30, 5, 8), (30, 70, 19)):
        x, y, z = (rng.standard_normal(shape, np.float32) for shape in ((m, k), (k, n), (m, n)))
        result = np.from_dlpack(compiled(FOLLOWED)(*map(from_dlpack, (x, y, z))))
        np.testing.assert_allclose(result, np.maximum(x.astype("f8") @ y + z, 0), rtol=1e-4, atol=1e-4)


def known(m: int, n: int) -> str:
    """A product of which all is known but how long sums are."""
    return f"""
relax.func @main[%k](%x: !relax.tensor<[{m}, k], f32>, %y: !relax.tensor<[k, {n}], f32>) -> !relax.object {{
  %0 = relax.matmul %x, %y
  relax.return %0
}}"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("m", "n"), [(3, 33), (20, 65), (29, 36), (29, 37), (18, 4), (29, 18), (29, 53), (20, 113)])
def test_known_numbers_of_columns(m: int, n: int) -> None:
    rng = np.random.default_rng(n)
    for k in (0, 1, 130):
        x, y = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
        result = run_guarded(known(m, n), [x, y, np.full((m, n), 7, np.float32)], {"k": k})
        np.testing.assert_allclose(result, x.astype("f8") @ y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("n", "is_narrow"), [(96, False), (97, False), (100, False), (101, True), (113, False)])
def test_no_panel_is_made_for_very_few_columns(n: int, is_narrow: bool) -> None:
    func = kernel(known(40, n))
    schedule(func, Target.parse("x86-64-v4 cores=2"))
    assert ("tile.f32.14x16" in str(func)) is is_narrow


@pytest.mark.parametrize(
    ("n", "are_separate"), [(12, False), (17, True), (20, True), (21, False), (48, False), (50, True)]
)
def test_very_few_columns_after_a_vector_of_a_narrow_panel(n: int, are_separate: bool) -> None:
    func = kernel(known(40, n))
    schedule(func, Target.parse("x86-64-v4 cores=2"))
    assert ("relax.routine.columns." in str(func)) is are_separate
