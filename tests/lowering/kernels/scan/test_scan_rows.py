"""Scans with an elementwise stage: both in one loop, if the stage reads only its own sum."""

from __future__ import annotations

import re

import numpy as np
import pytest

from lowering.compiler.kernels import compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from tests.lowering.tir_to_llvm.conftest import call, find, parse
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tir_dialect.interpreter import run_prim_func
from tir_dialect.target import Target

SUMS = """
tir.prim_func @sums[%m, %n](%X: !tir.buffer<[m, n], f16>, %Y: !tir.buffer<[m, n], f16>) {
  %sums = tir.alloc_buffer : !tir.buffer<[m, n], f32>
  tir.for (%i, %j) in (%m, %n) {
    tir.block "sums" (%vi = spatial %i in %m, %vj = scan %j in %n) {
      %zero = arith.constant 0 : index
      %later = arith.cmpi sgt, %vj, %zero : index
      %sum = tir.if %later -> (f32) {
        %one = arith.constant 1 : index
        %before = arith.subi %vj, %one : index
        %s = tir.load %sums[%vi, %before]
        %x = tir.load %X[%vi, %vj]
        %w = arith.extf %x : f16 to f32
        %t = arith.addf %s, %w : f32
        tir.yield %t
      } else {
        %x = tir.load %X[%vi, %vj]
        %w = arith.extf %x : f16 to f32
        tir.yield %w
      }
      tir.store %sum, %sums[%vi, %vj]
    }
  }
  tir.for (%i, %j) in (%m, %n) {
    tir.block "results" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      RESULT
      %y = arith.truncf %s : f32 to f16
      tir.store %y, %Y[%vi, %vj]
    }
  }
}"""
OWN = "%s = tir.load %sums[%vi, %vj]"
TWICE = f"{OWN.replace('%s =', '%r =')}\n      %x = tir.load %X[%vi, %vj]\n      %w = arith.extf %x : f16 to f32\n"
TWICE += "      %s = arith.mulf %r, %w : f32"
FIRST = "%c0 = arith.constant 0 : index\n      %s = tir.load %sums[%vi, %c0]"
LAST = (
    "%c1 = arith.constant 1 : index\n      %e = tir.dim n\n      %f = arith.subi %e, %c1 : index\n"
    "      %s = tir.load %sums[%vi, %f]"
)


@pytest.mark.parametrize("machine", ["x86-64-v3 cores=1", "x86-64-v4 cores=2", "neoverse-n1 cores=1"])
@pytest.mark.parametrize(("result", "joined"), [(OWN, True), (TWICE, True), (FIRST, False), (LAST, False)])
def test_sums_that_only_their_element_needs_are_not_stored(machine: str, result: str, joined: bool) -> None:
    func = find(parse(SUMS.replace("RESULT", result)))
    schedule(func, Target.parse(machine))
    assert ("vector.shuffle" in str(func)) == joined
    assert ("tir.buffer<[m, n], f32>" in str(func)) == (not joined)


@pytest.mark.parametrize(("machine", "crossing"), [("x86-64-v3 cores=1", 4), ("x86-64-v4 cores=1", 12)])
def test_two_steps_leave_half_a_register_where_that_takes_long(machine: str, crossing: int) -> None:
    func = find(parse(SUMS.replace("RESULT", OWN)))
    schedule(func, Target.parse(machine))
    orders = [list(map(int, order.split(", "))) for order in re.findall(r"vector.shuffle .*\[(.*)\]", str(func))]
    # In blocks and after them. With masks what is left of a row takes the same steps as a whole vector: four, and none
    # for the sum of all lanes.
    assert sum(any(lane // 4 != n % len(order) // 4 for lane, n in enumerate(order)) for order in orders) == crossing


@pytest.mark.parametrize(("result", "rows"), [(OWN, "spatial"), (TWICE, "spatial"), (LAST, "spatial"), (OWN, "scan")])
def test_values(result: str, rows: str) -> None:
    """Also where the rows have an order, too, which is no scan that a kernel knows."""
    module = parse(SUMS.replace("RESULT", result).replace("%vi = spatial", f"%vi = {rows}", 1))
    func = find(module)
    kernels = compile_prim_funcs(module, cache=NO_CACHE)
    for m, n in ((1, 1), (3, 7), (5, 8), (2, 9), (4, 33), (2, 100), (0, 3), (3, 0)):
        x = np.random.default_rng(n).standard_normal((m, n)).astype(np.float16)
        expected = np.zeros_like(x)
        run_prim_func(func, [x, expected], {"m": m, "n": n})
        for at_end in (True, False):
            guarded = [Guarded(np.ascontiguousarray(each), at_end) for each in (x, np.zeros_like(x))]
            assert call(kernels, func, [each.array for each in guarded], {"m": m, "n": n}) == 0
            np.testing.assert_allclose(guarded[1].array, expected, rtol=2e-3, atol=2e-3)
            for each in guarded:
                each.release()
