"""One-pass mean and variance: which stages are rewritten, and accuracy on data that is hard to sum."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from tests.lowering.kernels.memory_bound import kernel
from tests.lowering.kernels.row.test_row_blocks import scheduled
from tests.lowering.tir_to_llvm.conftest import call, find
from tir_dialect import te
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

MACHINE = "x86-64-v3 cores=1"


def moments(case: str = "") -> PrimFuncOp:
    """Sums of squares of how far numbers are from their mean, and the mean; or something that differs in one point."""
    m, n = te.var("m"), te.var("n")
    x, w = te.placeholder((m, n), "f32", "x"), te.placeholder((m, n), "f32", "w")
    i, j = te.reduce_axis(n, "i"), te.reduce_axis(n, "j")
    total = te.compute((m,), lambda row: te.sum(x[row, i], i), name="total")
    count = te.cast(te.cast(n - 1 if case == "another count" else n, "index"), "f32")
    mean = te.compute((m,), lambda row: total[row] / count, name="mean")
    other = w if case == "other numbers" else x

    def square(row: te.Expr) -> te.Expr:
        apart = other[row, j] - mean[row]
        return te.sum(apart * (x[row, j] if case == "no square" else apart), j)

    squares = te.compute((m,), square, name="squares")
    final = total if case == "a sum that is needed" else mean
    result = te.compute((m, n), lambda row, place: x[row, place] - final[row] + squares[row], name="result")
    return te.create_prim_func([x, w, result], name="moments")


CASES = ("", "another count", "other numbers", "no square", "a sum that is needed")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CASES)
def test_only_moments_are_joined(case: str) -> None:
    func = moments(case)
    module = ModuleOp([func])
    original = func.clone()
    schedule(func := func.clone(), Target.parse(MACHINE))
    assert ("%shifts" in str(func)) == (case == "")
    kernels = compile_prim_funcs(module, cache=NO_CACHE)
    x, w = np.random.default_rng(1).standard_normal((2, 5, 300), np.float32)
    expected, got = np.zeros_like(x), np.zeros_like(x)
    run_prim_func(original, [x, w, expected], {"m": 5, "n": 300})
    assert call(kernels, find(module), [x, w, got], {"m": 5, "n": 300}) == 0
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("name", "joined"), [("group norm", True), ("instance norm", True), ("softmax", False)])
def test_the_head_is_along_the_outermost_axis(name: str, joined: bool) -> None:
    schedule(func := kernel(name), Target.parse(MACHINE))
    assert ("%shifts" in str(func)) == joined


@pytest.mark.parametrize(("shape", "joined"), [("m, 1000", True), ("100, 64", False), ("2, 32", False)])
def test_short_rows_keep_two_passes(shape: str, joined: bool) -> None:
    assert ("%shifts" in scheduled(shape, MACHINE, "relax.variance %x axes = [1]")) == joined


def test_columns_keep_two_passes() -> None:
    assert "%shifts" not in scheduled("1000, n", MACHINE, "relax.variance %x axes = [0]")


@pytest.fixture(scope="module")
def variance():
    module = ModuleOp([kernel("variance")])
    return compile_prim_funcs(module, cache=NO_CACHE), find(module)


@pytest.mark.parametrize("n", [0, 1, 31, 257, 1000, 3000])
def test_data_that_is_hard_to_sum(variance, n: int) -> None:
    kernels, func = variance
    x = np.random.default_rng(n).standard_normal((9, n), np.float32)
    x[1] += 1e4  # far from 0
    x[2, : n // 32] += 1e3  # the first ones are unlike the others
    x[3, n // 32 :] += 1e3
    x[4] = 0.1  # all alike, though their sum is rounded
    x[5] *= 1e15
    x[6, n // 2 :], x[7, n // 3 :], x[8, :1] = np.nan, np.inf, -np.inf
    got = np.full(9, 77, np.float32)
    assert call(kernels, func, [x, got], {"m": 9, "n": n}) == 0
    with np.errstate(all="ignore"):
        expected = np.array([row.astype(np.float64).var() if n else np.nan for row in x])
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-12)


def test_a_mean_of_infinity_is_infinity() -> None:
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), "f32", "x")
    i, j = te.reduce_axis(n, "i"), te.reduce_axis(n, "j")
    total = te.compute((m,), lambda row: te.sum(x[row, i], i), name="total")
    mean = te.compute((m,), lambda row: total[row] / te.cast(te.cast(n, "index"), "f32"), name="mean")
    squares = te.compute((m,), lambda row: te.sum((x[row, j] - mean[row]) * (x[row, j] - mean[row]), j), name="squares")
    above = te.compute((m,), lambda row: mean[row] + 1.0, name="above")
    spread = te.compute((m,), lambda row: squares[row] * 2.0, name="spread")
    module = ModuleOp([te.create_prim_func([x, spread, above], name="both")])
    schedule(func := find(module).clone(), Target.parse(MACHINE))
    assert "%shifts" in str(func)
    numbers, place = np.ones((4, 2000), np.float32), np.arange(4)
    numbers[place, [0, 1999, 3, 5]] = [np.inf, np.inf, -np.inf, 2001]
    results = np.zeros((2, 4), np.float32)
    assert call(compile_prim_funcs(module, cache=NO_CACHE), find(module), [numbers, *results], {"m": 4, "n": 2000}) == 0
    np.testing.assert_array_equal(results[1], [np.inf, np.inf, -np.inf, 3])
    assert np.isnan(results[0, :3]).all()
