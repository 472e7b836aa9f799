"""Arithmetic on elements is rounded as it is written, in all modes; sums of products are multiply-adds."""

import numpy as np
import pytest

from tests.support.programs import EXACT, run_in_turn

DTYPES = {"f32": np.float32, "f64": np.float64}

DIFFERENCES = """
relax.func @main(%x: !relax.tensor<[64, 8], {t}>, %y: !relax.tensor<[64, 8], {t}>, %w: !relax.tensor<[8], {t}>)
    -> !relax.tuple<{results}> {{
  %all:6 = relax.dataflow {{
    %xx = relax.multiply %x, %x
    %yy = relax.multiply %y, %y
    %d = relax.subtract %xx, %yy
    %squares = relax.sqrt %d
    %negative = relax.negative %y
    %opposite = relax.multiply %negative, %y
    %e = relax.add %xx, %opposite
    %sum = relax.sqrt %e
    %m = relax.mean %x axes = [1]
    %ms = relax.mean %xx axes = [1]
    %mm = relax.multiply %m, %m
    %v = relax.subtract %ms, %mm
    %deviation = relax.sqrt %v
    %a = relax.sum %xx axes = [1]
    %b = relax.sum %yy axes = [1]
    %xy = relax.multiply %x, %y
    %c = relax.sum %xy axes = [1]
    %ab = relax.add %a, %b
    %cc = relax.add %c, %c
    %distance = relax.subtract %ab, %cc
    %left = relax.multiply %x, %w
    %right = relax.multiply %y, %w
    %determinant = relax.subtract %left, %right
    %shifted = relax.add %left, %y
    relax.output %squares, %sum, %deviation, %distance, %determinant, %shifted
  }}
  %t = relax.tuple(%all#0, %all#1, %all#2, %all#3, %all#4, %all#5)
  relax.return %t
}}
"""


def _differences(t: str) -> str:
    wide, narrow = f"!relax.tensor<[64, 8], {t}>", f"!relax.tensor<[64], {t}>"
    return DIFFERENCES.format(t=t, results=", ".join((wide, wide, narrow, narrow, wide, wide)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("t", DTYPES)
def test_differences_of_equal_products_are_zero(t: str):
    # Sums of two vectors at most: with more, those of products that are rounded first are other sums.
    rng = np.random.default_rng(0)
    x = np.repeat(rng.uniform(0.5, 2, (64, 1)).astype(DTYPES[t]), 8, axis=1)
    w = rng.uniform(0.5, 2, 8).astype(DTYPES[t])
    *zeros, shifted = run_in_turn(_differences(t), "main", (x, x.copy(), w), EXACT)
    for number, found in enumerate(zeros):
        np.testing.assert_array_equal(found, 0, err_msg=f"result {number}")
    np.testing.assert_array_equal(shifted, x * w + x)


KERNEL = """
tir.prim_func @kernel(%X: !tir.buffer<[256], f32>, %M: !tir.buffer<[256], f32>, %R: !tir.buffer<[256], f32>) {{
  %extent = arith.constant 256 : index
  tir.for {kind} (%i) in (%extent) {{
    tir.block "f" (%v = spatial %i in %extent) {{
      %x = tir.load %X[%v]
      %m = tir.load %M[%v]
      {body}
      %r = math.sqrt %d : f32
      tir.store %r, %R[%v]
    }}
  }}
}}
relax.func @main(%x: !relax.tensor<[256], f32>, %m: !relax.tensor<[256], f32>) -> !relax.tensor<[256], f32> {{
  %r = relax.call_tir @kernel(%x, %m) : !relax.tensor<[256], f32>
  relax.return %r
}}
"""

BODIES = {
    "variance": "%p = arith.mulf %x, %x : f32\n %d = arith.subf %m, %p : f32",
    "product first": "%p = arith.mulf %x, %x : f32\n %d = arith.subf %p, %m : f32",
    "added": "%n = arith.negf %m : f32\n %p = arith.mulf %x, %x : f32\n %d = arith.addf %n, %p : f32",
    "negated product": "%p = arith.mulf %x, %x : f32\n %n = arith.negf %p : f32\n %d = arith.addf %m, %n : f32",
    "negated factor": "%n = arith.negf %x : f32\n %p = arith.mulf %n, %x : f32\n %d = arith.addf %m, %p : f32",
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", ["", "vectorized"])
@pytest.mark.parametrize("body", BODIES)
def test_what_was_rounded_before_is_no_summand_of_a_multiply_add(body: str, kind: str):
    x = np.random.default_rng(1).uniform(0.5, 2, 256).astype(np.float32)
    found = run_in_turn(KERNEL.format(kind=kind, body=BODIES[body]), "main", (x, x * x), EXACT)
    np.testing.assert_array_equal(found, 0)
