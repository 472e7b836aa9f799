"""Elements stored several times side by side: no place of an element is computed, rows may come from anywhere."""

import numpy as np
import pytest

from lowering.schedule.schedule_cpu import schedule
from tests.lowering.to_llvm.conftest import parse, run_both
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.target import Target
from tir_dialect.types import LoopKind

ROWS = """
tir.prim_func @rows[%m, %n, %k](%X: !tir.buffer<[m, n], f32>, %I: !tir.buffer<[k], i64>,
                                %Y: !tir.buffer<[k, 2 * n], f32>) {
  %c2 = arith.constant 2 : index
  tir.for (%i, %j, %l) in (%k, %n, %c2) {
    tir.block "twice" (%vi = spatial %i in %k, %vj = spatial %j in %n, %vl = spatial %l in %c2) {
      %row = tir.load %I[%vi]
      %r = arith.index_cast %row : i64 to index
      %x = tir.load %X[%r, %vj]
      %two = arith.constant 2 : index
      %a = arith.muli %vj, %two : index
      %b = arith.addi %a, %vl : index
      tir.store %x, %Y[%vi, %b]
    }
  }
}"""
COLUMNS = ROWS.replace("%X[%r, %vj]", "%X[%vi, %r]").replace("%I[%vi]", "%I[%vj]").replace("<[k], i64>", "<[n], i64>")


@pytest.mark.parametrize("text", [ROWS, COLUMNS])
@pytest.mark.parametrize(("m", "n", "k"), [(3, 1, 3), (4, 16, 4), (5, 37, 5), (2, 0, 2)])
def test_values(text: str, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(0)
    length = k if text is ROWS else n
    indices = rng.integers(0, m if text is ROWS else max(n, 1), length)
    arguments = [rng.standard_normal((m, n), np.float32), indices, np.zeros((k, 2 * n), np.float32)]
    native, interpreted = run_both(text, arguments, {"m": m, "n": n, "k": k})
    np.testing.assert_array_equal(native[2], interpreted[2])


def test_rows_are_read_in_vectors() -> None:
    (func,) = parse(ROWS).ops
    schedule(func, Target.parse("x86-64-v4"))
    assert any(isinstance(op, LoadOp) and op.lanes == 16 for op in func.walk())
    (func,) = parse(COLUMNS).ops
    schedule(func, Target.parse("x86-64-v4"))
    assert not any(isinstance(op, LoadOp) and op.lanes for op in func.walk()), "neighbours come from anywhere"
    assert any(isinstance(op, ForOp) and op.kind.data is LoopKind.VECTORIZED for op in func.walk())
