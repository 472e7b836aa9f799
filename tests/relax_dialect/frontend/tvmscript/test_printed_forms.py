"""What TVM prints beside the forms that people write: arguments left out, unnamed dimensions, its own functions."""

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.programs import run_in_turn

X = np.arange(8, dtype=np.float32)


def result_of(text: str, *arguments: np.ndarray) -> Any:
    return run_in_turn(parse(dedent(text)), "f", arguments)


@pytest.mark.parametrize("indices", [[[1, 99], [-1, 2]], [[3, 4], [-4, 0]]])
def test_take_of_indices_out_of_range(indices: list[list[int]]):
    """In the mode `nan`, what an index that is negative or too large gives is no number."""
    x, i = X.reshape(2, 4), np.array(indices)
    columns, flat, row = result_of(
        """
        @R.function
        def f(x: R.Tensor(("n", "m"), "float32"), v: R.Tensor((8,), "float32"), i: R.Tensor((2, "k"), "int64")):
            return (R.take(x, i, axis=-1, mode="nan"), R.take(v, i, mode="nan"), R.take(x, 2, axis=0, mode="nan"))
        """,
        x,
        X,
        i,
    )
    for found, source in ((columns, x), (flat, X)):
        valid = (i >= 0) & (i < source.shape[-1])
        taken = np.where(valid, source[..., np.where(valid, i, 0)], np.nan)
        np.testing.assert_array_equal(found, taken)
    assert np.isnan(row).all()


def test_take_of_no_index():
    text = """
        @R.function
        def f(x: R.Tensor((8,), "float32"), i: R.Tensor(("k",), "int32")):
            return R.take(x, i, axis=0, mode="nan")
        """
    assert np.asarray(result_of(text, X, np.zeros(0, np.int32))).shape == (0,)


@pytest.mark.parametrize(
    ("head", "call", "message"),
    [
        ('x: R.Tensor((4,), "int32")', "R.take(x, 1, axis=0, mode='nan')", "expected floats of known shape"),
        ('x: R.Tensor(ndim=1, dtype="float32")', "R.take(x, 1, axis=0, mode='nan')", "expected floats of known shape"),
        ('x: R.Tensor((4,), "float32")', "R.take(x, 1, axis=3, mode='nan')", "axis 3 is out of range"),
    ],
)
def test_take_that_has_no_nan(head: str, call: str, message: str):
    with pytest.raises(TVMScriptError, match=message):
        parse(f"@R.function\ndef f({head}):\n    return {call}\n")


def test_integers_are_round():
    x = np.array([[1, -2, 3]], np.int32)
    text = """
        @R.function
        def f(x: R.Tensor(("n", 3), "int32"), y: R.Tensor((3,), "float32")):
            return (R.floor(x), R.ceil(x), R.round(x), R.trunc(x), R.floor(y))
        """
    *found, floats = result_of(text, x, np.array([1.5, -1.5, 2], np.float32))
    for each in found:
        np.testing.assert_array_equal(each, x)
    np.testing.assert_array_equal(floats, [1, -2, 2])


def test_views_with_arguments_left_out():
    text = """
        @R.function
        def f(x: R.Tensor((8,), "float32")):
            n: R.Any = R.null_value()
            a: R.Tensor((2,), "float32") = R.memory.view(x, R.shape([2]), n, 8)
            b: R.Tensor((2, 4), "float32") = R.memory.view(x, R.shape([2, 4]), n, R.tuple())
            c: R.Tensor((8,), "int32") = R.memory.view(x, n, "int32", R.null_value())
            d = R.call_pure_packed("runtime.TVMTensorCreateView", x, R.shape([1, 2]), n, R.prim_value(16),
                ty_args=R.Tensor((1, 2), "float32"))
            return (a, b, c, d)
        """
    a, b, c, d = result_of(text, X)
    np.testing.assert_array_equal(a, X[2:4])
    np.testing.assert_array_equal(b, X.reshape(2, 4))
    np.testing.assert_array_equal(c, X.view(np.int32))
    np.testing.assert_array_equal(d, [X[4:6]])


