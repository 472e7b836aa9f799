"""Odd functions of a product with a positive constant have the sign of the other factor."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE
from lowering.llvm.llvm_text import llvm_text
from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.tir_to_llvm.emitter import LoweringOptions
from tests.lowering.tir_to_llvm.conftest import call
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

PRODUCT = """
tir.prim_func @f(%X: !tir.buffer<[16], f32>, %Y: !tir.buffer<[16], f32>) {
  %n = arith.constant 16 : index
  %c = arith.constant FACTOR : f32
  tir.for KIND (%i) in (%n) {
    %x = tir.load %X[%i]
    %u = arith.mulf %x, %c : f32
    %y = math.tanh %u : f32
    tir.store %y, %Y[%i]
  }
}"""


@pytest.mark.parametrize("kind", ["", "vectorized"])
@pytest.mark.parametrize(("factor", "source"), [("0.5", "load"), ("-0.5", "fmul"), ("0.0", "fmul")])
def test_the_sign_of_a_product(tir: Callable[[str], ModuleOp], kind: str, factor: str, source: str) -> None:
    module = tir(PRODUCT.replace("FACTOR", factor).replace("KIND", kind))
    (func,) = (op for op in module.ops if isinstance(op, PrimFuncOp))
    target = Target.parse("x86-64-v3 cores=1")
    text = llvm_text(lower_prim_funcs([func.clone()], LoweringOptions.of(target)))
    (sign,) = re.findall(r"@llvm.copysign.*, <?[^>]*>? ?(%\w+)\)", text)
    assert re.search(rf"{sign} = {source}\b", text)

    x, y = np.linspace(-8, 8, 16, dtype="f4"), np.empty(16, "f4")
    assert call(compile_prim_funcs(module, cache=NO_CACHE), func, [x, y], {}) == 0
    np.testing.assert_allclose(y, np.tanh(x * np.float32(factor)), rtol=1e-6)
