"""Reductions whose bounds depend on other variables and on elements: also where there is nothing to reduce."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from tests.support.te_values import evaluate
from tir_dialect import te
from vm_dialect import VirtualMachine

n = te.var("n")
A = te.placeholder((n, n), "f32", "A")
L = te.placeholder((n,), "i32", "L")


def triangle(i):
    r = te.reduce_axis((0, i), "r")
    return te.sum(A[i, r], r)


def ragged(i):
    r = te.reduce_axis(L[i], "r")
    return te.sum(A[i, r], r)


def band(i):
    q, r = te.reduce_axis((1, n), "q"), te.reduce_axis((i - 1, L[i] + 1), "r")
    return te.sum(A[q, r], [q, r], where=te.all(r >= 0, r < n))


def inner(i):
    q = te.reduce_axis(n, "q")
    r = te.reduce_axis((1, q), "r")
    return te.max(A[i, r] + te.cast(q, "f32"), [q, r])


def lifted(i):
    r = te.reduce_axis((0, i), "r")
    return te.exp(te.sum(A[i, r], r) * 0.01) + 1.0


def the_band(a, first, end):
    return a[1:, max(first, 0) : max(end, 0)].sum()


REFERENCES = {
    triangle: lambda a, size, i: a[i, :i].sum(),
    ragged: lambda a, size, i: a[i, : size[i]].sum(),
    band: lambda a, size, i: the_band(a, i - 1, size[i] + 1),
    inner: lambda a, size, i: max((a[i, r] + q for q in range(len(a)) for r in range(1, q)), default=-np.inf),
    lifted: lambda a, size, i: np.exp(a[i, :i].sum() * 0.01) + 1,
}


@pytest.mark.parametrize("extent", [0, 1, 5])
@pytest.mark.parametrize("body", REFERENCES)
def test_bounds_that_vary(body, extent):
    rng = np.random.default_rng(extent)
    a, size = rng.standard_normal((extent, extent), np.float32), rng.integers(0, extent + 1, extent, np.int32)
    size[:1] = 0
    want = np.array([REFERENCES[body](a, size, i) for i in range(extent)], np.float32)
    B = te.compute((n,), body, name="B")
    np.testing.assert_allclose(evaluate([A, L], B, a, size, n=extent), want, rtol=1e-5)


def test_native_code_starts_empty_reductions():
    bodies = list(REFERENCES)
    outs = [te.compute((n,), body, name=body.__name__) for body in bodies]
    a = np.arange(36, dtype=np.float32).reshape(6, 6)
    size = np.array([0, 2, 0, 6, 1, 3], np.int32)
    got = [np.full(6, 7, np.float32) for _ in outs]
    VirtualMachine(build(ModuleOp([te.create_prim_func([A, L, *outs])])))["main"](a, size, *got)
    for body, result in zip(bodies, got, strict=True):
        want = [REFERENCES[body](a, size, i) for i in range(6)]
        np.testing.assert_allclose(result, np.array(want, np.float32), rtol=1e-5)


def test_an_axis_comes_behind_those_that_its_bounds_use():
    q = te.reduce_axis(n, "q")
    r = te.reduce_axis((0, q), "r")
    with pytest.raises(ValueError, match=re.escape('the bounds of "r" use "q", which has to come before it')):
        te.compute((n,), lambda i: te.sum(A[i, r], [r, q]))
    with pytest.raises(ValueError, match='uses "q", which is used outside its reduction'):
        te.compute((n,), lambda i: te.sum(A[i, r], r))


def test_a_reduction_for_each_round_of_a_varying_one_is_refused():
    s = te.reduce_axis(n, "s")

    def body(i):
        r = te.reduce_axis((0, i), "r")
        return te.sum(A[i, r] * te.sum(A[r, s], s), r)

    with pytest.raises(ValueError, match='cannot be computed for all values of "r", whose bounds vary'):
        te.compute((n,), body)
