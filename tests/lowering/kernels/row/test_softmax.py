"""Softmax and its like: which of them have no exact maximum and scaled exponentials, and their values."""

from __future__ import annotations

import numpy as np
import pytest

from lowering.compiler.kernels import compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from tests.lowering.kernels.memory_bound import kernel
from tests.lowering.tir_to_llvm.conftest import call, find, parse
from tir_dialect.interpreter import run_prim_func
from tir_dialect.target import Target

AVX2, AVX512, NEON = "x86-64-v3 cores=1", "x86-64-v4 cores=1", "neoverse-n1 cores=1"

ROWS = """
tir.prim_func @rows[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[m, n], f32>) {
  %top = tir.alloc_buffer : !tir.buffer<[m], f32>
  %powers = tir.alloc_buffer : !tir.buffer<[m, n], f32>
  %sums = tir.alloc_buffer : !tir.buffer<[m], f32>
  tir.for (%i, %r) in (%m, %n) {
    tir.block "top" (%vi = spatial %i in %m, %vr = reduce %r in %n) {
      tir.init {
        %least = arith.constant 0xff800000 : f32
        tir.store %least, %top[%vi]
      }
      %t = tir.load %top[%vi]
      %x = tir.load %X[%vi, %vr]
      %u = arith.maximumf %t, %x : f32
      tir.store %u, %top[%vi]
    }
  }
  tir.for (%i, %j) in (%m, %n) {
    tir.block "powers" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %x = tir.load %X[%vi, %vj]
      %t = tir.load %top[%vi]
      %d = arith.subf %x, %t : f32
      %e = math.exp %d : f32
      tir.store %e, %powers[%vi, %vj]
    }
  }
  tir.for (%i, %r) in (%m, %n) {
    tir.block "sums" (%vi = spatial %i in %m, %vr = reduce %r in %n) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %sums[%vi]
      }
      %s = tir.load %sums[%vi]
      %e = tir.load %powers[%vi, %vr]
      %u = arith.addf %s, %e : f32
      tir.store %u, %sums[%vi]
    }
  }
  tir.for (%i, %j) in (%m, %n) {
    tir.block "results" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %t = tir.load %top[%vi]
      %e = tir.load %powers[%vi, %vj]
      %s = tir.load %sums[%vi]
      RESULT
      tir.store %y, %Y[%vi, %vj]
    }
  }
}"""
QUOTIENT = "%y = arith.divf %e, %s : f32"
SIMPLE = {
    "quotients": QUOTIENT,
    "quotients and the sum": "%q = arith.divf %e, %s : f32\n      %y = arith.addf %q, %s : f32",
    "the logarithm": "%y = math.log %s : f32",
}
OTHERS = {
    "the greatest number": f"{QUOTIENT.replace('%y', '%q')}\n      %y = arith.addf %q, %t : f32",
    "exponentials alone": f"{QUOTIENT.replace('%y', '%q')}\n      %y = arith.addf %q, %e : f32",
    "the inverse": "%y = arith.divf %s, %e : f32",
    "a choice": "%z = arith.constant 1.0 : f32\n      %q = arith.divf %e, %s : f32\n"
    "      %c = arith.cmpf olt, %q, %z : f32\n      %y = arith.select %c, %q, %z : f32",
}


@pytest.mark.parametrize("name", ["softmax", "log softmax"])
@pytest.mark.parametrize(("machine", "greater", "scaled"), [(AVX2, 1, 1), (AVX512, 1, 1), (NEON, 0, 1)])
def test_what_takes_fewer_instructions_is_taken(name: str, machine: str, greater: int, scaled: int) -> None:
    func = kernel(name)
    schedule(func, Target.parse(machine))
    text = str(func)
    assert (("tir.greater" in text), ("tir.scaled_exp" in text)) == (greater, scaled)
    assert (("maximumf" in text), ("math.exp" in text)) == (not greater, not scaled)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("result", "simple"), [*((each, True) for each in SIMPLE), *((each, False) for each in OTHERS)]
)
def test_only_what_is_the_same_is_rewritten(result: str, simple: bool) -> None:
    module = parse(ROWS.replace("RESULT", {**SIMPLE, **OTHERS}[result]))
    func = find(module)
    original = func.clone()
    schedule(func, Target.parse(AVX2))
    assert ("tir.scaled_exp" in str(func), "tir.greater" in str(func)) == (simple, simple)
    kernels = compile_prim_funcs(module, cache=NO_CACHE)
    x = np.random.default_rng(1).standard_normal((9, 37)).astype(np.float32) * 30
    x[1, 5], x[2, 36], x[3, 0], x[4], x[5, 1:] = np.nan, np.inf, -np.inf, -np.inf, -1e30
    expected, got = np.zeros_like(x), np.zeros_like(x)
    with np.errstate(all="ignore"):
        run_prim_func(original, [x, expected], {"m": 9, "n": 37})
    assert call(kernels, func, [x, got], {"m": 9, "n": 37}) == 0
    np.testing.assert_allclose(got, expected, rtol=2e-6, atol=3e-7)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))


def test_powers_that_are_subnormal_are_rounded_once() -> None:
    module = parse(ROWS.replace("RESULT", QUOTIENT))
    func = find(module)
    kernels = compile_prim_funcs(module, Target.parse(f"host {AVX2.split()[1]}"), cache=NO_CACHE)
    x = np.array([[0, -86, -88, -90.5, -95, -100, -103, -103.9, -104.5, -np.inf]], np.float32)
    got = np.zeros_like(x)
    assert call(kernels, func, [x, got], {"m": 1, "n": x.shape[1]}) == 0
    expected = np.exp(x.astype(np.float64)).astype(np.float32)
    assert (np.abs(got - expected) <= 2 * np.spacing(expected)).all()
    assert got[0, -2:].tolist() == [0, 0]


@pytest.mark.parametrize(
    "change", [("subf %x, %t", "subf %t, %x"), ("%x = tir.load %X[%vi, %vj]", "%x = tir.load %Y[%vi, %vj]")]
)
def test_other_differences_stay(change: tuple[str, str]) -> None:
    text = ROWS.replace("RESULT", QUOTIENT).replace(*change)
    assert text.count(change[1]) == 1
    func = find(parse(text))
    schedule(func, Target.parse(AVX2))
    assert "math.exp" in str(func)
    assert "maximumf" in str(func)
