"""What the functions made from tensor expressions compute, against NumPy."""

from __future__ import annotations

import math
import operator

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tir_dialect import te
from tir_dialect.interpreter import run_prim_func

n, m, k = te.var("n"), te.var("m"), te.var("k")
extents = st.sampled_from([0, 1, 2, 3, 5, 8])
FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
INTEGERS = {
    f"{kind}{bits}": np.dtype(f"{name}{bits}")
    for kind, name in (("i", "int"), ("ui", "uint"))
    for bits in (8, 16, 32, 64)
}


def numpy_type(dtype):
    return np.dtype({**FLOATS, **INTEGERS, "i1": np.bool_}[dtype])


def values_of(dtype, seed, shape):
    """Random values, with the extremes of an integer dtype among them."""
    rng = np.random.default_rng(seed)
    if dtype == "i1":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype in FLOATS:
        return (rng.standard_normal(shape) * 3).astype(FLOATS[dtype])
    info = np.iinfo(INTEGERS[dtype])
    values = rng.integers(-20 if info.min < 0 else 0, 20, shape).astype(INTEGERS[dtype])
    values.flat[:2] = [info.min, info.max][: values.size]
    return values


def evaluate(inputs, outputs, *arrays, **symbols):
    """The outputs of the function over `inputs`; their shapes follow from the symbols."""
    outs = outputs if isinstance(outputs, tuple) else (outputs,)
    func = te.create_prim_func([*inputs, *outs])
    func.verify()
    results = [np.zeros([dim.evaluate(symbols) for dim in out.shape], numpy_type(str(out.dtype))) for out in outs]
    run_prim_func(func, [*arrays, *results], {s: v for s, v in symbols.items() if s in func.symbol_names})
    return tuple(results) if isinstance(outputs, tuple) else results[0]


def close(got, want, dtype):
    tolerance = {"f16": 2e-3, "bf16": 2e-2, "f32": 1e-6, "f64": 1e-13}.get(dtype, 0)
    np.testing.assert_allclose(
        got.astype(np.float64), np.asarray(want).astype(np.float64), rtol=tolerance, atol=tolerance
    )


UNARY = {
    "exp": (te.exp, np.exp),
    "exp2": (te.exp2, np.exp2),
    "expm1": (te.expm1, np.expm1),
    "log": (te.log, np.log),
    "log2": (te.log2, np.log2),
    "log10": (te.log10, np.log10),
    "log1p": (te.log1p, np.log1p),
    "sqrt": (te.sqrt, np.sqrt),
    "rsqrt": (te.rsqrt, lambda x: 1 / np.sqrt(x)),
    "cbrt": (te.cbrt, np.cbrt),
    "sin": (te.sin, np.sin),
    "cos": (te.cos, np.cos),
    "tan": (te.tan, np.tan),
    "asin": (te.asin, np.arcsin),
    "acos": (te.acos, np.arccos),
    "atan": (te.atan, np.arctan),
    "sinh": (te.sinh, np.sinh),
    "cosh": (te.cosh, np.cosh),
    "tanh": (te.tanh, np.tanh),
    "asinh": (te.asinh, np.arcsinh),
    "acosh": (te.acosh, np.arccosh),
    "atanh": (te.atanh, np.arctanh),
    "erf": (te.erf, np.vectorize(math.erf)),
    "sigmoid": (te.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "floor": (te.floor, np.floor),
    "ceil": (te.ceil, np.ceil),
    "trunc": (te.trunc, np.trunc),
    "round": (te.round, np.round),
    "round_away": (te.round_away, lambda x: np.trunc(x + np.copysign(0.5, x))),
    "abs": (te.abs, np.abs),
    "negative": (operator.neg, np.negative),
    "sign": (te.sign, np.sign),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_float_functions(name, dtype):
    build, reference = UNARY[name]
    special = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 0.25, 3.0], FLOATS[dtype])
    X = te.placeholder((n,), dtype, "X")
    got = evaluate([X], te.compute((n,), lambda i: build(X[i])), special, n=special.size)
    with np.errstate(all="ignore"):
        close(got, reference(special.astype(np.float64)).astype(FLOATS[dtype]), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("build", "reference"), [(te.isnan, np.isnan), (te.isinf, np.isinf), (te.isfinite, np.isfinite)]
)
def test_classification(build, reference, dtype):
    special = np.array([0.0, 1.0, np.inf, -np.inf, np.nan], FLOATS[dtype])
    X = te.placeholder((n,), dtype, "X")
    got = evaluate([X], te.compute((n,), lambda i: build(X[i])), special, n=5)
    np.testing.assert_array_equal(got, reference(special.astype(np.float64)))


FLOAT_BINARY = {
    "add": (operator.add, np.add),
    "subtract": (operator.sub, np.subtract),
    "multiply": (operator.mul, np.multiply),
    "divide": (operator.truediv, np.divide),
    "floordiv": (operator.floordiv, lambda a, b: np.floor(a / b)),
    "floormod": (operator.mod, np.mod),
    "fmod": (te.fmod, np.fmod),
    "maximum": (te.maximum, np.maximum),
    "minimum": (te.minimum, np.minimum),
    "fmax": (te.fmax, np.fmax),
    "fmin": (te.fmin, np.fmin),
    "power": (operator.pow, np.power),
    "atan2": (te.atan2, np.arctan2),
    "copysign": (te.copysign, np.copysign),
}


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("name", FLOAT_BINARY)
def test_float_operators(name, dtype):
    build, reference = FLOAT_BINARY[name]
    special = np.array([1.0, -1.5, 0.0, -0.0, 2.0, np.inf, -np.inf, np.nan, 0.1], FLOATS[dtype])
    a, b = (side.ravel() for side in np.meshgrid(special, special))
    A, B = te.placeholder((n,), dtype, "A"), te.placeholder((n,), dtype, "B")
    got = evaluate([A, B], te.compute((n,), lambda i: build(A[i], B[i])), a, b, n=a.size)
    with np.errstate(all="ignore"):
        want = reference(a, b)
    close(got, want, dtype)
    if name not in ("maximum", "minimum", "fmax", "fmin", "floordiv", "fmod"):
        finite = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[finite]), np.signbit(want[finite]))


