"""PrimFuncs that Python code helps to write: plain functions, templates, calls of functions by their names."""

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from relax_dialect.frontend.tvmscript import tir as T
from tests.support.programs import run_everywhere

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
    found: Any = run_everywhere(module, "main", [x])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


ERRORS = {
    "g()": ("g expected the argument x", 6, 12),
    "g(A[0], 1, 2)": ("g expected at most 2 positional arguments, got 3", 6, 12),
    "g(A[0], z=1)": ("g has no argument z", 6, 12),
    "g(A[0], x=1)": ("g has no argument x beside those in front of it", 6, 12),
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
