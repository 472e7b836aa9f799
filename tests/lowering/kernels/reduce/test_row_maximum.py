"""Maximum and minimum of a row: NaN of either sign wins, and zeros are ordered."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import i32

from lowering import build
from lowering.compiler.kernels import compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.llvm_text import llvm_text
from lowering.parsing import parse_module
from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.tir_to_llvm.emitter import LoweringOptions
from tests.lowering.kernels.memory_bound import kernel
from tests.lowering.tir_to_llvm.conftest import call, find, parse
from tir_dialect.ops.arithmetic import GreaterOp
from tir_dialect.target import Target
from vm_dialect import VirtualMachine

SPECIAL = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3e38, -3e38], np.float32)


@cache
def compiled(name: str):
    signature = "[%m, %n](%x: !relax.tensor<[m, n], f32>) -> !relax.object"
    text = f"relax.func @main{signature} {{\n  %0 = relax.{name} %x axes = [1]\n  relax.return %0\n}}"
    return VirtualMachine(build(parse_module(text)))["main"]


def extreme(row: np.ndarray, name: str) -> np.float32:
    """By definition, with -0 below 0."""
    if np.isnan(row).any():
        return np.float32(np.nan)
    choose = max if name == "max" else min
    return choose(row, key=lambda x: (x, not np.signbit(x)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("n", [2, 7, 33, 101])
def test_rows_of_special_numbers(name: str, n: int) -> None:
    x = np.random.default_rng(n).choice(SPECIAL, (400, n))
    x[200:] = np.random.default_rng(n).choice(SPECIAL[2:], (200, n))
    x[300:] = np.random.default_rng(n).choice(SPECIAL[4:6], (100, n))
    expected = np.array([extreme(row, name) for row in x])
    result = np.from_dlpack(compiled(name)(x))
    np.testing.assert_array_equal(result, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize(("machine", "calls"), [("x86-64-v4 cores=1", False), ("neoverse-n1 cores=1", True)])
def test_lanes_are_combined_as_integers_where_floats_take_longer(machine: str, calls: bool) -> None:
    func, target = kernel("max of rows"), Target.parse(machine)
    schedule(func, target)
    text = llvm_text(lower_prim_funcs([func.clone()], LoweringOptions.of(target)))
    assert ("llvm.maximum.v2f32" in text) == calls
    assert ("llvm.smax.v2i32" in text) != calls


@pytest.mark.parametrize(("machine", "quick"), [("x86-64-v3", True), ("x86-64-v4", True), ("neoverse-n1", False)])
def test_one_comparison_for_each_number_where_that_is_one_instruction(machine: str, quick: bool) -> None:
    func = kernel("max of rows")
    schedule(func, Target.parse(f"{machine} cores=1"))
    assert any(isinstance(op, GreaterOp) for op in func.walk()) == quick


def test_windows_of_special_numbers() -> None:
    text = "relax.func @main[%m, %n](%x: !relax.tensor<[1, 2, m, n], f32>) -> !relax.object {\n"
    text += "  %0 = relax.nn.max_pool2d %x pool_size = [2, 3] padding = [1, 1, 0, 1]\n  relax.return %0\n}"
    x = np.random.default_rng(3).choice(SPECIAL, (1, 2, 6, 21)).astype(np.float32)
    x[0, 0, 1:4] = -0.0
    result = np.from_dlpack(VirtualMachine(build(parse_module(text)))["main"](x))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (1, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 3), (2, 3)).reshape(1, 2, 6, 21, 6)
    expected = np.apply_along_axis(lambda window: extreme(window, "max"), -1, windows)
    np.testing.assert_array_equal(result, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize(("machine", "as_integers"), [("x86-64-v3", True), ("x86-64-v4", True), ("neoverse-n1", False)])
def test_taps_of_windows_are_compared_as_integers(machine: str, as_integers: bool) -> None:
    func = kernel("max pooling")
    schedule(func, Target.parse(f"{machine} cores=1"))
    integers = [op for op in func.walk() if isinstance(op, arith.MaxSIOp) and op.result.type == i32]
    assert bool(integers) == as_integers


TWO_AXES = """
tir.prim_func @main(%X: !tir.buffer<[3, 4, 40], f32>, %Y: !tir.buffer<[4], f32>) {
  %c3 = tir.dim 3
  %c4 = tir.dim 4
  %c40 = tir.dim 40
  tir.for (%b, %j, %i) in (%c4, %c40, %c3) {
    tir.block "max" (%vb = spatial %b in %c4, %vj = reduce %j in %c40, %vi = reduce %i in %c3) {
      tir.init {
        %low = arith.constant 0xFF800000 : f32
        tir.store %low, %Y[%vb]
      }
      %y = tir.load %Y[%vb]
      %x = tir.load %X[%vi, %vb, %vj]
      %z = arith.maximumf %y, %x : f32
      tir.store %z, %Y[%vb]
    }
  }
}"""


def test_contiguous_elements_of_several_rows() -> None:
    """The first of the reduced axes is the contiguous one."""
    module = parse(TWO_AXES)
    kernels = compile_prim_funcs(module, Target.parse("host cores=1"))
    x = np.random.default_rng(0).standard_normal((3, 4, 40), np.float32)
    y = np.full(4, np.nan, np.float32)
    assert call(kernels, find(module), [x, y], {}) == 0
    np.testing.assert_array_equal(y, x.max((0, 2)))
