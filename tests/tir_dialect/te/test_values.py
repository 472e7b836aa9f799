"""What scalar operations on tensors compute, against NumPy."""

from __future__ import annotations

import math
import operator
import re

import numpy as np
import pytest

from tests.support.te_values import FLOATS, INTEGERS, close, evaluate, numpy_type, values_of
from tir_dialect import te
from tir_dialect.interpreter import run_prim_func

n, m, k = te.var("n"), te.var("m"), te.var("k")


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
    "nearbyint": (te.nearbyint, np.rint),
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
    "power": (te.power, np.power),
    "logaddexp": (te.logaddexp, np.logaddexp),
    "atan2": (te.atan2, np.arctan2),
    "copysign": (te.copysign, np.copysign),
    "hypot": (te.hypot, np.hypot),
    "ldexp": (
        lambda a, b: te.ldexp(a, te.if_then_else(b > 0, te.const(3, "i8"), -2)),
        lambda a, b: np.ldexp(a, np.where(b > 0, 3, -2)),
    ),
    "nextafter": (te.nextafter, np.nextafter),
}


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("name", FLOAT_BINARY)
def test_float_operators(name, dtype):
    if (name, dtype) == ("nextafter", "f16"):
        with pytest.raises(TypeError, match=re.escape("te.nextafter: expected f32 or f64, got f16")):
            te.nextafter(te.scalar("x", "f16"), 1.0)
        return
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
    "ceildiv": (te.ceildiv, lambda a, b: a // b + (a % b != 0)),
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
    """As NumPy's, also where no machine has a quotient: that of the smallest number by -1, and those by 0."""
    build, reference = INTEGER_BINARY[name]
    a, b = values_of(dtype, 1, 40), values_of(dtype, 2, 40)[::-1].copy()
    b[:4] = np.array([-1, 0, 0, 0]).astype(b.dtype)
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


def test_quotients_of_indices_that_are_rounded_towards_zero():
    """Of what may be negative, too, by sizes of both signs; as those of floordiv where nothing is negative."""
    quotients = te.compute((9, 5), lambda i, j: te.truncdiv(i - 4, j - 5), name="quotients")
    rests = te.compute((9, 5), lambda i, j: te.truncmod(i - 4, j - 5), name="rests")
    up = te.compute((9, 5), lambda i, j: te.truncdiv(i - 4, j + 1), name="up")
    func = te.create_prim_func([quotients, rests, up])
    found = [np.empty((9, 5), np.int64) for _ in range(3)]
    run_prim_func(func, found)
    i, j = np.ogrid[:9, :5]
    np.testing.assert_array_equal(found[0], np.trunc((i - 4) / (j - 5)))
    np.testing.assert_array_equal(found[1], np.fmod(i - 4, j - 5))
    np.testing.assert_array_equal(found[2], np.trunc((i - 4) / (j + 1)))
    r = te.reduce_axis(4, "r")
    x = te.placeholder((n, 4), "f32", "X")
    folded = te.compute(
        (n,), lambda i: te.sum(x[te.truncdiv(2 * i + n, n + 1), te.truncmod(i + r, 4)], r), name="folded"
    )
    same = te.compute((n,), lambda i: te.sum(x[(2 * i + n) // (n + 1), (i + r) % 4], r), name="folded")
    assert str(te.create_prim_func([x, folded])) == str(te.create_prim_func([x, same]))
