"""Values that say what a program is: sizes of windows, dtypes in variables, choices between dimensions; functions that
write what they are given, called where nothing has effects.
"""

from textwrap import dedent

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.programs import EXACT, run_in_turn

X = np.arange(12, dtype=np.float32).reshape(1, 3, 4)


def result_of(text: str, *args: object) -> object:
    return run_in_turn(parse(dedent(text), filename="test.py"), "f", args, EXACT)


def test_windows_of_dimensions_and_a_dtype_in_a_variable():
    text = """
        @R.function
        def f(x: R.Tensor(("n", 3, 4), "float32"), sized: R.Tensor(("k",), "float32")):
            k = T.int64()
            dtype: R.Any = R.dtype("int32")
            y = R.nn.max_pool1d(x, pool_size=[k])
            return R.memory.view(y, dtype=dtype)
        """
    np.testing.assert_array_equal(result_of(text, X, np.ones(3, np.float32)), X[..., 2:].view(np.int32))


def test_dtype_that_only_the_run_knows():
    text = """
        @R.function
        def f(x: R.Tensor((3, 4), "float32"), dtype: R.Any):
            return R.memory.view(x, dtype=dtype)
        """
    with pytest.raises(TVMScriptError, match="expected the name of a dtype"):
        parse(dedent(text))


@pytest.mark.parametrize("count", [0, 3, 4, 7, 8])
def test_choices_between_dimensions(count: int):
    """Every comparison and connective, in the shapes of a relax function and of a PrimFunc."""
    text = """
        @I.ir_module
        class Module:
            @T.prim_func
            def ones(n: T.int64, a: T.handle):
                A = T.match_buffer(a, (T.if_then_else(n % 4 == 0 or not n < 7, n + 2, 1),), "int64")
                for i in T.grid(T.if_then_else(n % 4 == 0 or not n < 7, n + 2, 1)):
                    A[i] = T.int64(i)

            @R.function
            def f(x: R.Tensor(("n",), "float32")):
                n = T.int64()
                cls = Module
                y = R.call_tir(
                    cls.ones, (n,), out_ty=R.Tensor(("T.if_then_else(n % 4 == 0 or n >= 7, n + 2, 1)",), "int64")
                )
                z = R.zeros((T.Select(n > 3 and n != 4, 5, T.if_then_else(n <= 3, n, 2)),), "int64")
                return R.concat((y, z))
        """
    first = np.arange(count + 2 if count % 4 == 0 or count >= 7 else 1)
    last = np.zeros(5 if count > 3 and count != 4 else count if count <= 3 else 2, np.int64)
    np.testing.assert_array_equal(result_of(text, np.ones(count, np.float32)), np.concatenate([first, last]))


def test_choice_that_is_no_dimension():
    text = """
        @R.function
        def f(x: R.Tensor(("n",), "float32"), s: R.Prim("float32")):
            n = T.int64()
            return R.zeros((T.if_then_else(s < 1.5, n, 4),), "float32")
        """
    with pytest.raises(TVMScriptError, match=r"T\.if_then_else expected a comparison of dimensions"):
        parse(dedent(text))


def test_region_that_calls_a_function_which_writes():
    text = """
        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def double(A: T.Buffer((3,), "float32")):
                for i in range(3):
                    A[i] = A[i] * T.float32(2)

            @R.function(private=True)
            def doubled(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
                cls = Module
                return R.call_tir_inplace(cls.double, (x,), [0], out_ty=R.Tensor((3,), "float32"))

            @R.function
            def f(x: R.Tensor((3,), "float32")):
                cls = Module
                with R.dataflow():
                    y = R.add(x, x)
                    z = cls.doubled(y)
                    w = R.add(y, z)
                    R.output(w)
                return w
        """
    np.testing.assert_array_equal(result_of(text, np.ones(3, np.float32)), np.full(3, 8, np.float32))
    write = "return R.call_tir_inplace"
    with pytest.raises(TVMScriptError, match="it calls @doubled, which is impure"):
        parse(dedent(text.replace(write, f"_ = R.print(x, format='')\n{' ' * 16}{write}")))


def test_arrays_that_numpy_makes():
    text = """
        import numpy as np

        @R.function
        def f(x: R.Tensor((3, 3), "float32")):
            return x + R.const(np.eye(3, k=1), "float32") * R.const(np.linspace(0, 1, 3), "float32")
        """
    x = np.ones((3, 3), np.float32)
    np.testing.assert_array_equal(result_of(text, x), x + np.eye(3, k=1, dtype=np.float32) * np.float32([0, 0.5, 1]))
    for large in ("np.eye(100000)", "np.linspace(0, 1, 100000000)"):
        with pytest.raises(TVMScriptError, match="the array is too large"):
            parse(dedent(text.replace("np.linspace(0, 1, 3)", large)))


def test_numbers_of_a_dtype_that_the_text_names():
    text = """
        @R.function
        def f():
            y = (R.prim_value(T.float32(2)), R.prim_value(T.float64(0.5)), R.prim_value(T.int8(-3)), R.prim_value(4))
            return R.clip(R.const(5.0), R.prim_value(T.float32(0)), R.prim_value(T.float64(3))), y
        """
    module = parse(dedent(text))
    for made in ("relax.prim f32 2.0", "relax.prim f64 0.5", "relax.prim i8 -3", "relax.prim 4"):
        assert made in str(module)
    clipped, numbers = result_of(text)
    assert (float(clipped), *numbers) == (3.0, 2.0, 0.5, -3, 4)


@pytest.mark.parametrize(
    "text",
    [
        """
@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, [n], "float32")
    B = T.match_buffer(b, [n], "float32")
    for i in T.serial(0, n):
        B[i] = A[i]
""",
        """
@R.function
def f(x: R.Tensor(("n",), "float32"), s: R.Shape(["m"])):
    n, m = T.int64(), T.int64()
    return R.broadcast_to(x, R.shape([m, n]))
""",
    ],
)
def test_a_dimension_hides_the_name_around_the_function(text):
    assert str(parse(text, extra_vars={"n": 8, "m": 3})) == str(parse(text))
