"""PrimFuncs for known sizes and numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import check_valid, matmul, run
from tir_dialect import specialize
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.control_flow import ForOp

SIZES = {"n": 5, "k": 3, "m": 7}


@pytest.mark.parametrize("known", [{"n": 5}, {"n": 5, "k": 3, "m": 7}, {"A": [5, 3]}, {"A": [5, 3], "C": [5, 7]}, {}])
def test_of_sizes(known: Mapping[str, object]):
    before = matmul()
    text = str(before)
    made = specialize(before, known)
    check_valid(made)
    assert str(before) == text
    told = {name for name in "nkm" if name in known} | {n for n, key in zip("nk", "AA", strict=True) if key in known}
    told |= {"m"} if "C" in known else set()
    assert set(made.symbol_names) == {"n", "k", "m"} - told
    for want, have in zip(run(before, SIZES), run(made, SIZES), strict=True):
        np.testing.assert_array_equal(have, want)


def test_loops_are_of_constant_extent():
    made = specialize(matmul(), SIZES)
    assert "tir.dim" not in str(made)
    assert str(made).startswith("tir.prim_func @matmul(%A: !tir.buffer<[5, 3], i32>, %B: !tir.buffer<[3, 7], i32>")
    assert {op.upper.name_hint for op in made.walk() if isinstance(op, ForOp)} == {"c5", "c7", "c3"}


def test_of_a_size_over_others():
    made = specialize(matmul(), {"n": "4 * k", "m": "k + 1"})
    check_valid(made)
    sizes = {"n": 12, "k": 3, "m": 4}
    for want, have in zip(run(matmul(), sizes), run(made, {"k": 3}), strict=True):
        np.testing.assert_array_equal(have, want)


COMPOUND = """
tir.prim_func @scale[%n in [1, 64]](
  %A: !tir.buffer<[2 * n], f32>, %factor: f32, %count: i32, %B: !tir.buffer<[n], f32>
) {
  %t = tir.alloc_buffer : !tir.buffer<[n + 1], f32>
  tir.for (%i) in (%n) {
    %e = tir.dim 2 * n - 1
    %j = arith.subi %e, %i : index
    %a = tir.load %A[%j]
    %c = arith.sitofp %count : i32 to f32
    %p = arith.mulf %a, %factor : f32
    %s = arith.addf %p, %c : f32
    tir.store %s, %t[%i]
    %x = tir.load %t[%i]
    tir.store %x, %B[%i]
  }
}
"""


def test_of_parameters_and_compound_shapes():
    func = parse_prim_func(COMPOUND)
    a = np.arange(8, dtype=np.float32)
    want = 2.5 * a[:3:-1] - 3
    for known, left in (
        ({"n": 4}, (a, 2.5, -3)),
        ({"factor": 2.5}, (a, -3)),
        ({"count": -3, "factor": 2.5, "A": [8]}, (a,)),
        ({"B": [4], "A": [8], "count": -3}, (a, 2.5)),
    ):
        made = specialize(func, known)
        check_valid(made)
        b = np.zeros(4, np.float32)
        run_prim_func(made, [*left, b])
        np.testing.assert_array_equal(b, want, str(known))


ERRORS = [
    ({"q": 3}, "specialize: @scale has the sizes and parameters n, A, factor, count, B, got a value for q"),
    ({"n": 65}, "expected n in [1, 64], got 65"),
    ({"n": "k"}, "expected a size over nothing, got k with k"),
    ({"n": 2.5}, "expected a number or a dimension for the size n, got 2.5"),
    ({"A": [7]}, "cannot have these shapes: 7 does not match 2 * n"),
    ({"A": [8, 1]}, "expected 1 numbers as the shape of A, got [8, 1]"),
    ({"A": 8}, "expected 1 numbers as the shape of A, got 8"),
    ({"A": ["n"]}, "expected 1 numbers as the shape of A, got ['n']"),
    ({"n": 3, "B": [4]}, "cannot have these shapes: 4 does not match 3"),
    ({"B": [4], "A": [9]}, "cannot have these shapes: 9 does not match 2 * n with n = 4"),
    ({"count": 2.5}, "expected a number of i32 for count, got 2.5"),
    ({"count": 1 << 40}, "expected a number of i32 for count, got 1099511627776"),
    ({"factor": "n"}, "expected a number of f32 for factor, got n"),
]


def test_values_without_names():
    with pytest.raises(TypeError, match=r"specialize: expected values by name, got \[3\]"):
        specialize(parse_prim_func(COMPOUND), cast("Any", [3]))
    with pytest.raises(TypeError, match=r"specialize expected a tir\.prim_func, got str"):
        specialize(cast("Any", COMPOUND), {})
    with pytest.raises(TypeError, match=r"run_prim_func expected a tir\.prim_func, got str"):
        run_prim_func(cast("Any", COMPOUND), [])


@pytest.mark.parametrize(("known", "message"), ERRORS)
def test_what_cannot_be(known: Mapping[str, object], message: str):
    with pytest.raises(ValueError, match=re.escape(message)):
        specialize(parse_prim_func(COMPOUND), known)


def test_values_for_which_the_function_leaves_its_buffers():
    func = parse_prim_func("""
tir.prim_func @f[%n](%A: !tir.buffer<[n], f32>) {
  %c3 = arith.constant 3 : index
  %x = arith.constant 0.0 : f32
  tir.store %x, %A[%c3]
}""")
    check_valid(specialize(func, {"n": 4}))
    with pytest.raises(ValueError, match=r"@f cannot be for n = 2: 'tir.prim_func' op has a 'tir.store'"):
        specialize(func, {"n": 2})
