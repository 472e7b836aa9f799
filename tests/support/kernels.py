"""Kernels of programs of one operator, and one that is written out."""

from __future__ import annotations

from xdsl.context import Context

from lowering.parsing import parse_module
from lowering.relax_to_tir.legalize_ops import LegalizeOpsPass
from tir_dialect.ops.function import PrimFuncOp

MATMUL = """
tir.prim_func @matmul[%m, %n, %k](
  %A: !tir.buffer<[m, n], f32>, %B: !tir.buffer<[n, k], f32>, %C: !tir.buffer<[m, k], f32>
) {
  tir.for (%i, %j, %r) in (%m, %k, %n) {
    tir.block "matmul" (%vi = spatial %i in %m, %vj = spatial %j in %k, %vr = reduce %r in %n) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi, %vj]
      }
      %a = tir.load %A[%vi, %vr]
      %b = tir.load %B[%vr, %vj]
      %c = tir.load %C[%vi, %vj]
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      tir.store %s, %C[%vi, %vj]
    }
  }
}
"""
"""The product of two matrices in plain loops, with three symbolic sizes."""


def kernel_of_program(text: str) -> PrimFuncOp:
    """The kernel of a module that has one after `legalize-ops`; no module holds it."""
    module = parse_module(text)
    LegalizeOpsPass().apply(Context(), module)
    (func,) = (op for op in module.ops if isinstance(op, PrimFuncOp))
    func.detach()
    func.sym_visibility = None
    return func