def test_a_dimension_without_a_name():
    """TVM prints a dimension that has none as `_`; where that is no dimension, it stands for any length."""
    text = """
        _ = TypeVar("_")

        @R.function(pure=False)
        def f(x: R.Tensor((_, 2), "float32")) -> R.Tensor((_, 2), "float32"):
            _ = R.print(format="")
            y: R.Tensor((_, 2), "float32") = R.add(x, x)
            return y
        """
    np.testing.assert_array_equal(result_of(text, X.reshape(4, 2)), 2 * X.reshape(4, 2))
    open_length = parse('@R.function\ndef f(x: R.Tensor((_, 2), "float32")):\n    return x\n')
    assert "tensor<[_, 2], f32>" in str(open_length)


def test_strings_and_devices():
    text = """
        @I.ir_module
        class Module:
            @R.function
            def f(x: R.Tensor((8,), "float32")) -> R.Tuple(I.StringType(), R.Tensor((8,), "float32")):
                s: I.StringType() = R.str("hello")
                y = R.to_vdevice(x, R.device(device_type=1, device_id=0))
                return (s, R.to_vdevice(y, R.device(dev_type="cpu")))
        """
    text_value, y = result_of(text, X)
    assert text_value == "hello"
    np.testing.assert_array_equal(y, X)
    with pytest.raises(TVMScriptError, match="expected the kind of a device or DLPack's number of one, got 77"):
        parse('@R.function\ndef f(x: R.Tensor((8,), "float32")):\n    return R.to_vdevice(x, R.device(77))\n')


def test_a_function_that_returns_nothing():
    text = """
        @R.function(pure=False)
        def f(x: R.Tensor((8,), "float32")) -> None:
            R.print(format="")
        """
    assert result_of(text, X) == ()


def test_functions_of_TVM_that_are_registered_with_it():
    x = np.array([3, 0, 1, 3, 0, 3], np.float32)
    text = """
        @R.function
        def f(x: R.Tensor((6,), "float32")):
            true, false = R.prim_value(True), R.prim_value(False)
            a = R.call_pure_packed("relax.run.unique", x, true, false, false, false, ty_args=R.Tensor(ndim=1))
            b = R.call_pure_packed("relax.run.unique", x, true, false, true, R.prim_value(1), R.prim_value(0),
                ty_args=R.Tuple(R.Tensor(ndim=1), R.Tensor(ndim=1), R.Tensor(ndim=1)))
            return (a, b, R.call_pure_packed("relax.run.nonzero", x, ty_args=R.Tensor(ndim=2, dtype="int64")))
        """
    values, (again, inverse, counts), nonzero = result_of(text, x)
    expected = np.unique(x, return_inverse=True, return_counts=True)
    for found, each in zip((again, inverse, counts), expected, strict=True):
        np.testing.assert_array_equal(found, each)
    np.testing.assert_array_equal(values, expected[0])
    np.testing.assert_array_equal(nonzero, np.array(np.nonzero(x)))


@pytest.mark.parametrize("name", ["check_tensor_info", "match_shape", "make_shape", "alloc_shape_heap"])
@pytest.mark.parametrize("form", ['R.call_packed("{}", x, ty_args=R.Object)', 'R.ExternFunc("{}")(x)'])
def test_shapes_that_TVM_has_lowered(name: str, form: str):
    """The error is at the call, and says which text to take; not when the program runs."""
    call = form.format(f"vm.builtin.{name}")
    with pytest.raises(TVMScriptError, match=f"vm.builtin.{name} is what TVM lowers shapes to; .*VMShapeLower"):
        parse(f'@R.function(pure=False)\ndef f(x: R.Tensor((8,), "float32")):\n    return {call}\n')
