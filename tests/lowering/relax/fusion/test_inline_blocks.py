"""Producers are put where their elements are read, unless more than they would go with their loops."""

from __future__ import annotations

import numpy as np
import pytest

from lowering.parsing import parse_module
from lowering.relax.fusion.inline_blocks import inline_buffers
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp

TWICE = """
tir.block "twice" (%v = spatial %i in %n) {
  %x = tir.load %X[%v]
  %t = arith.addf %x, %x : f32
  tir.store %t, %T[%v]
}
"""
SQUARE = """
tir.block "square" (%w = spatial %i in %n) {
  %x = tir.load %X[%w]
  %u = arith.mulf %x, %x : f32
  tir.store %u, %U[%w]
}
"""


def _func(*loops: str) -> PrimFuncOp:
    """A kernel with these loops over `i`, and one that negates what is in `T`."""
    bodies = "".join(f"tir.for (%i) in (%n) {{ {body} }}\n" for body in loops)
    module = parse_module(f"""
    tir.prim_func @f[%n](%X: !tir.buffer<[n], f32>, %U: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {{
      %T = tir.alloc_buffer : !tir.buffer<[n], f32>
      {bodies}
      tir.for (%i) in (%n) {{
        tir.block "negative" (%v = spatial %i in %n) {{
          %t = tir.load %T[%v]
          %y = arith.negf %t : f32
          tir.store %y, %Y[%v]
        }}
      }}
    }}""")
    (func,) = (op for op in module.ops if isinstance(op, PrimFuncOp))
    return func


@pytest.mark.parametrize(
    ("loops", "stays"),
    [((TWICE, SQUARE), False), ((TWICE + SQUARE,), True), ((SQUARE + TWICE,), True)],
    ids=["own loop", "first in a loop", "last in a loop"],
)
def test_other_blocks_of_a_loop_stay(loops: tuple[str, ...], stays: bool) -> None:
    func = _func(*loops)
    (memory,) = (op for op in func.walk() if isinstance(op, AllocBufferOp))
    inline_buffers(func, [memory.buffer])
    assert any(isinstance(op, AllocBufferOp) for op in func.walk()) is stays
    x, u, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32), np.zeros(5, np.float32)
    run_prim_func(func, [x, u, y])
    np.testing.assert_array_equal(u, x * x)
    np.testing.assert_array_equal(y, -2 * x)
