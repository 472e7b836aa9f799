"""`R.emit_te` of functions and lambdas of the text."""

from textwrap import dedent

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.programs import run_in_turn


def module_of(text: str):
    return parse(dedent(text), filename="test.py")


def test_functions_lambdas_and_operators():
    module = module_of("""
        def double(A, scale):
            n = A.shape[0]
            k = te.reduce_axis((0, 4), name="k")
            S = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="S")
            return te.compute(A.shape, lambda i, j: A[i, j] * scale + S[i] + T.exp(A(i, j)), name="D")

        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            a = R.emit_te(double, x, 2.0)
            b = R.emit_te(lambda A: te.compute(A.shape, lambda *i: A(*i) + 1), a, primfunc_name_hint="increment")
            c = R.emit_te(topi.nn.softmax, b, axis=1)
            return c
        """)
    x = np.random.default_rng(0).random((3, 4), np.float32)
    y = np.exp(2 * x + x.sum(1, keepdims=True) + np.exp(x) + 1)
    np.testing.assert_allclose(run_in_turn(module, "main", [x]), y / y.sum(1, keepdims=True), rtol=1e-5)
    assert "increment" in str(module)


def test_several_results():
    module = module_of("""
        def both(A):
            B = te.compute(A.shape, lambda i: A[i] + 1.0)
            C = te.compute(A.shape, lambda i: T.if_then_else(i > 0, A[i - 1], A[i]))
            return B, C

        @R.function
        def main(x: R.Tensor(("n",), "float32")):
            b, c = R.emit_te(both, x)
            return b * c
        """)
    x = np.arange(5, dtype=np.float32)
    shifted = np.concatenate([x[:1], x[:-1]])
    np.testing.assert_array_equal(run_in_turn(module, "main", [x]), (x + 1) * shifted)


def test_axes_that_vary_and_slices():
    module = module_of("""
        def row(A, i):
            k = te.reduce_axis((0, i + 1), name="k")
            return te.sum(A[i][k], axis=k)

        def below(A):
            return te.compute((A.shape[0],), lambda i: row(A, i))

        @R.function
        def main(x: R.Tensor(("n", "n"), "float32")):
            return R.emit_te(below, x)
        """)
    x = np.random.default_rng(0).random((4, 4), np.float32)
    np.testing.assert_allclose(run_in_turn(module, "main", [x]), np.tril(x).sum(1), rtol=1e-5)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("other", "expected a lambda, a function of the text"),
        ("lambda A: te.compute(A.shape, lambda i, j: A[i])", "has rank 1, but its function takes 2"),
        ("lambda A: te.compute(A.shape, lambda i: A[i, i])", "has rank 1, got 2 indices"),
        ("lambda A: te.compute(A.shape, lambda i: A[i][i])", "has no elements"),
        ("lambda A: te.compute(A.shape, f)", "te.compute expected a lambda"),
        ("lambda A: A.size", "a tensor has no size"),
        (
            "lambda A: te.compute(A.shape, lambda i: te.sum(A[i], axis=i))",
            "is a spatial variable, expected te.reduce_axis",
        ),
    ],
)
def test_errors(function: str, message: str):
    with pytest.raises(TVMScriptError, match=message):
        module_of(f"""
            @R.function
            def main(x: R.Tensor(("n",), "float32")):
                return R.emit_te({function}, x)
            """)


def test_functions_of_topi_and_helpers():
    module = module_of("""
        SCALE = 3.0

        def scaled(A):
            return te.compute(A.shape, lambda *i: A(*i) * SCALE)

        def twice(A):
            return scaled(scaled(A))

        def shifted(x, y):
            return topi.add(x, y)

        def fused(x, y, *, axis):
            total = topi.sum(shifted(x, y), axis=axis)
            return topi.exp(total) + 1.0

        @R.function
        def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor((), "float32")):
            a = R.emit_te(fused, x, y, axis=1)
            return R.emit_te(twice, a)
        """)
    assert "relax.exp" in str(module)
    x, y = np.random.default_rng(1).random((3, 4), np.float32), np.float32(-1)
    expected = 9 * (np.exp(np.sum(x + y, axis=1)) + 1)
    np.testing.assert_allclose(np.asarray(run_in_turn(module, "main", [x, np.array(y)])), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("te.compute(A.shape, lambda i: topi.exp(A)[i])", "those of te are not"),
        ("endless(A)", "calls itself, which nothing ends"),
    ],
)
def test_functions_that_are_not_taken(body: str, message: str):
    text = f"""
        def endless(A):
            return {body}

        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return R.emit_te(endless, x)
        """
    with pytest.raises(TVMScriptError, match=message):
        module_of(text)
