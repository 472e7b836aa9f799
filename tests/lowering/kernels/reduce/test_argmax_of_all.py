"""Argmax of all elements, as of one row, of which threads have ranges."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from tests.lowering.tir_to_llvm.conftest import call, find, parse
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.kernels import kernel_of_program
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.vectors import FirstLaneOp
from tir_dialect.target import Target

DTYPES = {"f32": np.float32, "f64": np.float64, "i8": np.int8, "i64": np.int64}
SIZES = [(1, 1), (3, 5), (1, 64), (5, 13), (8, 16), (7, 37), (129, 1), (60, 33)]


def function(name: str, dtype: str) -> PrimFuncOp:
    head = f"relax.func @main[%m, %n](%x: !relax.tensor<[m, n], {dtype}>)"
    return kernel_of_program(f"{head} {{\n  %0 = relax.{name} %x\n  relax.return %0\n}}")


@cache
def kernels_of(dtype: str, machine: str) -> tuple[list[PrimFuncOp], Kernels]:
    functions = [function(name, dtype) for name in ("argmax", "argmin")]
    module = ModuleOp([func.clone() for func in functions])
    return functions, compile_prim_funcs(module, Target.parse(f"{machine} task-percent=1"), cache=NO_CACHE)


def check(func: PrimFuncOp, kernels: Kernels, x: np.ndarray) -> None:
    guarded = [Guarded(x, True), Guarded(np.zeros((), np.int64), True)]
    assert call(kernels, func, [each.array for each in guarded], dict(zip("mn", x.shape, strict=True))) == 0
    assert guarded[1].array == getattr(np, func.sym_name.data)(x)
    for each in guarded:
        each.release()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("machine", ["host cores=3", "host cores=1", "x86-64-v3 cores=3"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_of_equals_anywhere(dtype: str, machine: str) -> None:
    functions, kernels = kernels_of(dtype, machine)
    rng = np.random.default_rng(0)
    for func in functions:
        for shape in SIZES:
            x = rng.integers(-100, 100, shape).astype(DTYPES[dtype])
            for place in {0, x.size // 3, x.size // 2, x.size - 1}:
                here = x.copy()
                here.ravel()[[place, x.size - 1]] = 101 if func.sym_name.data == "argmax" else -101
                check(func, kernels, here)


@pytest.mark.parametrize("machine", ["host cores=3", "x86-64-v3 cores=3"])
def test_nan_before_all(machine: str) -> None:
    functions, kernels = kernels_of("f32", machine)
    for func in functions:
        for number in (np.nan, np.inf, -np.inf, 0.0):
            for place in (0, 700, 1979):
                x = np.full((60, 33), -0.0, np.float32)
                x.ravel()[[place, 1500, 1979]] = number
                check(func, kernels, x)
                x[:] = number
                check(func, kernels, x)


@pytest.mark.parametrize("is_turned", [False, True])
def test_elements_lie_as_they_are_counted(is_turned: bool) -> None:
    text = str(function("argmax", "f32"))
    if is_turned:
        text = text.replace("<[m, n], f32>", "<[n, m], f32>").replace("%x[%vr0, %vr1]", "%x[%vr1, %vr0]")
    func = find(parse(text))
    schedule(func, Target.parse("x86-64-v4 cores=2"))
    assert any(isinstance(op, FirstLaneOp) for op in func.walk()) is not is_turned
