"""Random sequences of primitives: the function computes what it did, in the interpreter and as native code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE
from lowering.tir.check_accesses import CheckAccessesPass
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.tir_dialect.schedule import support
from tests.tir_dialect.schedule.random_steps import step
from tests.tir_dialect.schedule.test_compute_location import matmul_with_epilogue, softmax
from tests.tir_dialect.schedule.test_padding import convolution, padded
from tests.tir_dialect.schedule.test_reductions import product_with_epilogue
from tests.tir_dialect.schedule.test_rfactor import arg_maximum
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule import Schedule
from tir_dialect.target import Target

PROGRAMS = {
    "matmul": support.matmul,
    "elementwise": support.elementwise,
    "row_sum": support.row_sum,
    "scan": support.scan,
    "epilogue": matmul_with_epilogue,
    "blur": support.blur,
    "pools": support.pools,
    "softmax": softmax,
    "convolution": convolution,
    "padded": padded,
    "product": product_with_epilogue,
    "arg_maximum": arg_maximum,
}
SIZES = (
    {"n": 5, "m": 7, "k": 3},
    {"n": 8, "m": 4, "k": 2},
    {"n": 2, "m": 0, "k": 1},
)


def check_random_schedule(before: PrimFuncOp, steps: int, draw: Callable[[st.SearchStrategy], Any]) -> Schedule:
    """Takes random steps; the result and a replay of its trace compute what the function computed before."""
    sch = Schedule(before.clone())
    for _ in range(steps):
        step(draw, sch)
    try:
        support.check_same(before, sch.func, SIZES)
    except BaseException:
        print(before, sch.trace.as_python(), sch.func)
        raise
    again = Schedule(before.clone())
    sch.trace.replay(again)
    assert str(again.func) == str(sch.func)
    return sch


def check_code(func: PrimFuncOp) -> None:
    """Native code does what the interpreter does, and stays inside of the buffers."""
    module = ModuleOp([func.clone()])
    CheckAccessesPass().apply(Context(), module)
    kernels = compile_prim_funcs(module, Target.parse("host cores=2 task_percent=1"), cache=NO_CACHE)
    for sizes in SIZES:
        expected, pages = support.run(func, sizes), [Guarded(each, True) for each in support.arguments(func, sizes)]
        assert call(kernels, func, [page.array for page in pages], sizes) == 0
        for page, wanted in zip(pages, expected, strict=True):
            np.testing.assert_array_equal(page.array, wanted, str(sizes))
            page.release()
