"""What functions made from tensor expressions compute, against NumPy: reductions, scans, padding, gathers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.te_values import close, evaluate, numpy_type, values_of
from tir_dialect import te
from tir_dialect.interpreter import run_prim_func

n, m, k = te.var("n"), te.var("m"), te.var("k")
extents = st.sampled_from([0, 1, 2, 3, 5, 8])


@settings(max_examples=25, deadline=None)
@given(extents, extents, extents, st.integers(0, 2**32 - 1))
def test_matmul(rows, cols, inner, seed):
    A, B = te.placeholder((n, k), "f32", "A"), te.placeholder((k, m), "f32", "B")
    r = te.reduce_axis(k, "r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], r), name="C")
    a, b = values_of("f32", seed, (rows, inner)), values_of("f32", seed + 1, (inner, cols))
    got = evaluate([A, B, C][:2], C, a, b, n=rows, m=cols, k=inner)
    # an empty reduction does not run its init: there is no instance
    if inner:
        np.testing.assert_allclose(got, a @ b, rtol=1e-4, atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(extents, st.sampled_from([1, 2, 3, 5]), st.integers(0, 2**32 - 1))
def test_softmax_in_one_expression(rows, cols, seed):
    X = te.placeholder((n, m), "f32", "X")
    q = te.reduce_axis(m, "q")

    def softmax(i, j):
        top = te.max(X[i, q], q)
        return te.exp(X[i, j] - top) / te.sum(te.exp(X[i, q] - top), q)

    x = values_of("f32", seed, (rows, cols))
    got = evaluate([X], te.compute((n, m), softmax), x, n=rows, m=cols)
    want = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(got, want / want.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "ui8"])
@pytest.mark.parametrize(
    ("reduce", "reference"),
    [(te.sum, np.sum), (te.prod, np.prod), (te.max, np.max), (te.min, np.min)],
)
def test_reductions(reduce, reference, dtype):
    X = te.placeholder((n, m), dtype, "X")
    r, s = te.reduce_axis((1, n), "r"), te.reduce_axis((0, m - 1), "s")
    narrow = {"accumulate": dtype} if reduce in (te.sum, te.prod) else {}
    x = (values_of(dtype, 5, (4, 5)) % 3).astype(numpy_type(dtype))
    got = evaluate([X], te.compute((), lambda: reduce(X[r, s], [r, s], **narrow)), x, n=4, m=5)
    close(got, reference(x[1:, :-1], **({"dtype": x.dtype} if narrow else {})), dtype)


def test_reductions_under_a_condition():
    X = te.placeholder((n, m), "f32", "X")
    r = te.reduce_axis(m, "r")
    x = values_of("f32", 6, (4, 5))
    below = te.compute((n,), lambda i: te.sum(X[i, r], r, where=r <= i))
    np.testing.assert_allclose(evaluate([X], below, x, n=4, m=5), np.tril(x).sum(1), rtol=1e-5)
    found = te.compute((n,), lambda i: (te.any(X[i, r] > 2, r), te.all(X[i, r] > -4, r)))
    some, every = evaluate([X], found, x, n=4, m=5)
    np.testing.assert_array_equal(some, (x > 2).any(1))
    np.testing.assert_array_equal(every, (x > -4).all(1))
    inside = te.compute((n, m), lambda i, j: te.all(i >= 1, j < 3, te.any(i < 2, X[i, j] > 0)))
    i, j = np.indices(x.shape)
    np.testing.assert_array_equal(evaluate([X], inside, x, n=4, m=5), (i >= 1) & (j < 3) & ((i < 2) | (x > 0)))
    with pytest.raises(TypeError, match="expected one value over an axis, got 2"):
        te.compute((n,), lambda i: te.all(i > 0, X[i, r] > 0, r))


def test_maximum_of_nan_is_nan():
    X = te.placeholder((n,), "f32", "X")
    r = te.reduce_axis(n, "r")
    x = np.array([1.0, np.nan, 3.0], np.float32)
    assert np.isnan(evaluate([X], te.compute((), lambda: te.max(X[r], r)), x, n=3))


def test_wide_accumulator():
    X = te.placeholder((n,), "f16", "X")
    r = te.reduce_axis(n, "r")
    x = np.full(5000, 1.0, np.float16)
    total = te.compute((), lambda: te.sum(X[r], r, accumulate="f32"))
    assert evaluate([X], total, x, n=5000) == 5000
    narrow = te.compute((), lambda: te.sum(X[r], r, accumulate="f16"))
    assert evaluate([X], narrow, x, n=5000) == 2048


@settings(max_examples=25, deadline=None)
@given(extents, st.sampled_from([1, 2, 3, 5]), st.integers(0, 2**32 - 1))
def test_arg_reduction(rows, cols, seed):
    X = te.placeholder((n, m), "i32", "X")
    r = te.reduce_axis(m, "r")
    argmax = te.comm_reducer(
        lambda a, b: (te.maximum(a[0], b[0]), te.select((a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1])), a[1], b[1])),
        lambda value, index: (te.min_value(value), te.max_value(index)),
    )
    x = np.random.default_rng(seed).integers(-3, 3, (rows, cols)).astype(np.int32)
    value, index = te.compute((n,), lambda i: argmax((X[i, r], te.cast(r, "i64")), r))
    got = evaluate([X], (value, index), x, n=rows, m=cols)
    np.testing.assert_array_equal(got[0], x.max(1))
    np.testing.assert_array_equal(got[1], x.argmax(1))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 9))
def test_compound_shape_with_an_explicit_symbol(size):
    half = 2 * (m // 2)
    X = te.placeholder((n, half), "f32", "X")
    x = values_of("f32", size, (3, size // 2 * 2))
    got = evaluate([X], te.compute((n, half), lambda i, j: X[i, half - 1 - j]), x, n=3, m=size)
    np.testing.assert_array_equal(got, x[:, ::-1])


@settings(max_examples=25, deadline=None)
@given(extents, st.integers(0, 3), st.integers(0, 3))
def test_padding_guards_its_loads(size, before, after):
    X = te.placeholder((n,), "f32", "X")
    x = values_of("f32", size, (size,))
    padded = te.compute(
        (n + before + after,),
        lambda i: te.if_then_else((i >= before) & (i < n + before), X[i - before], -1),
    )
    np.testing.assert_array_equal(evaluate([X], padded, x, n=size), np.pad(x, (before, after), constant_values=-1))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 12))
def test_floor_division_of_negative_indices(size):
    out = te.compute((n,), lambda i: (te.cast((i - 5) // 3, "i64"), te.cast((i - 5) % 3, "i64"), te.cast(i % 4, "i64")))
    got = evaluate([], out, n=size)
    i = np.arange(size)
    np.testing.assert_array_equal(got[0], (i - 5) // 3)
    np.testing.assert_array_equal(got[1], (i - 5) % 3)
    np.testing.assert_array_equal(got[2], i % 4)


def test_gather_and_scalars():
    X, Index = te.placeholder((n,), "f32", "X"), te.placeholder((m,), "ui8", "I")
    scale = te.scalar("scale", "f32")
    x, i = values_of("f32", 1, (200,)), np.array([3, 199, 128], np.uint8)
    out = te.compute((m,), lambda j: X[Index[j]] * scale)
    func = te.create_prim_func([X, Index, scale, out])
    result = np.zeros(3, np.float32)
    run_prim_func(func, [x, i, 2.0, result])
    np.testing.assert_array_equal(result, x[i] * 2)


def test_external_functions_of_scalars():
    X = te.placeholder((n,), "f64", "X")
    out = te.compute((n,), lambda i: te.call_extern("f64", "lgamma", X[i]))
    got = evaluate([X], out, np.array([1.0, 5.0]), n=2)
    np.testing.assert_allclose(got, [0, math.lgamma(5)], atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(extents, extents, st.integers(0, 2**32 - 1))
def test_extern_scan(rows, cols, seed):
    X = te.placeholder((n, m), "f32", "X")

    def cumsum(b, ins, outs):
        (x,), (y,) = ins, outs
        with b.block("scan", ("spatial", n, "i"), ("scan", m, "j")) as (i, j):
            b.store(y, (i, j), te.if_then_else(j > 0, y[i, j - 1], 0) + x[i, j])

    (Y,) = te.extern([((n, m), "f32")], [X], cumsum)
    x = values_of("f32", seed, (rows, cols))
    np.testing.assert_allclose(evaluate([X], Y, x, n=rows, m=cols), np.cumsum(x, 1, dtype=np.float32), rtol=1e-6)


@settings(max_examples=20, deadline=None)
@given(extents, extents, st.integers(0, 2**32 - 1))
def test_extern_reduction(rows, cols, seed):
    """An init starts each sum, also one of nothing; here in every step of a loop."""
    X = te.placeholder((n, m), "f32", "X")

    def sums(b, ins, outs):
        (x,), (y,) = ins, outs
        with (
            b.for_range(0, 2, name="step"),
            b.block("sum", ("spatial", n, "i"), ("reduce", m, "j")) as (i, j),
        ):
            with b.init():
                b.store(y, (i,), te.const(1, "f32"))
            b.store(y, (i,), y[i] + x[i, j])

    (Y,) = te.extern([((n,), "f32")], [X], sums)
    x = values_of("f32", seed, (rows, cols))
    expected = 1 + x.sum(1, dtype=np.float64)
    np.testing.assert_allclose(evaluate([X], Y, x, n=rows, m=cols), expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-5, 5), max_size=8))
def test_extern_insertion_sort(numbers):
    X = te.placeholder((n,), "i32", "X")

    def sort(b, ins, outs):
        (x,), (y,) = ins, outs
        at = b.alloc((), "i64", "at")
        with b.for_range(0, n, name="i") as i:
            value = b.let(x[i])
            b.store(at, (), te.cast(i, "i64"))
            moving = te.if_then_else(at[()] > 0, y[at[()] - 1] > value, False)
            with b.while_(moving):
                b.store(y, at[()], y[at[()] - 1])
                b.store(at, (), at[()] - 1)
            b.store(y, at[()], value)

    (Y,) = te.extern([((n,), "i32")], [X], sort)
    x = np.array(numbers, np.int32)
    np.testing.assert_array_equal(evaluate([X], Y, x, n=len(numbers)), np.sort(x))


@pytest.mark.parametrize("columns", [0, 1, 5])
@pytest.mark.parametrize(
    ("reduce", "reference"), [(te.sum, np.add), (te.prod, np.multiply), (te.max, np.maximum), (te.min, np.minimum)]
)
def test_reductions_start_with_what_is_given(reduce, reference, columns):
    X, B = te.placeholder((n, m), "i32", "X"), te.placeholder((n,), "i32", "B")
    r = te.reduce_axis(m, "r")
    x, b = values_of("i32", 5, (3, columns)) % 7, values_of("i32", 6, (3,)) % 7
    row = te.compute((n,), lambda i: reduce(X[i, r], r, init=B[i]), name="row")
    inside = te.compute((n,), lambda i: reduce(X[i, r], r, where=r > 0, init=4) + i.astype("i32"), name="inside")
    got = evaluate([X, B], (row, inside), x, b, n=3, m=columns)
    np.testing.assert_array_equal(got[0], reference.reduce(np.hstack([b[:, None], x]), axis=1))
    rest = np.hstack([np.full((3, 1), 4, "int32"), x[:, 1:]])
    np.testing.assert_array_equal(got[1], reference.reduce(rest, axis=1) + np.arange(3))


def test_several_values_start_with_what_is_given():
    X = te.placeholder((n, m), "i32", "X")
    r = te.reduce_axis(m, "r")
    both = te.comm_reducer(lambda a, b: (a[0] + b[0], te.maximum(a[1], b[1])), lambda *dtypes: (0, -(2**31)))
    outs = te.compute((n,), lambda i: both((X[i, r], X[i, r]), r, init=(10, 3)), name="Y")
    x = np.array([[1, 2], [3, 4]], np.int32)
    total, top = evaluate([X], outs, x, n=2, m=2)
    assert total.tolist() == [13, 17]
    assert top.tolist() == [3, 4]
    for init, message in (((1, 2, 3), "init has 3 values for 2"), ((1.5, 3), "i32"), ((r.astype("i32"), 3), '"r"')):
        with pytest.raises((TypeError, ValueError), match=message):
            te.compute((n,), lambda i, init=init: both((X[i, r], X[i, r]), r, init=init))
