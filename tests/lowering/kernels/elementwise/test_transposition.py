"""Stages that transpose and change the width of elements, as between quantised convolutions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.parsing import parse_module
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.programs import run_pipeline
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

QUANTISED = """
relax.func @main[%m, %n](%x: !relax.tensor<[2, m, n], f32>) {
  %scale = relax.constant dense<0.5> : tensor<f32>
  %zero = relax.constant dense<3.0> : tensor<f32>
  %least = relax.constant dense<0.0> : tensor<f32>
  %most = relax.constant dense<255.0> : tensor<f32>
  %0 = relax.divide %x, %scale
  %1 = relax.round %0
  %2 = relax.add %1, %zero
  %3 = relax.maximum %2, %least
  %4 = relax.minimum %3, %most
  %5 = relax.astype %4 dtype = ui8
  %6 = relax.permute_dims %5 axes = [0, 2, 1]
  relax.return %6
}
"""
CAST = """
relax.func @main[%m, %n](%x: !relax.tensor<[2, m, n], FROM>) {
  %0 = relax.astype %x dtype = TO
  %1 = relax.permute_dims %0 axes = [0, 2, 1]
  relax.return %1
}
"""
TYPES = {"ui8": np.uint8, "i8": np.int8, "i64": np.int64, "f32": np.float32, "f64": np.float64}
CASTS = [("ui8", "f32"), ("f32", "f64"), ("i64", "i8")]
TEXTS = {"quantised": QUANTISED} | {
    f"{source} to {target}": CAST.replace("FROM", source).replace("TO", target) for source, target in CASTS
}
MAPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "quantised": lambda x: np.clip(np.round(x / 0.5) + 3, 0, 255).astype(np.uint8),
} | {f"{source} to {target}": lambda x, target=target: x.astype(TYPES[target]) for source, target in CASTS}


@cache
def kernel(name: str) -> PrimFuncOp:
    module = parse_module(TEXTS[name])
    run_pipeline(module, "legalize-ops,fuse-ops,fuse-tir")
    (func,) = (op for op in module.ops if isinstance(op, PrimFuncOp))
    return func


@cache
def compiled(name: str) -> tuple[Kernels, PrimFuncOp]:
    func = kernel(name).clone()
    return compile_prim_funcs(ModuleOp([func])), func


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=15, deadline=None)
@given(m=st.integers(0, 40), n=st.integers(0, 150))
def test_values_and_nothing_outside(name: str, m: int, n: int) -> None:
    source = TYPES[name.split()[0] if " " in name else "f32"]
    x = np.random.default_rng(m + 1000 * n).integers(-100, 100, (2, m, n)).astype(source)
    expected = np.ascontiguousarray(MAPS[name](x).transpose(0, 2, 1))
    kernels, func = compiled(name)
    for at_end in (True, False):
        guarded = [Guarded(array, at_end) for array in (x, np.zeros_like(expected))]
        assert call(kernels, func, [each.array for each in guarded], {"m": m, "n": n}) == 0
        np.testing.assert_array_equal(guarded[-1].array, expected)
        for each in guarded:
            each.release()


@pytest.mark.parametrize("name", TEXTS)
def test_tiles_change_their_order_in_registers(name: str) -> None:
    func = kernel(name).clone()
    schedule(func, Target.parse("x86-64-v4 cores=1"))
    assert "vector.shuffle" in str(func)


PERMUTED = """
relax.func @main[%m, %n](%x: !relax.tensor<[2, m, n], DTYPE>) {
  %0 = relax.permute_dims %x axes = [0, 2, 1]
  relax.return %0
}
"""


@pytest.mark.parametrize(("machine", "lanes"), [("x86-64-v3", 8), ("x86-64-v4", 16), ("neoverse-n1", 4)])
def test_elements_go_one_by_one_only_where_rows_are_short(machine: str, lanes: int) -> None:
    """The last tiles overlap those before; rows that are few are masked where that is cheap."""
    func = permuted("f32")
    schedule(func, Target.parse(f"{machine} cores=1"))
    text = str(func)
    masked = machine != "neoverse-n1"
    assert text.count(f"vector<{lanes}xf32>") > lanes
    assert text.count("vector.create_mask") == masked
    ones = [line for line in text.splitlines() if "tir.load %x" in line and "vector" not in line]
    assert len(ones) == (1 if masked else 2)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", ["f32", "i8", "f64"])
@pytest.mark.parametrize("m", [0, 1, 3, 7, 8, 9, 16, 17, 67])
def test_tiles_that_overlap(m: int, dtype: str) -> None:
    func = permuted(dtype)
    kernels = compile_prim_funcs(ModuleOp([func]))
    for n in (1, 3, 5, 8, 11, 16, 31, 130):
        x = np.arange(2 * m * n).reshape(2, m, n).astype(TYPES[dtype])
        for at_end in (True, False):
            guarded = [Guarded(array, at_end) for array in (x, np.zeros((2, n, m), TYPES[dtype]))]
            assert call(kernels, func, [each.array for each in guarded], {"m": m, "n": n}) == 0
            np.testing.assert_array_equal(guarded[1].array, x.transpose(0, 2, 1))
            for each in guarded:
                each.release()


def permuted(dtype: str) -> PrimFuncOp:
    module = parse_module(PERMUTED.replace("DTYPE", dtype))
    run_pipeline(module, "legalize-ops,fuse-ops,fuse-tir")
    (func,) = (op for op in module.ops if isinstance(op, PrimFuncOp))
    return func.clone()
