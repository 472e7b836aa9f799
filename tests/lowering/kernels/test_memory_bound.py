"""Elementwise stages, reductions and chains on the default schedule: interpreter before and after, and native."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from lowering.compiler.kernels import compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.llvm_text import llvm_text
from lowering.parsing import parse_module
from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.tir_to_llvm.emitter import LoweringOptions
from tests.lowering.kernels.memory_bound import compiled, kernel, native_kernel
from tests.lowering.kernels.memory_bound_programs import MAXIMUM_POOLING, PROGRAMS, arguments
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.sweeps import in_turn
from tir_dialect.interpreter import Run, compile_prim_func
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from vm_dialect import VirtualMachine

pytestmark = pytest.mark.sampled(4)

MACHINES = ("x86-64-v2", "x86-64-v3 cores=1", "x86-64-v4 cores=2", "neoverse-n1 cores=4")


def interpreted(run: Run, name: str, sizes: tuple[int, int]) -> np.ndarray:
    inputs, expected = arguments(name, *sizes)
    result = np.full(expected.shape, 77, expected.dtype)
    run([*inputs, result])
    return result


@cache
def unscheduled(name: str, sizes: tuple[int, int]) -> np.ndarray:
    return interpreted(compile_prim_func(kernel(name)), name, sizes)


@pytest.mark.parametrize("name", PROGRAMS)
def test_everything_is_scheduled(name: str) -> None:
    func = kernel(name)
    assert any(isinstance(op, BlockOp) for op in func.walk())
    schedule(func, Target.parse("x86-64-v4"))
    func.verify()
    assert not any(isinstance(op, BlockOp) for op in func.walk())


@pytest.mark.parametrize(("name", "machine"), in_turn(PROGRAMS, MACHINES))
def test_the_schedule_changes_nothing_the_second_time(name: str, machine: str) -> None:
    func = kernel(name)
    schedule(func, Target.parse(machine))
    once = str(func)
    schedule(func, Target.parse(machine))
    assert str(func) == once


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("name", "machine"), in_turn(PROGRAMS, MACHINES))
def test_the_scheduled_function_means_the_same(name: str, machine: str) -> None:
    func = kernel(name)
    schedule(func, Target.parse(machine))
    func.verify()
    run = compile_prim_func(func)
    for sizes in ((1, 1), (3, 5), (2, 37), (5, 19)):
        np.testing.assert_allclose(interpreted(run, name, sizes), unscheduled(name, sizes), rtol=2e-5, atol=1e-6)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=12, deadline=None)
@given(m=st.integers(0, 70), n=st.integers(0, 300))
def test_native_agrees_with_numpy(name: str, m: int, n: int) -> None:
    least = PROGRAMS[name].least
    inputs, expected = arguments(name, max(m, least), max(n, least))
    result = np.from_dlpack(compiled(name)(*inputs))
    np.testing.assert_allclose(result, expected, rtol=3e-5, atol=3e-6)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_native_agrees_on_many_threads(name: str) -> None:
    inputs, expected = arguments(name, 513, 517)
    result = np.from_dlpack(compiled(name)(*inputs))
    np.testing.assert_allclose(result, expected, rtol=3e-4, atol=3e-5)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=10, deadline=None)
@given(m=st.integers(0, 40), n=st.integers(0, 150))
def test_nothing_outside_is_touched(name: str, m: int, n: int) -> None:
    least = PROGRAMS[name].least
    m, n = max(m, least), max(n, least)
    inputs, expected = arguments(name, m, n)
    kernels, func = native_kernel(name)
    for at_end in (True, False):
        guarded = [Guarded(np.ascontiguousarray(array), at_end) for array in (*inputs, np.zeros_like(expected))]
        assert call(kernels, func, [each.array for each in guarded], {"m": m, "n": n, "d0": 4 * m}) == 0
        np.testing.assert_allclose(guarded[-1].array, expected, rtol=3e-5, atol=3e-6)
        for each in guarded:
            each.release()


CONTIGUOUS = [name for name in PROGRAMS if name != "transposed" and not name.startswith("bytes")]


@pytest.mark.parametrize("name", CONTIGUOUS)
def test_loops_are_made_of_vectors(name: str) -> None:
    func = kernel(name)
    schedule(func, Target.parse("x86-64-v4 cores=1"))
    lowered = llvm_text(lower_prim_funcs([func.clone()], LoweringOptions(512)))
    assert re.search(r"load <(8|16|64|128) x float>", lowered), "no contiguous vector is loaded"
    assert "llvm.masked.gather" not in lowered


@pytest.mark.parametrize(("name", "shuffles"), [("two between each other", 2), ("three between each other", 6)])
def test_a_few_components_are_interleaved_in_registers(name: str, shuffles: int) -> None:
    func = kernel(name)
    schedule(func, Target.parse("x86-64-v4 cores=1"))
    assert str(func).count("vector.shuffle") == shuffles


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 7, 40, 66])
@pytest.mark.parametrize("name", ["max of rows", "min of columns", "argmax", "argmin"])
def test_special_numbers_win_where_they_should(name: str, place: int, value: float) -> None:
    (x,), _ = arguments(name, 67, 67)
    x[place, :] = x[:, place] = value
    x[5, 9:12] = value
    expected = PROGRAMS[name].numpy(x)
    np.testing.assert_array_equal(np.from_dlpack(compiled(name)(x)), expected)


def test_the_first_of_equal_elements_is_found() -> None:
    x = np.zeros((4, 301), np.float32)
    x[1, 17:] = x[2, 250:] = 1
    np.testing.assert_array_equal(np.from_dlpack(compiled("argmax")(x)), [0, 17, 250, 0])


def test_softmax_of_extreme_rows() -> None:
    x = np.array([[0.0, -np.inf, 100.0], [1e38, -1e38, 0.0], [np.nan, 1.0, 2.0]], np.float32)
    with np.errstate(invalid="ignore"):
        expected = PROGRAMS["softmax"].numpy(x)
    np.testing.assert_allclose(np.from_dlpack(compiled("softmax")(x)), expected, rtol=1e-6, atol=1e-38)


def test_windows_at_the_edges() -> None:
    x = np.full((2, 4, 9, 40), -5.0, np.float32)
    assert (np.from_dlpack(compiled(MAXIMUM_POOLING)(x)) == -5).all()


def test_running_sums_of_special_numbers() -> None:
    x = np.random.default_rng(0).standard_normal((4, 301)).astype(np.float32)
    x[0, 0], x[1, 250], x[2, 7], x[3, 3:5] = -0.0, np.nan, np.inf, (np.inf, -np.inf)
    with np.errstate(invalid="ignore"):
        expected = x.cumsum(1)
    result = np.from_dlpack(compiled("running sums")(x))
    np.testing.assert_allclose(result, expected, rtol=3e-4, atol=3e-5)
    assert np.signbit(result[0, 0])


@pytest.mark.parametrize(
    "options", ["axis = 1 exclusive", "axis = 0", "axis = 0 exclusive", "axis = 1 dtype = f64", ""]
)
def test_other_running_sums(options: str) -> None:
    """Those for which there is no rule stay as they are."""
    text = PROGRAMS["running sums"].text.replace("axis = 1", options)
    x = np.random.default_rng(0).standard_normal((5, 37)).astype(np.float32)
    padded = np.pad(x, ((0, 0), (1, 0)))[:, :-1] if "axis = 1" in options else np.pad(x, ((1, 0), (0, 0)))[:-1]
    axis = None if "axis" not in options else int("1" in options)
    expected = (padded if "exclusive" in options else x).cumsum(axis, dtype=np.float64)
    result = np.from_dlpack(VirtualMachine(build(parse_module(text)))["main"](x))
    np.testing.assert_allclose(result, expected, rtol=3e-5, atol=3e-6)


def long_map() -> PrimFuncOp:
    """A map of 80 additions."""
    sums = "\n".join(f"      %{i + 1} = arith.addf %{i}, %a : f32" for i in range(80))
    text = f"""
