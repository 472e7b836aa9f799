"""Decorators of our own in Python files: the source is read, the functions are not run."""

from __future__ import annotations

import enum
import math
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, i64

from relax_dialect.frontend.tvmscript import TVMScriptError, ir_module, parse
from relax_dialect.frontend.tvmscript import ir as I
from relax_dialect.frontend.tvmscript import relax as R
from relax_dialect.frontend.tvmscript import tir as T
from tests.support.programs import run_in_turn
from tir_dialect import te

ROWS = 3
FACTOR = 2.0
DTYPE = "float32"


@I.ir_module
class Module:
    I.module_attrs({"version": 2})

    @T.prim_func(private=True)
    def double(A: T.Buffer((ROWS, 4), DTYPE), B: T.Buffer((ROWS, 4), DTYPE)):
        for i, j in T.grid(ROWS, 4):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0

    @R.function
    def main(x: R.Tensor((ROWS, 4), DTYPE)) -> R.Tensor((ROWS, 4), DTYPE):
        return R.call_tir(Module.double, (x,), out_ty=R.Tensor((ROWS, 4), DTYPE))


@R.function
def increment(x: R.Tensor(("n",), DTYPE)):
    return R.add(x, R.const(1.0))


def test_class_becomes_a_module():
    assert isinstance(Module, ModuleOp)
    assert Module.attributes["version"].value.data == 2
    assert Module.attributes["version"].type == i64
    x = np.ones((ROWS, 4), np.float32)
    np.testing.assert_array_equal(run_in_turn(Module, "main", [x]), 2 * x)


def test_function_becomes_a_module_of_itself():
    assert isinstance(increment, ModuleOp)
    x = np.ones(5, np.float32)
    np.testing.assert_array_equal(run_in_turn(increment, "increment", [x]), x + 1)


def test_names_around_a_function_are_captured_as_numbers():
    factor = 2.5

    @R.function(private=False)
    def scale(x: R.Tensor(("n",), DTYPE)):
        return x * R.const(factor, DTYPE)

    x = np.ones(5, np.float32)
    np.testing.assert_array_equal(run_in_turn(scale, "scale", [x]), x * np.float32(2.5))


def test_prim_func_alone():
    @T.prim_func
    def zero(A: T.Buffer((4,), DTYPE)):
        for i in T.serial(4):
            A[i] = 0.0

    assert isinstance(zero, ModuleOp)


def test_plain_function_and_class_are_read_by_parse():
    def identity(x: R.Tensor((4,), "float32")):
        return x

    with pytest.raises(TVMScriptError, match=r"expected @I\.ir_module"):
        parse(identity)


def test_old_name_of_the_module_decorator():
    @ir_module
    class Old:
        @R.function
        def f(x: R.Tensor((4,), "float32")):
            return x

    assert isinstance(Old, ModuleOp)


def test_nothing_is_executed():
    def trap() -> None:
        raise AssertionError("the text was executed")

    with pytest.raises(TVMScriptError, match="trap is a function of Python, which is not executed") as caught:

        @R.function
        def f(x: R.Tensor((4,), "float32")):
            y = trap()
            return y

    assert caught.value.filename == __file__
    line = Path(__file__).read_text(encoding="utf-8").splitlines()[caught.value.line - 1]
    assert line[caught.value.column - 1 :].startswith("trap()")


class Kind(enum.IntEnum):
    """Numbers of which a text uses one."""

    FIRST = 3


def doubled(a: te.Tensor) -> te.Tensor:
    """A function that the text applies, and nobody calls."""
    return te.compute(a.shape, lambda *i: a[i] * FACTOR, name="doubled")


def test_names_around_a_text_are_values():
    array, shape, operator = np.arange(4.0, dtype=np.float32), (Kind.FIRST, 4), R.add
    dtype, index_map, n, m = np.dtype("float32"), lambda i, j: (j, i), T.int64(), T.Var("m", "int64")
    kind, options = R.Tensor((n - 1, m * 2), dtype), {"axis": [0], "keepdims": True}

    @R.function
    def f(z: R.Tensor((n,), dtype), x: R.Tensor(shape, dtype), y: kind) -> R.Tuple(
        R.Tensor((4, 3), DTYPE), R.Tensor, R.Tensor
    ):
        a = operator(x, R.const(array * 2 if options["keepdims"] else array))
        b = R.layout_transform(a, index_map=index_map)
        c = R.emit_te(doubled, y)
        return b, c, R.sum(x, axis=options["axis"], keepdims=options["keepdims"])

    x, y = np.ones((3, 4), np.float32), np.ones((2, 6), np.float32)
    expected = (x + 2 * array).T, 2 * y, x.sum(0, keepdims=True)
    for found, value in zip(run_in_turn(f, "f", [y[0, :3], x, y]), expected, strict=True):
        np.testing.assert_array_equal(found, value)
    assert "tensor<[n - 1, 2 * m], f32>" in str(f)


def test_values_that_parse_is_given():
    text = """
@R.function
def f(x: R.Tensor((n, 4), dtype)):
    return R.add(x, R.const([math.sqrt(k) for k in values] + [float("2")], dtype))
"""
    module = parse(text, {"n": 3, "dtype": "float32", "values": (1, 4, 9), "math": math})
    x = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(run_in_turn(module, "f", [x]), x + np.float32([1, 2, 3, 2]))
    with pytest.raises(TVMScriptError, match="the name values is not defined here"):
        parse(text, {"n": 3, "dtype": "float32", "math": math})


def test_placeholders_say_that_they_are_text():
    with pytest.raises(TypeError, match="is text of a program and is not executed"):
        bool(R.add)
