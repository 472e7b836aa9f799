"""Padding."""

from __future__ import annotations

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.kernel import Kernel
from lowering.relax_to_tir.scalars import element
from relax_dialect.ops.padding import PadOp
from relax_dialect.padding import filled, surrounded
from tir_dialect import te


@legalizes(PadOp)
def pad(kernel: Kernel, op: PadOp) -> te.Tensor:
    """The element that each position comes from, or the value."""
    x, mode = kernel.tensor(op.x), op.mode.data
    before = op.pad_width.get_values()[::2]
    shape = kernel.shape(op.result)
    if mode != "constant":
        return surrounded(x, shape, before, mode)
    # A constant, by which schedules know what this is.
    return filled(x, shape, before, element(op.pad_value.value.data, x.dtype))
