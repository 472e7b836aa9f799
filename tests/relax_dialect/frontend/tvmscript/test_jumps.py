"""Jumps out of rounds, loops and functions, and what functions return, against Python in every mode."""

from textwrap import dedent, indent
from typing import Any

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import parse
from tests.support.programs import MODES, run_in_turn, runner
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.function import PrimFuncOp

BODIES = {
    "rounds": """
        for i in range(8):
            B[i] = 1
            if A[i] < 0:
                continue
            B[i] = 2
            for j in T.serial(8):
                if i <= j < i + 1:
                    continue
                B[i] += A[j]
        """,
    "loops": """
        for i in range(8):
            B[i] = i
            for j in range(8):
                if A[j] > 3 and i < 6:
                    T.evaluate(T.break_loop())
                B[i] = B[i] + 10
            if i == 6:
                break
        B[7] = 7
        """,
    "while": """
        B[0] = 0
        while B[0] < 100:
            B[0] = B[0] + 1
            if B[0] % 2 == 0:
                continue
            B[1] = B[0]
            if B[0] > 10:
                break
        B[2] = 1
        while True:
            B[2] = B[2] * 3
            if B[2] > 50:
                break
        """,
    "function": """
        for i in range(8):
            B[i] = 5
            if A[i] == 9:
                for j in range(8):
                    if j == 3:
                        return
                    B[j] = A[j]
        B[0] = 0
        """,
}


def python(body: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    text = body.replace("T.serial", "range").replace("T.evaluate(T.break_loop())", "break")
    scope: dict[str, object] = {}
    exec(f"def f(A, B):\n{indent(dedent(text), '    ')}", scope)
    run = scope["f"]
    assert callable(run)
    run(a, b)
    return b


@pytest.mark.parametrize("name", BODIES)
def test_jumps(name: str):
    body = indent(dedent(BODIES[name]).strip(), "    ")
    text = f"""
@T.prim_func
def kernel(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = 0
{body}

@R.function
def main(x: R.Tensor((8,), "int32")):
    return R.call_tir(kernel, (x,), out_ty=R.Tensor((8,), "int32"))
"""
    x = np.array([3, -1, 4, 1, -5, 9, 2, 6], np.int32)
    result = run_in_turn(parse(text), "main", [x])
    np.testing.assert_array_equal(result, python(BODIES[name], x, np.zeros(8, np.int32)))


RETURNS = """
    @I.ir_module
    class M:
        @T.prim_func
        def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
            for i in range(4):
                B[i] = M.clipped(A[i], 3) + M.clipped(10, i)

        @T.prim_func(private=True)
        def clipped(x: T.int32, most: T.int32) -> T.int32:
            if x > most:
                return most
            for k in range(8):
                if x + k >= 0:
                    return x + k
            T.ret(-100)

        @T.prim_func
        def count(A: T.Buffer((4,), "int32")) -> T.int64:
            total = T.alloc_buffer((), "int64")
            total[()] = T.int64(0)
            for i in range(4):
                total[()] += T.Cast("int64", A[i] > 0)
            return total[()]

        @R.function
        def f(x: R.Tensor((4,), "int32")):
            y = R.call_tir(M.main, (x,), out_ty=R.Tensor((4,), "int32"))
            return (y, M.count(x))
    """


def test_returned_values():
    x = np.array([3, -1, -9, 7], np.int32)
    result: Any = run_in_turn(parse(dedent(RETURNS)), "f", [x])
    y, count = result
    np.testing.assert_array_equal(y, np.array([3, 0, -100, 3]) + np.arange(4))
    assert int(count) == 2


POINTERS = """
    @I.ir_module
    class M:
        @T.prim_func
        def whole(A: T.Buffer((4,), "int32")) -> T.handle:
            T.ret(A.data)

        @T.prim_func
        def place(A: T.Buffer((4,), "int32")) -> T.handle("int32"):
            return T.address_of(A[2])

        @R.function
        def f(x: R.Tensor((4,), "int32")):
            return (M.whole(x), M.place(x))
    """


@pytest.mark.parametrize("mode", MODES)
def test_returned_pointers_are_addresses(mode: str):
    results: Any = runner(parse(dedent(POINTERS)), "f", mode)(np.arange(4, dtype=np.int32))
    whole, place = results
    assert int(whole) != 0
    assert int(place) == int(whole) + 8


def test_a_return_at_the_end_needs_no_state():
    (func,) = parse("@T.prim_func\ndef f(x: T.float32) -> T.float32:\n    return x * x\n").ops
    assert isinstance(func, PrimFuncOp)
    assert str(func.params[-1].type) == "!tir.buffer<[], f32>"
    assert not any(isinstance(op, IfOp) for op in func.walk())
