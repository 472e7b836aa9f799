"""Constant padding: rows are copied by vectors of all widths, for all dtypes and padded axes."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.parsing import parse_module
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.programs import run_pipeline
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

PAD = """
relax.func @main[%m, %n](%x: !relax.tensor<[3, m, n], DTYPE>) {
  %0 = relax.nn.pad %x pad_width = [0, 0, 1, 1, 2, 1] pad_value = 1.0
  relax.return %0
}
"""


def kernel(dtype: str) -> PrimFuncOp:
    module = parse_module(PAD.replace("DTYPE", dtype))
    run_pipeline(module, "legalize-ops,fuse-ops,fuse-tir")
    (func,) = (op for op in module.ops if isinstance(op, PrimFuncOp))
    return func.clone()


@pytest.mark.parametrize(("dtype", "lanes"), [("i8", 32), ("i16", 16), ("f16", 16), ("f32", 8), ("f64", 4)])
def test_rows_are_vectors_without_conditions(dtype: str, lanes: int) -> None:
    func = kernel(dtype)
    schedule(func, Target.parse("x86-64-v3 cores=1"))
    assert f"vector<{lanes}x{dtype}>" in str(func)
    assert "vectorized" not in str(func)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [0, 1, 7, 8, 31, 32, 70])
def test_nothing_outside_is_touched(n: int) -> None:
    func = kernel("i8")
    x = np.arange(3 * 2 * n, dtype=np.int8).reshape(3, 2, n)
    expected = np.pad(x, ((0, 0), (1, 1), (2, 1)), constant_values=1)
    kernels = compile_prim_funcs(ModuleOp([func]))
    for at_end in (True, False):
        guarded = [Guarded(array, at_end) for array in (x, np.zeros_like(expected))]
        assert call(kernels, func, [each.array for each in guarded], {"m": 2, "n": n}) == 0
        np.testing.assert_array_equal(guarded[-1].array, expected)
        for each in guarded:
            each.release()
