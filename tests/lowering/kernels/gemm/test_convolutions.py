"""Convolutions as GEMM or direct contractions, and prologues and epilogues of contractions."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from lowering.parsing import parse_module
from lowering.relax_to_tir.legalize_ops import LegalizeOpsPass
from tests.lowering.kernels.conv.convolutions import Convolution
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.sweeps import in_turn
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

pytestmark = pytest.mark.sampled(2)

CASES = {
    "1x1": Convolution(5, 17, 1),
    "1x1, every second": Convolution(4, 9, 1, stride=2),
    "3x3": Convolution(4, 20, 3, padding=1),
    "3x3, every second": Convolution(3, 5, 3, stride=2, padding=1),
    "3x3, every third": Convolution(3, 5, 3, stride=3),
    "3x3, dilated": Convolution(3, 16, 3, padding=2, dilation=2),
    "7x7": Convolution(3, 6, 7, stride=2, padding=3),
    "many channels": Convolution(70, 15, 3, padding=1),
    "few filters": Convolution(9, 3, 3, padding=1),
    "one filter, every second": Convolution(9, 1, 5, stride=2, padding=4, dilation=2),
    "groups": Convolution(8, 12, 3, padding=1, groups=4),
    "depthwise": Convolution(6, 6, 3, padding=1, groups=6),
    "depthwise, every second": Convolution(6, 6, 3, stride=2, padding=1, groups=6),
    "depthwise, multiplied": Convolution(4, 8, 3, groups=4),
    "channels last": Convolution(5, 18, 3, padding=1, layout="NHWC"),
    "channels last, depthwise": Convolution(20, 20, 3, padding=1, groups=20, layout="NHWC"),
}
SIZES = ((1, 7, 7), (2, 9, 8), (1, 6, 107), (0, 8, 8), (3, 7, 33))


@cache
def kernel(name: str) -> PrimFuncOp:
    module = parse_module(CASES[name].text)
    LegalizeOpsPass().apply(Context(), module)
    return next(op for op in module.ops if isinstance(op, PrimFuncOp))


@cache
def native(name: str) -> Kernels:
    return compile_prim_funcs(ModuleOp([kernel(name).clone()]), cache=NO_CACHE)


@pytest.mark.sampled(40)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_native_convolutions(name: str, sizes: tuple[int, int, int]) -> None:
    case = CASES[name]
    x, k = case.arrays(*sizes)
    expected = case.expected(x, k)
    order = [case.layout.index(letter) for letter in "NCHW"]
    back = ["NCHW".index(letter) for letter in case.layout]
    arrays = [np.ascontiguousarray(x.transpose(back)), k, np.full(expected.transpose(back).shape, np.nan, "f4")]
    for at_end in (True, False):
        pages = [Guarded(array, at_end) for array in arrays]
        func = kernel(name)
        symbols = {symbol: dict(zip("nhw", sizes, strict=True))[symbol] for symbol in func.symbol_names}
        assert call(native(name), func, [page.array for page in pages], symbols) == 0
        result = np.array(pages[-1].array).transpose(order)
        for page in pages:
            page.release()
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("name", "machine"), in_turn(CASES, ("x86-64-v3 cores=2", "neoverse-n1")))
def test_the_scheduled_convolution_means_the_same(name: str, machine: str) -> None:
    func, case = kernel(name).clone(), CASES[name]
    schedule(func, Target.parse(machine))
    func.verify()
    assert not any(isinstance(op, BlockOp) for op in func.walk())
    # To interpret takes as long as there are channels.
    x, k = case.arrays(1, 3 if case.channels > 64 else 8, 9)
    back = ["NCHW".index(letter) for letter in case.layout]
    expected = case.expected(x, k).transpose(back)
    result = np.full(expected.shape, np.nan, "f4")
    run_prim_func(func, [np.ascontiguousarray(x.transpose(back)), k, result])
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("machine", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("name", ["few filters", "one filter, every second", "groups", "depthwise"])
def test_the_windows_of_few_filters_are_not_packed(name: str, machine: str) -> None:
    func = kernel(name).clone()
    schedule(func, Target.parse(machine))
    assert {op.results[0].name_hint for op in func.walk() if op.name == "tir.alloc_buffer"} == {"padded", "sums"}


FUSED = """
tir.prim_func @f[%m, %n, %k](%A: !tir.buffer<[m, k], f32>, %Q: !tir.buffer<[n, k], i8>, %s: !tir.buffer<[n], f32>,
    %bias: !tir.buffer<[n], f32>, %R: !tir.buffer<[m, n], f32>, %C: !tir.buffer<[m, n], f32>) {
  %W = tir.alloc_buffer : !tir.buffer<[n, k], f32>
  %T = tir.alloc_buffer : !tir.buffer<[k, n], f32>
  %P = tir.alloc_buffer : !tir.buffer<[m, n], f32>
  %B = tir.alloc_buffer : !tir.buffer<[m, n], f32>
  tir.for (%j, %r) in (%n, %k) {
    tir.block "dequantise" (%vj = spatial %j in %n, %vr = spatial %r in %k) {
      %q = tir.load %Q[%vj, %vr]
      %w = arith.sitofp %q : i8 to f32
      %scale = tir.load %s[%vj]
      %x = arith.mulf %w, %scale : f32
      tir.store %x, %W[%vj, %vr]
    }
  }
  tir.for (%r, %j) in (%k, %n) {
    tir.block "transpose" (%vr = spatial %r in %k, %vj = spatial %j in %n) {
      %x = tir.load %W[%vj, %vr]
      tir.store %x, %T[%vr, %vj]
    }
  }
  tir.for (%i, %j, %r) in (%m, %n, %k) {
    tir.block "product" (%vi = spatial %i in %m, %vj = spatial %j in %n, %vr = reduce %r in %k) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %P[%vi, %vj]
      }
      %c = tir.load %P[%vi, %vj]
      %a = tir.load %A[%vi, %vr]
      %b = tir.load %T[%vr, %vj]
      %ab = arith.mulf %a, %b : f32
      %sum = arith.addf %c, %ab : f32
      tir.store %sum, %P[%vi, %vj]
    }
  }
  tir.for (%i, %j) in (%m, %n) {
    tir.block "bias" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %p = tir.load %P[%vi, %vj]
      %b = tir.load %bias[%vj]
      %x = arith.addf %p, %b : f32
      tir.store %x, %B[%vi, %vj]
    }
  }
  tir.for (%i, %j) in (%m, %n) {
    tir.block "residual_relu" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %zero = arith.constant 0.0 : f32
      %b = tir.load %B[%vi, %vj]
      %r = tir.load %R[%vi, %vj]
      %x = arith.addf %b, %r : f32
      %y = arith.maximumf %x, %zero : f32
      tir.store %y, %C[%vi, %vj]
    }
  }
}"""


@cache
def fused() -> tuple[PrimFuncOp, Kernels]:
    module = parse_module(FUSED)
    func = next(op for op in module.ops if isinstance(op, PrimFuncOp))
    return func, compile_prim_funcs(module, cache=NO_CACHE)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (3, 17, 40), (0, 4, 4), (4, 4, 0), (40, 70, 1000), (16, 33, 700)], ids=str
)
def test_what_comes_before_and_after_is_fused(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(m)
    a, residual = rng.standard_normal((m, k)).astype("f4"), rng.standard_normal((m, n)).astype("f4")
    q, (s, bias) = rng.integers(-128, 128, (n, k)).astype("i1"), rng.standard_normal((2, n)).astype("f4") / 64
    expected = np.maximum(a.astype("f8") @ (q * s[:, None].astype("f8")).T + bias + residual, 0)
    func, kernels = fused()
    pages = [Guarded(array, True) for array in (a, q, s, bias, residual, np.full((m, n), np.nan, "f4"))]
    assert call(kernels, func, [page.array for page in pages], {"m": m, "n": n, "k": k}) == 0
    np.testing.assert_allclose(pages[-1].array, expected, rtol=1e-3, atol=1e-3)
    for page in pages:
        page.release()


def test_fused_kernels_need_no_memory_for_what_is_between() -> None:
    func = fused()[0].clone()
    schedule(func, Target.parse("x86-64-v4"))
    allocated = {op.results[0].name_hint for op in func.walk() if op.name == "tir.alloc_buffer"}
    assert not allocated & {"W", "T", "B"}
