"""The greater of two numbers and scaled powers, as scalars and vectors."""

import ctypes

import numpy as np
import pytest

from lowering.compiler.kernels import compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE
from tests.lowering.tir_to_llvm.arithmetic.test_avx512_ops import EDGES
from tir_dialect.target import Target

COUNT = 16384
EXP = """
tir.prim_func @scaled_KIND(%X: !tir.buffer<[16384], f32>, %Y: !tir.buffer<[16384], f32>) {
  %n = arith.constant 16384 : index
  tir.for KIND (%i) in (%n) {
    %x = tir.load %X[%i]
    %y = tir.scaled_exp %x : f32
    tir.store %y, %Y[%i]
  }
}"""


@pytest.mark.parametrize("target", ["host", "x86-64-v2"])
def test_scaled_powers_are_two_units_off_at_most(target: str, tir) -> None:
    text = "".join(EXP.replace("KIND", kind) for kind in ("serial", "vectorized")).replace("for serial", "for")
    kernels = compile_prim_funcs(tir(text), Target.parse(target), cache=NO_CACHE)
    x = np.concatenate([np.linspace(-106, 0, COUNT - 64), -np.logspace(-44, 1, 64)]).astype(np.float32)
    x[:3] = np.nan, -np.inf, -0.0
    exact = np.exp(np.maximum(x, np.float32(-104)).astype(np.float64)) * 2.0**64
    for kind in ("serial", "vectorized"):
        got = np.empty_like(x)
        call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 2)(kernels.address(f"scaled_{kind}"))
        assert call(x.ctypes.data, got.ctypes.data) == 0
        assert np.isnan(got[0])
        assert (np.abs(got - exact)[1:] <= 2 * np.spacing(exact.astype(np.float32))[1:]).all()
        assert got[2] == 2.0**64


@pytest.mark.parametrize("lanes", [1, 4, 8, 16])
def test_greater(lanes: int, same_as_interpreter) -> None:
    text = f"""
    tir.prim_func @f(%X: !tir.buffer<[144], f32>, %Y: !tir.buffer<[144], f32>) {{
      %turns = arith.constant {144 // lanes} : index
      %lanes = arith.constant {lanes} : index
      tir.for (%turn) in (%turns) {{
        %first = arith.muli %turn, %lanes : index
        tir.for vectorized (%i) in (%lanes) {{
          %place = arith.addi %first, %i : index
          %x = tir.load %X[%place]
          %y = tir.load %Y[%place]
          %z = tir.greater %x, %y : f32
          tir.store %z, %Y[%place]
        }}
      }}
    }}"""
    x, y = (each.ravel().astype(np.float32) for each in np.meshgrid(EDGES, EDGES))
    same_as_interpreter(text, [x, y], {})