def test_fma_rounds_once():
    A = te.placeholder((n,), "f32", "A")
    a = np.array([1 + 2**-12], np.float32)
    got = evaluate([A], te.compute((n,), lambda i: te.fma(A[i], A[i], -A[i])), a, n=1)
    exact = np.float64(a[0]) * np.float64(a[0]) - np.float64(a[0])
    assert got[0] == np.float32(exact)


INTEGER_BINARY = {
    "add": (operator.add, np.add),
    "subtract": (operator.sub, np.subtract),
    "multiply": (operator.mul, np.multiply),
    "floordiv": (operator.floordiv, np.floor_divide),
    "floormod": (operator.mod, np.mod),
    "truncmod": (te.truncmod, np.fmod),
    "maximum": (te.maximum, np.maximum),
    "minimum": (te.minimum, np.minimum),
    "and": (operator.and_, np.bitwise_and),
    "or": (operator.or_, np.bitwise_or),
    "xor": (operator.xor, np.bitwise_xor),
    "lt": (operator.lt, np.less),
    "le": (operator.le, np.less_equal),
    "gt": (operator.gt, np.greater),
    "ge": (operator.ge, np.greater_equal),
    "eq": (operator.eq, np.equal),
    "ne": (operator.ne, np.not_equal),
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", INTEGER_BINARY)
def test_integer_operators(name, dtype):
    build, reference = INTEGER_BINARY[name]
    a, b = values_of(dtype, 1, 40), values_of(dtype, 2, 40)[::-1].copy()
    b[b == 0] = 1
    # the one quotient that no machine has
    b[(a == np.iinfo(a.dtype).min) & (b.astype(object) == -1)] = 3
    A, B = te.placeholder((n,), dtype, "A"), te.placeholder((n,), dtype, "B")
    got = evaluate([A, B], te.compute((n,), lambda i: build(A[i], B[i])), a, b, n=40)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, reference(a, b))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_functions(dtype):
    a = values_of(dtype, 3, 40)
    bits = a.dtype.itemsize * 8
    A = te.placeholder((n,), dtype, "A")
    outputs = te.compute(
        (n,),
        lambda i: (
            te.abs(A[i]),
            te.sign(A[i]),
            ~A[i],
            A[i] << 2,
            A[i] >> 1,
            te.popcount(A[i]),
            te.count_leading_zeros(A[i]),
            -A[i],
        ),
    )
    got = evaluate([A], outputs, a, n=40)
    patterns = [format(int(v) % 2**bits, f"0{bits}b") for v in a]
    want = [np.abs(a), np.sign(a), ~a, a << 2, a >> 1]
    want += [[p.count("1") for p in patterns], [len(p) - len(p.lstrip("0")) for p in patterns]]
    want.append([(-int(v)) % 2**bits for v in a])
    for index, (have, expected) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_array_equal(have.astype(object) % 2**bits, np.array(expected, object) % 2**bits, str(index))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_power(dtype):
    base = np.array([0, 1, 2, 3, 5, 7], INTEGERS[dtype])
    exponent = np.array([0, 200 if dtype == "ui8" else 100, 6, 4, 3, 1], INTEGERS[dtype])
    A, B = te.placeholder((n,), dtype, "A"), te.placeholder((n,), dtype, "B")
    got = evaluate([A, B], te.compute((n,), lambda i: A[i] ** B[i]), base, exponent, n=6)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, np.power(base, exponent))


@pytest.mark.parametrize("target", [*FLOATS, *INTEGERS, "i1"])
@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, "i1"])
def test_casts(source, target):
    numbers = [0, 1, 2, 3, 7, 100] if source in INTEGERS else [0, 1, 0.5, 2.5, 3.75, 100]
    if source.startswith("i") and source != "i1":
        numbers += [-1, -100]
    if source in FLOATS and not target.startswith("ui"):
        numbers += [-1, -2.5]
    values = np.array(numbers).astype(numpy_type(source))
    X = te.placeholder((n,), source, "X")
    got = evaluate([X], te.compute((n,), lambda i: te.cast(X[i], target)), values, n=len(values))
    np.testing.assert_array_equal(got, values.astype(numpy_type(target)))


def test_reinterpret():
    X = te.placeholder((n,), "f32", "X")
    U = te.placeholder((n,), "ui8", "U")
    x, u = np.array([1.0, -2.0], np.float32), np.array([200, 3], np.uint8)
    np.testing.assert_array_equal(
        evaluate([X], te.compute((n,), lambda i: te.reinterpret(X[i], "i32")), x, n=2), x.view(np.int32)
    )
    np.testing.assert_array_equal(
        evaluate([U], te.compute((n,), lambda i: te.reinterpret(U[i], "i8")), u, n=2), u.view(np.int8)
    )


def test_indices_become_values():
    got = evaluate(
        [],
        te.compute(
            (n, m),
            lambda i, j: (te.cast(i * m + j, "i32"), te.cast(i - j, "f32"), te.cast(n, "i64") + te.cast(j, "i64")),
        ),
        n=3,
        m=4,
    )
    i, j = np.indices((3, 4))
    np.testing.assert_array_equal(got[0], i * 4 + j)
    np.testing.assert_array_equal(got[1], i - j)
    np.testing.assert_array_equal(got[2], 3 + j)


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
