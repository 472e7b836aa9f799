"""Rows whose ends are copied from elsewhere: values, memory around buffers, and vectors without gathers between."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.codegen.cache.code_cache import NO_CACHE
from lowering.codegen.kernels.kernels import Kernels, compile_prim_funcs
from lowering.schedule.cpu.memory.sweep.vector_loop import constant_of
from lowering.schedule.schedule_cpu import schedule
from tests.lowering.to_llvm.conftest import call
from tests.lowering.to_llvm.test_safety import Guarded
from tests.support.kernels import kernel_of_program
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.target import Target
from tir_dialect.types import LoopKind

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
WIDTHS = {
    "n": ((2, 3),),
    "m, n": ((1, 0), (0, 2)),
    "m, n, 3": ((0, 0), (40, 1), (0, 0)),
}


def function_of(mode: str, shape: str) -> PrimFuncOp:
    """The kernel of a padding."""
    symbols = ", ".join(f"%{name}" for name in shape.split(", ") if name.isalpha())
    widths = [width for pair in WIDTHS[shape] for width in pair]
    body = f'%y = relax.nn.pad %x pad_width = {widths} mode = "{mode}"\nrelax.return %y'
    return kernel_of_program(f"relax.func @main[{symbols}](%x: !relax.tensor<[{shape}], f32>) {{\n{body}\n}}")


@cache
def kernel_of(mode: str, shape: str) -> tuple[PrimFuncOp, Kernels]:
    """The function, and its code."""
    func = function_of(mode, shape)
    return func, compile_prim_funcs(ModuleOp([func.clone()]), cache=NO_CACHE)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", WIDTHS)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 3), (5, 16), (3, 50), (2, 70000)])
def test_values_and_memory(mode: str, shape: str, m: int, n: int) -> None:
    func, kernels = kernel_of(mode, shape)
    sizes = {name: size for name, size in (("m", m), ("n", n)) if name in func.symbol_names}
    x = np.random.default_rng(0).standard_normal(
        [extent.evaluate(sizes) for extent in func.params[0].type.shape], np.float32
    )
    expected = np.pad(x, WIDTHS[shape], mode=MODES[mode])
    for at_end in (True, False):
        data, result = Guarded(x, at_end), Guarded(np.full_like(expected, np.nan), at_end)
        assert call(kernels, func, [data.array, result.array], sizes) == 0
        np.testing.assert_array_equal(result.array, expected)
        data.release()
        result.release()


def test_the_middle_is_made_of_whole_vectors() -> None:
    func = function_of("reflect", "m, n")
    schedule(func, Target.parse("x86-64-v4"))
    vectors = [op for op in func.walk() if isinstance(op, ForOp) and op.kind.data is LoopKind.VECTORIZED]
    copies = [loop for loop in vectors if any(isinstance(op, LoadOp) for op in loop.walk())]
    assert len(copies) == 2  # whole vectors and the last one
    for loop in copies:
        assert constant_of(loop.upper) == 16, "lanes are those of the elements, not of the tables"
        assert len([op for op in loop.walk() if isinstance(op, LoadOp)]) == 1, "a table is read for each element"
