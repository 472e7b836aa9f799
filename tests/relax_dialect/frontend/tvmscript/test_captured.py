"""What Python code around a program gives it: macros, expressions of te, numbers of a dtype."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from relax_dialect.frontend.tvmscript import TVMScriptError
from relax_dialect.frontend.tvmscript import relax as R
from relax_dialect.frontend.tvmscript import tir as T
from tests.support.programs import run_in_turn
from tir_dialect import te
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp

OFFSET = 2


@T.macro
def add_offset(target, index):
    target[index] = target[index] + OFFSET


@T.inline
def twice(target, *indices, last, **others):
    add_offset(target, indices[0])
    add_offset(target, indices[1])
    last[0] = others["value"]


@T.inline()
def scaled(source, target, i):
    with T.sblock("scaled"):
        vi = T.axis.remap("S", [i])
        target[vi] = source[vi] * 3


@T.macro(hygienic=False)
def mark(index):
    B[index] = value  # noqa: F821


@R.macro
def shifted(x, by):
    y = R.add(x, R.const(by))
    return R.multiply(y, y)


def run(module: ModuleOp, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The arrays after a run of the only PrimFunc."""
    func = next(op for op in module.walk() if isinstance(op, PrimFuncOp))
    run_prim_func(func, arrays)
    return arrays


def test_macros_see_the_names_around_them():
    def kernel() -> ModuleOp:
        OFFSET = 100  # noqa: F841

        @T.prim_func
        def kernel(B: T.Buffer((4,), "int32"), C: T.Buffer((1,), "int32")):
            twice(B, 1, 3, last=C, value=7)

        return kernel

    b, c = run(kernel(), np.zeros(4, np.int32), np.zeros(1, np.int32))
    assert (b.tolist(), c.tolist()) == ([0, 2, 0, 2], [7])


def test_macro_sees_the_names_of_its_caller_where_it_says_so():
    @T.prim_func
    def kernel(B: T.Buffer((4,), "int32")):
        value = T.int32(5)  # noqa: F841
        mark(2)

    assert run(kernel, np.zeros(4, np.int32))[0].tolist() == [0, 0, 5, 0]


def test_macro_of_a_function_sees_its_variables():
    step = 3

    @T.inline
    def put(target, i):
        target[i] = i * step

    @T.prim_func
    def kernel(B: T.Buffer((4,), "int32")):
        for step in T.serial(4):
            put(B, step)

    assert run(kernel, np.zeros(4, np.int32))[0].tolist() == [0, 3, 6, 9]


def test_blocks_of_macros():
    @T.prim_func
    def kernel(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in T.serial(8):
            scaled(A, B, i)

    a = np.arange(8, dtype=np.int32)
    assert run(kernel, a, np.zeros_like(a))[1].tolist() == (3 * a).tolist()
    assert [op.block_name.data for op in kernel.walk() if isinstance(op, BlockOp)] == ["scaled"]


def test_macros_of_relax():
    @R.function
    def f(x: R.Tensor((3,), "float32")):
        return shifted(x, 1.5)

    x = np.array([0, 1, -2], np.float32)
    np.testing.assert_array_equal(run_in_turn(f, "f", [x]), (x + np.float32(1.5)) ** 2)


def test_errors_are_shown_where_the_macro_stands():
    @T.inline
    def wrong(target):
        target[0] = missing  # noqa: F821

    with pytest.raises(TVMScriptError, match="the name missing is not defined here") as caught:

        @T.prim_func
        def kernel(B: T.Buffer((4,), "int32")):
            wrong(B)

    assert caught.value.filename == __file__
    line = Path(__file__).read_text(encoding="utf-8").splitlines()[caught.value.line - 1]
    assert line[caught.value.column - 1 :].startswith("missing")


def test_macros_are_not_called_by_python():
    with pytest.raises(TypeError, match="add_offset is text of a program"):
        add_offset(None, 0)
    with pytest.raises(ValueError, match="expected a function under the decorator"):
        T.inline(True)


VALUES = {
    "const": (te.const(3, "i8"), 3),
    "half": (te.const(1.5, "f16"), 1),
    "cast": (te.cast(te.const(2.75, "f32"), "i32"), 2),
    "sum": (te.const(3, "i32") + te.const(4, "i32"), 7),
    "choice": (te.if_then_else(te.const(2, "i32") < te.const(1, "i32"), te.const(5, "i32"), te.const(6, "i32")), 6),
    "minus": (-T.int32(4), -4),
    "shift": (T.int32(3) << 2, 12),
    "bits": (~(T.int32(12) & 10 | T.int32(1)) ^ 2, -12),
    "less": (T.int32(3) < 4, 1),
    "power": (T.float32(3) ** 2, 9),
}


@pytest.mark.parametrize("name", VALUES)
def test_expressions_around_a_program(name: str):
    given, expected = VALUES[name]

    @T.prim_func
    def kernel(B: T.Buffer((2,), "int32")):
        for i in T.serial(2):
            B[i] = T.if_then_else(i < 1, T.Cast("int32", given), B[i])

    assert run(kernel, np.array([99, 98], np.int32))[0].tolist() == [expected, 98]


def test_constants_of_te_are_sizes():
    rows, n = te.const(3, "i32"), te.var("n")

    @T.prim_func
    def kernel(A: T.Buffer((n, rows * 2), "int32")):
        for i, j in T.grid(n, rows):
            A[i, j] = 1

    (func,) = (op for op in kernel.walk() if isinstance(op, PrimFuncOp))
    assert "[n, 6]" in str(func.params[0].type)


def test_variables_of_another_program_are_refused():
    other = te.scalar("alpha", "f32") * 2.0
    with pytest.raises(TVMScriptError, match="other is an expression of te with alpha"):

        @T.prim_func
        def kernel(B: T.Buffer((2,), "float32")):
            B[0] = other


def quotient(i, j):
    """Where a block reads, which a program computes before it says so."""
    return i % 4, j // 2


def test_regions_name_what_is_bound_before():
    @T.prim_func
    def kernel(A: T.Buffer((4, 4), "int32"), K: T.Buffer((8,), "int32"), B: T.Buffer((8, 8), "int32")):
        for i, j in T.grid(8, 8):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                p, q = quotient(vi, vj)
                k = K[vi]
                T.reads(K[vi], A[p, 0:4], A[k, q])
                T.writes(B[vi, vj])
                B[vi, vj] = A[p, q] + A[k, q]

    rng = np.random.default_rng(0)
    a, k = rng.integers(0, 9, (4, 4), np.int32), rng.integers(0, 4, 8, np.int32)
    rows = np.arange(8)[:, None]
    columns = np.arange(8) // 2
    result = run(kernel, a, k, np.zeros((8, 8), np.int32))[2]
    np.testing.assert_array_equal(result, a[rows % 4, columns] + a[k[:, None], columns])
