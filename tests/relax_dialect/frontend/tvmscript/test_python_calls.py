"""What texts have of Python around the operators: calls as values, lambdas by name, bindings side by side."""

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.programs import run_in_turn

X = np.arange(6, dtype=np.float32).reshape(2, 3) + 1


def result_of(text: str, *arguments: object) -> Any:
    return run_in_turn(parse(dedent(text)), "main", arguments)


def test_calls_of_operators_as_values():
    text = """
        @I.ir_module
        class M:
            @R.function
            def main(x: R.Tensor(("n", 3), "float32")):
                n, scale, m = T.int64(), I.meta_var(T.FloatImm("float32", 2.0)), T.meta_var(3)
                args = (x,)
                a = R.Call(tvm.ir.Op.get("relax.call_tir"), [M.double, R.Tuple([x])], ty_args=[x.ty])
                b = R.Call(tvm.ir.Op.get("relax.nn.relu"), [R.negative(x) + R.const(scale)])
                c = R.emit_with_ty("relax.call_tir", (M.double, args), (R.Tensor((n, m), "float32"),))
                return (a, R.Call(M.keep, [b]), c)

            @R.function(private=True)
            def keep(x: R.Tensor(("k", 3), "float32")):
                return x

            @T.prim_func(private=True)
            def double(a: T.handle, b: T.handle):
                n = T.int64()
                A = T.match_buffer(a, (n, 3), "float32")
                B = T.match_buffer(b, (n, 3), "float32")
                for i, j in T.grid(n, 3):
                    B[i, j] = A[i, j] * T.float32(2)
        """
    doubled, relu, again = result_of(text, X)
    np.testing.assert_array_equal(doubled, 2 * X)
    np.testing.assert_array_equal(again, 2 * X)
    np.testing.assert_array_equal(relu, np.maximum(2 - X, 0))


def test_closures_bind_the_last_parameters():
    """As TVM's machine does it."""
    text = """
        @I.ir_module
        class M:
            @R.function
            def main(x: R.Tensor(("n", 3), "float32"), y: R.Tensor((3,), "float32")):
                n = T.int64()
                f = R.make_closure(M.divide, (y,))
                g = M.outer(x)
                a = R.invoke_pure_closure(g, (y,), ty_args=(R.Tensor((n, 3), "float32")))
                return (a, R.invoke_pure_closure(f, (x,), ty_args=(R.Tensor((n, 3), "float32"))))

            @R.function(private=True)
            def outer(x: R.Tensor(("k", 3), "float32")) -> R.Any:
                return R.make_closure(M.subtract, (x,))

            @R.function(private=True)
            def divide(x: R.Tensor(("m", 3), "float32"), y: R.Tensor((3,), "float32")):
                return R.divide(x, y)

            @R.function(private=True)
            def subtract(y: R.Tensor((3,), "float32"), x: R.Tensor(("m", 3), "float32")):
                return R.subtract(y, x)
        """
    y = np.array([1, 2, 4], np.float32)
    difference, quotient = result_of(text, X, y)
    np.testing.assert_array_equal(difference, y - X)
    np.testing.assert_array_equal(quotient, X / y)


def test_lambdas_by_name_and_conditions_of_one_element():
    text = """
        columns_first = lambda i, j: (j, i)
        scaled = lambda x: te.compute(x.shape, lambda i, j: x[i, j] * 3)

        @R.function
        def main(x: R.Tensor((2, 3), "float32"), c: R.Tensor((1, 1), "bool")):
            a = R.layout_transform(x, index_map=columns_first)
            if c:
                b = R.emit_te(scaled, x)
            else:
                b = R.emit_te(topi.trilu, x, tvm.tirx.const(1, "int32"), upper=True)
            return (a, b, R.emit_te(topi.trilu, x, 0, False))
        """
    for condition, expected in ((True, X * 3), (False, np.triu(X, 1))):
        turned, chosen, lower = result_of(text, X, np.array([[condition]]))
        np.testing.assert_array_equal(turned, X.T)
        np.testing.assert_array_equal(chosen, expected)
        np.testing.assert_array_equal(lower, np.tril(X))


