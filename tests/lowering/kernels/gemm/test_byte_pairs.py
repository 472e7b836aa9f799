"""GEMM of bytes on machines without dot products of them: exact, in pairs that would saturate elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from lowering.compiler.kernels import compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from lowering.relax.layout.pack_weights import PanelLayout, pack, with_panels
from relax_dialect import BlockBuilder
from relax_dialect.builder import op, tensor
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.kernels import kernel_of_program
from tir_dialect.interpreter import compile_prim_func
from tir_dialect.ops.vectors import DotOp
from tir_dialect.target import Target
from vm_dialect import VirtualMachine
from xdsl_relax import run_passes

AVX2 = "x86-64-v3 cores=2"
ROWS = {"ui8": np.uint8, "i8": np.int8}
SIZES = [(0, 66), (1, 66), (2, 4), (5, 131), (3, 64)]
"""How many times 12 rows, which is dynamic, and K."""


def product(dtype: str, w: np.ndarray, rows: int = 12) -> ModuleOp:
    builder = BlockBuilder()
    with builder.function("main", {"x": tensor(("m", rows, w.shape[0]), dtype)}) as (x,):
        builder.emit_func_output(op.matmul(x, builder.const(w), out_dtype="i32"))
    return builder.get()


def weights(k: int, n: int, largest: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-largest, largest, (k, n), endpoint=True).astype(np.int8)


def extremes(dtype: str, *shape: int) -> np.ndarray:
    limits = np.iinfo(ROWS[dtype])
    return np.random.default_rng(1).choice(np.array([limits.min, limits.max, 3], ROWS[dtype]), shape)


@pytest.mark.parametrize("dtype", ROWS)
def test_results_are_exact(dtype: str) -> None:
    """Also in the few steps whose sums of two products do not fit 16 bits."""
    for m, k in SIZES:
        w = weights(k, 37, 64)
        w[k // 2] = -128
        w[0, :3], w[1, :3] = 64, 64
        main = VirtualMachine(build(product(dtype, w), target=Target.parse(AVX2)))["main"]
        x = extremes(dtype, m, 12, k)
        np.testing.assert_array_equal(np.from_dlpack(main(x)), x.astype(np.int32) @ w.astype(np.int32))


@pytest.mark.parametrize(("largest", "rows", "parts"), [(64, 12, 4), (127, 12, 2), (64, 8, 2)])
def test_the_layout_is_chosen_by_the_weights(largest: int, rows: int, parts: int) -> None:
    pipeline = 'legalize-ops,pack-weights{target="x86-64-v3"}'
    text = str(run_passes(product("ui8", weights(64, 32, largest), rows), pipeline))
    assert f"{parts}], i8>" in text
    assert f"{6 - parts}], i8>" not in text


@pytest.mark.parametrize("dtype", ROWS)
def test_panels_may_have_any_elements(dtype: str) -> None:
    """Which steps could saturate is found where the kernel runs: the layout promises nothing."""
    k, n, layout = 70, 40, PanelLayout(16, parts=4)
    text = f"""
    relax.func @main[%m](%x: !relax.tensor<[m, {k}], {dtype}>, %y: !relax.tensor<[{k}, {n}], i8>) {{
      %0 = relax.matmul %x, %y out_dtype = i32
      relax.return %0
    }}"""
    func = with_panels(kernel_of_program(text), "panels", {1: layout})
    kernels = compile_prim_funcs(ModuleOp([func.clone()]), Target.parse(f"{AVX2} task-percent=1"), cache=NO_CACHE)
    scheduled = func.clone()
    schedule(scheduled, Target.parse(AVX2))
    assert any(isinstance(each, DotOp) and each.saturating for each in scheduled.walk())
    interpreted = compile_prim_func(scheduled)
    for m in (0, 1, 9, 40):
        x, w = extremes(dtype, m, k), weights(k, n, 127, seed=m)
        w[:8] //= 2
        expected = x.astype(np.int32) @ w.astype(np.int32)
        guarded = [Guarded(each, True) for each in (x, pack(w, layout), np.zeros_like(expected))]
        assert call(kernels, func, [each.array for each in guarded], {"m": m}) == 0
        np.testing.assert_array_equal(guarded[2].array, expected)
        for each in guarded:
            each.release()
        result = np.zeros_like(expected)
        interpreted([x, pack(w, layout), result])
        np.testing.assert_array_equal(result, expected)
