"""PrimFuncs that Python code helps to write: plain functions, templates, calls of functions by their names."""

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from relax_dialect.frontend.tvmscript import tir as T
from tests.support.programs import run_in_turn
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp

TEXT = """
SCALE = 2.0

def scaled(x, by=SCALE):
    y = x * by
    return T.max(y, T.float32(0))

clip = lambda v, lo, hi: around(T.min(T.max(v, lo), hi))

@T.jit(private=True)
def fill(A: T.Buffer((N,), "float32"), *, N: T.constexpr, START: T.constexpr = 3):
    for i in range(N):
        A[i] = i + START

@T.prim_func
def kernel(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,), "float32")
    fill(C)
    for i in getattr(T, kind)(8):
        with T.sblock("b"):
            vi = T.axis.spatial(8, i)
            T.Call("tirx.prefetch", [T.address_of(A[0]), 0, 3, 1], ret_ty="void")
            above = choose(scaled(A[vi]), T.float32(-9))
            B[vi] = clip(above, T.float32(-1), T.float32(1)) + scaled(by=3.0, x=A[vi]) + C[vi]
            B[vi] = T.Call(tvm.ir.Op.get("tirx.sqrt"), (B[vi],), ret_ty="float32")

@R.function
def main(x: R.Tensor((8,), "float32")):
    return R.call_tir(kernel, (x,), out_ty=R.Tensor((8,), "float32"))
"""


def around(v: Any) -> Any:
    """Read where it is applied, never run."""
    return v + T.float32(1)


def test_what_surrounds_a_kernel():
    """Functions with defaults and keywords, of the text and of the Python around it, and functions of T by other names;
    a template with two parameters.
    """
    x = np.linspace(-2, 2, 8, dtype=np.float32)
    expected = np.sqrt(np.clip(2 * np.maximum(x, 0), -1, 1) + 1 + np.maximum(3 * x, 0) + np.arange(8) + 3)
    module = parse(TEXT, {"around": around, "N": 8, "choose": T.max, "kind": "parallel"})
    found: Any = run_in_turn(module, "main", [x])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


ERRORS = {
    "g()": ("g expected the argument x", 6, 12),
    "g(A[0], 1, 2)": ("g expected at most 2 positional arguments, got 3", 6, 12),
    "g(A[0], z=1)": ("g has no argument z", 6, 12),
    "g(A[0], x=1)": ("g has no argument x beside those before it", 6, 12),
    "g(g)": ("got a PlainFunction", 3, 12),
    'T.Call("tirx.foo", [A[0]])': ("there is no function T.foo; did you mean floor", 6, 19),
    'T.Call("relax.add", [A[0]])': ('expected an operator of tirx or tir, got "relax.add"', 6, 19),
    'T.Call("tirx.exp")': ("T.Call expected the argument args", 6, 12),
}


@pytest.mark.parametrize("value", ERRORS)
def test_wrong_calls(value: str):
    message, line, column = ERRORS[value]
    head = "@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    A[0] = "
    with pytest.raises(TVMScriptError, match=message) as caught:
        parse(f"\ndef g(x, y=1):\n    return x + y\n{head}{value}")
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_template_without_a_value():
    text = """
        @T.jit
        def k(A: T.Buffer((N,), "int32"), *, N: T.constexpr):
            A[0] = N
        """
    with pytest.raises(TVMScriptError, match=r"N is known when the text is read: give it, as parse\(text, ") as caught:
        parse(dedent(text))
    assert (caught.value.line, caught.value.column) == (3, 38)


def nibble_reader(bits: int):
    """Gives a function, which sees the names around it."""
    dtype = "int" + str(bits)

    def read(nibble, word, place, out):
        assert word.ty.dtype == dtype
        assert place.dtype == "int32"
        mask = T.int32((1 << nibble) - 1)
        if out in ("float32", "float64"):
            return T.Cast(out, (word >> (place * nibble)) & mask)
        return word

    return read


def test_functions_that_functions_return():
    @T.prim_func
    def kernel(A: T.Buffer((2,), "int32"), B: T.Buffer((16,), "float32")):
        for i in T.serial(16):
            B[i] = nibble_reader(32)(4, A[i // 8], T.Cast("int32", i % 8), B.dtype)

    (func,) = (op for op in kernel.walk() if isinstance(op, PrimFuncOp))
    words, found = np.array([0x76543210, 0x01234567], np.int32), np.zeros(16, np.float32)
    run_prim_func(func, [words, found])
    np.testing.assert_array_equal(found, [*range(8), *range(7, -1, -1)])


BRANCHES = """
def f(x, kind):
    assert kind != "none"
    if kind == "double":
        return x * 2
    if kind == "same":
        pass
    elif kind == "nothing":
        y = x
    else:
        y = x + 1
        return y
@T.prim_func
def k(A: T.Buffer((4,), "int32")):
    A[0] = f(A[1], {})
"""


@pytest.mark.parametrize(
    ("kind", "message", "line"),
    [
        ('"none"', "the assertion does not hold", 3),
        ('"nothing"', "expected a return at the end of f", 2),
        ('"other"', None, 0),
        ("A[0]", "cannot use|expected", 3),
    ],
)
def test_branches_are_taken_as_the_text_is_read(kind: str, message: str | None, line: int):
    if message is None:
        parse(BRANCHES.format(kind))
        return
    with pytest.raises(TVMScriptError, match=message) as caught:
        parse(BRANCHES.format(kind))
    assert caught.value.line == line


PYTHON = """
import math
import numpy as np
WIDTHS = {"wide": 4, "narrow": 2}
@T.prim_func
def kernel(A: T.Buffer((4,), "float32"), B: T.Buffer((5,), "float32")):
    B[0] = A[0] * T.float32(1.0 / math.sqrt(16))
    B[1] = A[1] + np.float32(2) * math.pi
    B[2] = T.max(A[2], np.finfo("float32").min)
    B[3] = A[3] * sum((1, 2)) + round(2.6) + WIDTHS["wide"]
    B[4] = scale.factor + shift[1]
"""


def test_plain_python_in_a_kernel():
    """What is known when the text is read: functions of math and NumPy, captured objects and arrays."""
    scale = type("Scale", (), {"factor": 3})
    module = parse(PYTHON, {"scale": scale, "shift": np.array([1, 2])})
    (func,) = (op for op in module.walk() if isinstance(op, PrimFuncOp))
    a, b = np.array([1, 2, 3, 4], np.float32), np.zeros(5, np.float32)
    run_prim_func(func, [a, b])
    np.testing.assert_allclose(b, [0.25, 2 + 2 * np.pi, 3, 19, 5], rtol=1e-6)
    with pytest.raises(TVMScriptError, match="must be real number"):
        parse(PYTHON.replace("math.sqrt(16)", "math.sqrt(A[1])"), {"scale": scale, "shift": np.array([1, 2])})
