"""Sums along rows prefetch later cache lines, if vectors are whole cache lines and the operand comes from memory."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.kernels import kernel_of_program
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.raw_memory import PrefetchOp
from tir_dialect.target import Target


def sums(axes: str, shape: str = "m, n") -> PrimFuncOp:
    symbols = ", ".join(f"%{name}" for name in re.findall("[a-z]", shape))
    head = f"relax.func @main[{symbols}](%x: !relax.tensor<[{shape}], f32>)"
    return kernel_of_program(f"{head} {{\n%y = relax.sum %x {axes}\nrelax.return %y\n}}")


@pytest.mark.parametrize("axes", ["", "axes = [1]"])
@pytest.mark.parametrize(("machine", "lines"), [("x86-64-v4", 4), ("x86-64-v3", 0), ("neoverse-n1", 0)])
def test_an_iteration_prefetches_its_cache_lines_a_page_ahead(axes: str, machine: str, lines: int) -> None:
    func = sums(axes)
    schedule(func, Target.parse(machine))
    prefetches = [op for op in func.walk() if isinstance(op, PrefetchOp)]
    branches = {op.parent_op() for op in prefetches}
    assert bool(prefetches) == bool(lines)
    assert all(isinstance(branch, IfOp) for branch in branches)
    assert all(op.level.value.data == 2 for op in prefetches)
    for loop in {branch.parent_op() for branch in branches if branch is not None}:
        assert loop is not None
        assert sum(isinstance(op, PrefetchOp) for op in loop.walk()) == lines, "each version of the loop has them"


@pytest.mark.parametrize("machine", ["host l3-bytes=1024", "host l3-bytes=1024 cores=2 task-percent=1"])
def test_values_and_memory(machine: str) -> None:
    for axes, axis in (("", None), ("axes = [1]", 1)):
        func = sums(axes)
        kernels = compile_prim_funcs(ModuleOp([func.clone()]), Target.parse(machine), cache=NO_CACHE)
        for shape in ((1, 1), (3, 257), (40, 131), (2, 5000), (0, 3), (3, 0)):
            x = np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)
            expected = np.asarray(x.sum(axis, dtype=np.float64))
            for at_end in (True, False):
                data, result = Guarded(x, at_end), Guarded(np.full(expected.shape, np.nan, np.float32), at_end)
                assert call(kernels, func, [data.array, result.array], dict(zip("mn", shape, strict=True))) == 0
                np.testing.assert_allclose(result.array, expected, rtol=1e-4, atol=1e-4)
                data.release()
                result.release()