def test_cases_of_operators():
    text = """
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), t: R.Tensor(("n", 3), "bool")):
            sums = (R.sum(t, axis=[1]), R.prod(t, axis=1), R.cumsum(t, axis=1, dtype="int32"), R.cumsum(t, axis=1))
            narrow = (R.collapse_sum_to(x, (2, 1)), R.collapse_sum_like(x, R.const([1.0, 1.0, 1.0], "float32")))
            window = R.hamming_window(R.prim_value(8), R.prim_value(False), R.prim_value(0.54), R.prim_value(0.46))
            image = R.reshape(x, (1, 1, 2, 3))
            return (sums, narrow, window, R.nn.adaptive_avg_pool2d(image), R.squeeze(image, axis=[0, 1, 2]))
        """
    t = np.array([[True, False, True], [False, False, False], [True, True, True]])
    sums, (columns, rows), window, pooled, squeezed = result_of(text, X, t)
    for got, want in zip(sums, (t.any(1), t.all(1), t.cumsum(1), t.cumsum(1) > 0), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(columns, X.sum(1, keepdims=True))
    np.testing.assert_array_equal(rows, X.sum(0))
    np.testing.assert_allclose(window, np.hamming(8), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(pooled, X[None, None])
    np.testing.assert_array_equal(squeezed, X)


ERRORS = {
    'R.Call(tvm.ir.Op.get("custom.op"), [x])': 'expected an operator of relax, got "custom.op"',
    'R.Call(tvm.ir.Op.get("relax.exq"), [x])': "there is no operator R.exq; did you mean exp",
    "R.collapse_sum_to(x, (1, 1, 1))": "the new one not longer",
    'R.hamming_window(R.prim_value(4), True, R.prim_value(0.5), "b")': 'expected a number, got "b"',
}


@pytest.mark.parametrize("call", ERRORS)
def test_wrong_calls(call: str):
    with pytest.raises(TVMScriptError, match=ERRORS[call]) as caught:
        parse(f'@R.function\ndef f(x: R.Tensor((2, 4), "float32")):\n    return {call}\n')
    assert caught.value.line == 3


MACROS = """
    least = 2

    @R.macro
    def scaled(value, factor: int = 3):
        own = R.multiply(value, R.const(factor, "float32"))
        if R.const(True, "bool"):
            own = R.maximum(own, R.const(least, "float32"))
        else:
            own = own
        return own

    @R.macro(hygienic=False)
    def shown():
        R.print(x)

    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor(("n", 3), "float32")):
            shown()
            least = 7
            y = scaled(x)
            return (y, scaled(scaled(value=y), factor=2))
    """


def test_macros():
    first, second = result_of(MACROS, X)
    np.testing.assert_array_equal(first, np.maximum(3 * X, 2))
    np.testing.assert_array_equal(second, 18 * X)


WRONG_MACROS = {
    "@R.macro\ndef m(y):\n    z = y\n    return z": ("m(x), z", "the name z is not defined here"),
    "@T.macro\ndef m(y):\n    y": ("m(x)", "m belongs into a PrimFunc; functions of relax call R.macro"),
    "@R.macro\ndef m(y):\n    return y": ("m(x, x)", "m expected at most 1 positional arguments, got 2"),
}


@pytest.mark.parametrize("macro", WRONG_MACROS)
def test_wrong_macros(macro: str):
    call, message = WRONG_MACROS[macro]
    with pytest.raises(TVMScriptError, match=message):
        parse(f'{macro}\n\n@R.function\ndef f(x: R.Tensor((2, 4), "float32")):\n    return ({call})\n')


def test_a_region_that_returns():
    """Also where the result is an expression, and where only the region knows a symbol of it."""
    text = """
        @R.function
        def main(x: R.Tensor(("n", 3), "float32")):
            with R.dataflow():
                m = T.int64()
                y = R.match_cast(R.unique(R.flatten(x)), R.Tensor((m,), "float32"))
                return R.reshape(y, (y.struct_info.shape[0], 1))
        """
    np.testing.assert_array_equal(result_of(text, np.float32([[2, 1, 2], [1, 3, 3]])), [[1], [2], [3]])
