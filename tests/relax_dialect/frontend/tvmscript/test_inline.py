"""Functions that are read instead of their calls, with the names of where they stand or of the caller."""

from textwrap import dedent

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.programs import run_in_turn

TEXT = """
from tvm.script import ir as I, relax as R, tir as T

SIZE = 4

@T.inline
def fill(target, value, *, n=SIZE):
    for i in range(n):
        target[i] = value

@T.macro(hygienic=False)
def accumulate(index):
    B[index] = B[index] + A[index] * k

@I.ir_module
class M:
    @T.prim_func
    def kernel(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        fill(B, 1, n=8)
        fill(value=A[7] + 1, target=B)
        k = T.int32(3)

        @T.inline
        def twice(x):
            i = x + 1
            B[i] = B[i] * 2
            accumulate(i)

        for i in T.serial(4):
            twice(i)
            accumulate(i)

    @R.function
    def main(x: R.Tensor((8,), "int32")):
        return R.call_tir(M.kernel, (x,), out_ty=R.Tensor((8,), "int32"))
"""


def test_bodies_in_place():
    x = np.array([3, -1, 4, 1, -5, 9, 2, 6], np.int32)
    expected = np.ones(8, np.int32)
    expected[:4] = x[7] + 1
    for i in range(4):
        expected[i + 1] = expected[i + 1] * 2 + x[i + 1] * 3
        expected[i] += x[i] * 3
    np.testing.assert_array_equal(run_in_turn(parse(TEXT), "main", [x]), expected)


ERRORS = {
    "put(B)": ("put expected the argument value", 6, 5),
    "put(B, 1, 2)": ("put expected at most 2 positional arguments, got 3", 6, 15),
    "put(3, 1)": ("expected a buffer to store to", 3, 5),
}
WRONG = """@T.inline
def put(target, value):
    target[0] = value
@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    {}
"""


@pytest.mark.parametrize("call", ERRORS)
def test_wrong_calls(call: str):
    message, line, column = ERRORS[call]
    with pytest.raises(TVMScriptError, match=message) as caught:
        parse(WRONG.format(call))
    assert (caught.value.line, caught.value.column) == (line, column)


BODIES = {
    "return": "leaves its body early",
    "B[x] = 1": "the name B is not defined here",
}


@pytest.mark.parametrize("body", BODIES)
def test_wrong_bodies(body: str):
    text = f"@T.macro\ndef g(x):\n    {body}\n@T.prim_func\ndef f(B: T.Buffer((8,), 'int32')):\n    g(0)\n"
    with pytest.raises(TVMScriptError, match=BODIES[body]):
        parse(text)


LOOP_OF_A_CALLER = """
@T.macro
def double(A, index):
    with T.sblock("double"):
        v = T.axis.remap("S", [index])
        A[v] = A[v] * T.float32(2)

@T.macro
def negate(A, index):
    v = T.axis.spatial(8, index)
    A[v] = -A[v]

@T.macro
def other(index, A):
    negate(A, index)

@T.prim_func
def kernel(X: T.Buffer((8,), "float32"), A: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = X[i]
    for i in T.serial(0, 8):
        double(A, i)
        double(A, i)
        with T.sblock("negate"):
            other(i, A)
    A[0] = I.meta_var(T.float32(1))

@R.function
def f(x: R.Tensor((8,), "float32")):
    return R.call_tir(kernel, (x,), out_ty=R.Tensor((8,), "float32"))
"""


def test_a_block_of_a_macro_is_over_the_loop_of_the_caller():
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(run_in_turn(parse(LOOP_OF_A_CALLER), "f", [x]), [1, *(x[1:] * -4)])


def test_any_number_of_arguments():
    """Loop variables that a macro gets among others have their domains there; scalars may be prim values of relax."""
    text = """
    @T.macro
    def add(i, *places, source, **buffers):
        for k in T.serial(4):
            with T.sblock("sum"):
                vi, vj, vk = T.axis.remap("SSR", [i, places[0], k])
                buffers["target"][vi, vj] = buffers["target"][vi, vj] + source[vi, vk] * buffers["other"][vj, vk]

    @T.prim_func
    def kernel(A: T.Buffer((2, 4), "float32"), scale: R.Prim("float32"), C: T.Buffer((2, 2), "float32")):
        for i, j in T.grid(2, 2):
            C[i, j] = scale
        for i, j in T.grid(2, 2):
            add(i, j, source=A, target=C, other=A)

    @R.function
    def main(x: R.Tensor((2, 4), "float32"), s: R.Prim("float32")):
        return R.call_tir(kernel, (x, s), out_ty=R.Tensor((2, 2), "float32"))
    """
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(run_in_turn(parse(dedent(text)), "main", [x, 0.5]), x @ x.T + np.float32(0.5))


def test_the_head_of_a_block_in_a_macro():
    """A block that is one call has the iterators of what it calls; arguments may be computed from loop variables."""
    text = """
    @T.inline
    def add(i, *places, source, **buffers):
        vi, vj, vk = T.axis.remap("SSR", [i, places[0], places[1]])
        with T.init():
            buffers["target"][vi, vj] = T.float32(0)
        buffers["target"][vi, vj] = buffers["target"][vi, vj] + source[vi, vk] * buffers["other"][vj, vk]

    @T.macro
    def scale(A, i, j):
        vi, vj = T.axis.spatial(2, i), T.axis.spatial(2, j)
        A[vi, vj] = A[vi, vj] * T.float32(3)

    @T.prim_func
    def kernel(A: T.Buffer((2, 4), "float32"), C: T.Buffer((2, 2), "float32")):
        for i, j, k in T.grid(2, 2, 4):
            with T.sblock("product"):
                add(i, j, k, source=A, target=C, other=A)
        for i, j in T.grid(2, 2):
            with T.sblock("scale"):
                scale(C, i, 1 - j)

    @R.function
    def main(x: R.Tensor((2, 4), "float32")):
        return R.call_tir(kernel, (x,), out_ty=R.Tensor((2, 2), "float32"))
    """
    module = parse(dedent(text))
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(run_in_turn(module, "main", [x]), x @ x.T * 3)


BESIDE_A_HEAD = """
@T.macro
def axes(i, j, k, target, source):
    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
    T.reads(source[vi, vk])
    with T.init():
        target[vi, vj] = T.float32(0)
    target[vi, vj] = target[vi, vj] + source[vi, vk] * source[vj, vk]

@T.macro(hygienic=False)
def row(i):
    vi = T.axis.spatial(2, i)

@T.prim_func
def kernel(A: T.Buffer((2, 4), "float32"), C: T.Buffer((2, 2), "float32"), N: T.Buffer((2,), "float32")):
    for i, j, k in T.grid(2, 2, 4):
        with T.sblock("product"):
            T.writes(C[0:2, 0:2])
            axes(i, j, k, C, A)
            T.evaluate(0)
    for i in range(2):
        with T.sblock("rows"):
            row(i)
            v: T.int32 = T.axis.spatial(2, 1 - i)
            N[v] = T.float32(7) + T.cast(v, "float32")

@R.function
def main(x: R.Tensor((2, 4), "float32")):
    return R.call_tir(kernel, (x,), out_ty=[R.Tensor((2, 2), "float32"), R.Tensor((2,), "float32")])
"""


def test_statements_beside_the_head_in_a_macro():
    """They have the names of the caller; a block has the iterators of both."""
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    product, rows = run_in_turn(parse(BESIDE_A_HEAD), "main", [x])
    np.testing.assert_array_equal(product, x @ x.T)
    np.testing.assert_array_equal(rows, [7, 8])
