"""Reductions of columns that are wider than the registers: bands of rows, with the sums in the results in between."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.codegen.kernels import Kernels, compile_prim_funcs
from tests.lowering.schedule.test_memory_bound import kernel
from tests.lowering.to_llvm.conftest import call
from tests.lowering.to_llvm.test_safety import Guarded
from tir_dialect.ops.function import PrimFuncOp


@cache
def native(name: str) -> tuple[Kernels, PrimFuncOp]:
    func = kernel(name).clone()
    return compile_prim_funcs(ModuleOp([func])), func


@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize(("m", "n"), [(0, 300), (1, 129), (7, 300), (8, 128), (9, 257), (40, 131), (517, 1029)])
def test_columns_are_added_in_the_order_of_the_rows(m: int, n: int, at_end: bool) -> None:
    x = np.random.default_rng(m).standard_normal((m, n), np.float32)
    expected = np.zeros(n, np.float32)
    for row in x:
        expected += row
    kernels, func = native("sum of columns")
    source, target = Guarded(x, at_end), Guarded(np.full(n, np.nan, np.float32), at_end)
    assert call(kernels, func, [source.array, target.array], {"m": m, "n": n}) == 0
    np.testing.assert_array_equal(target.array, expected)
    source.release()
    target.release()