tir.prim_func @main[%n](%A: !tir.buffer<[n], f32>, %B: !tir.buffer<[n], f32>) {{
  tir.for (%i) in (%n) {{
    tir.block "sums" (%v = spatial %i in %n) {{
      %a = tir.load %A[%v]
      %0 = arith.constant 0.0 : f32
{sums}
      tir.store %80, %B[%v]
    }}
  }}
}}"""
    return next(op for op in parse_module(text).ops if isinstance(op, PrimFuncOp)).clone()


@pytest.mark.parametrize(("machine", "times"), [("x86-64-v4 cores=1", 1), ("x86-64-v2 cores=1", 2)])
def test_long_code_is_written_once_where_masks_are_cheap(machine: str, times: int) -> None:
    func = long_map()
    schedule(func, Target.parse(machine))
    assert str(func).count("arith.addf") == times * 80


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 100])
def test_long_code_stays_inside(n: int) -> None:
    func = long_map()
    kernels = compile_prim_funcs(ModuleOp([func]))
    for at_end in (True, False):
        a, b = (Guarded(np.full(n, value, np.float32), at_end) for value in (0.5, 77))
        assert call(kernels, func, [a.array, b.array], {"n": n}) == 0
        np.testing.assert_array_equal(b.array, np.full(n, 40, np.float32))
        a.release()
        b.release()
