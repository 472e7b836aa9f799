"""The kernels of programs of one operator."""

from __future__ import annotations

from xdsl.context import Context

from lowering.legalize.legalize_ops import LegalizeOpsPass
from lowering.parsing import parse_module
from tir_dialect.ops.function import PrimFuncOp


def kernel_of_program(text: str) -> PrimFuncOp:
    """The kernel of a module that has one after `legalize-ops`; no module holds it."""
    module = parse_module(text)
    LegalizeOpsPass().apply(Context(), module)
    (func,) = (op for op in module.ops if isinstance(op, PrimFuncOp))
    func.detach()
    func.sym_visibility = None
    return func
