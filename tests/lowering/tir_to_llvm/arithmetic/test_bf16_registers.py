"""Rounding to bf16 by AVX-512 BF16, bit for bit as by integers."""

import re

import ml_dtypes
import numpy as np
import pytest

from lowering.llvm.llvm_text import llvm_text
from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.tir_to_llvm.emitter import LoweringOptions
from tests.lowering.tir_to_llvm.conftest import parse
from tir_dialect.target import Target

COUNT = 1 << 18
TEXT = f"""
tir.prim_func @f(%X: !tir.buffer<[{COUNT}], f32>, %Y: !tir.buffer<[{COUNT}], bf16>) {{
  %rows = arith.constant {COUNT // 16} : index
  %lanes = arith.constant 16 : index
  tir.for (%j) in (%rows) {{
    tir.for vectorized (%i) in (%lanes) {{
      %first = arith.muli %j, %lanes : index
      %k = arith.addi %first, %i : index
      %x = tir.load %X[%k]
      %y = arith.truncf %x : f32 to bf16
      tir.store %y, %Y[%k]
    }}
  }}
}}"""


def numbers(kind: str) -> np.ndarray:
    """Beside each halfway point, where registers hold subnormal numbers or none, or any bits."""
    halfway = (np.arange(1 << 16, dtype=np.uint32) << 16) + 0x8000
    near = np.concatenate([halfway - 1, halfway, halfway + 1, halfway - 0x8000])
    if kind == "any":
        near = np.random.default_rng(0).integers(0, 1 << 32, COUNT, dtype=np.uint32)
    if kind == "shuffled":
        near = np.random.default_rng(0).permutation(near)
    return near.view(np.float32)


@pytest.mark.parametrize("kind", ["in order", "shuffled", "any"])
def test_all_halfway_points(kind: str, both) -> None:
    native, reference = both(TEXT, [numbers(kind), np.zeros(COUNT, ml_dtypes.bfloat16)], {})
    got, expected = (each[1].view(np.uint16) for each in (native, reference))
    is_nan = np.isnan(numbers(kind))
    np.testing.assert_array_equal(got[~is_nan], expected[~is_nan])
    assert np.isnan(got[is_nan].view(ml_dtypes.bfloat16).astype(np.float32)).all()


@pytest.mark.parametrize(("machine", "has"), [("znver4", True), ("x86-64-v4", False), ("x86-64-v3", False)])
def test_instruction(machine: str, has: bool) -> None:
    """Where there is one; integers only for registers with subnormal numbers."""
    text = llvm_text(lower_prim_funcs(list(parse(TEXT).ops), LoweringOptions.of(Target.parse(machine))))
    assert ("cvtneps2bf16" in text) == has
    assert bool(re.search(r"br i1 .*\n(.*\n)*?.*lshr <16 x i32>", text[text.index("load <16 x float>") :])) == has
