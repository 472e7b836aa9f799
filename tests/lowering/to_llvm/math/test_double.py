"""Our elementary functions of f64."""

import math

import numpy as np
import pytest

from lowering.codegen.cache.code_cache import NO_CACHE
from lowering.codegen.kernels.kernels import compile_prim_funcs
from lowering.codegen.text.llvm_text import llvm_text
from lowering.to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.to_llvm.emitter import LoweringOptions
from tests.lowering.to_llvm.conftest import call
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

COUNT = 16384
LOOP = f"""
tir.prim_func @exp(%X: !tir.buffer<[{COUNT}], f64>, %Y: !tir.buffer<[{COUNT}], f64>) {{
  %n = arith.constant {COUNT} : index
  tir.for KIND (%i) in (%n) {{
    %x = tir.load %X[%i]
    %y = math.exp %x : f64
    tir.store %y, %Y[%i]
  }}
}}"""
EDGES = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 5e-324, 709.78271289338, 709.7827128933841, 1e308, -1e308]
EDGES += [-708.4, -744.44, -745.13, -745.14, -746.5, 0.34657359027997264, -0.34657359027997264]


def inputs(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    parts = [EDGES, rng.uniform(-1, 1, 4000), rng.uniform(-750, 712, 8000), rng.uniform(-1e-3, 1e-3, 1000)]
    known = np.concatenate(parts)
    return np.concatenate([known, rng.standard_normal(COUNT - len(known)) * 20])


def units_off(got: np.ndarray, x: np.ndarray) -> np.ndarray:
    """How far results are from the exact ones, in units in the last place."""
    with np.errstate(all="ignore"):
        exact = np.exp(x.astype(np.longdouble))
        rounded = exact.astype(np.float64)
        ok = np.isfinite(rounded) & np.isfinite(got)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        off = np.abs((got.astype(np.longdouble) - exact) / np.spacing(np.abs(rounded))).astype(np.float64)
    return np.where(same, 0.0, np.where(ok, off, np.inf))


@pytest.mark.parametrize("kind", ["serial", "vectorized"])
@pytest.mark.parametrize("machine", ["host", "x86-64-v2"])
def test_powers_of_e_are_at_most_two_units_off(tir, kind: str, machine: str) -> None:
    text = LOOP.replace("KIND", kind).replace("for serial", "for")
    module = tir(text)
    kernels = compile_prim_funcs(module, Target.parse(machine), cache=NO_CACHE)
    func = next(op for op in module.ops if isinstance(op, PrimFuncOp))
    for seed in range(3):
        x, y = inputs(seed), np.empty(COUNT)
        assert call(kernels, func, [x, y], {}) == 0
        assert units_off(y, x).max() <= 2


def test_no_function_of_one_number_is_called(tir) -> None:
    text = llvm_text(
        lower_prim_funcs([tir(LOOP.replace("KIND", "vectorized")).body.block.first_op], LoweringOptions(512))
    )
    assert "exp" not in text.replace("@exp", "")
