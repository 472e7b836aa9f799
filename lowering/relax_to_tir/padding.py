"""Padding."""

from __future__ import annotations

from contextlib import suppress

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.kernel import Kernel
from lowering.relax_to_tir.scalars import number
from relax_dialect.borders import filled, surrounded
from relax_dialect.ops.padding import PadOp
from tir_dialect import te
from tir_dialect.dtypes import is_bool, is_small_float, lookup


@legalizes(PadOp)
def pad(kernel: Kernel, op: PadOp) -> te.Tensor:
    """The element that each place comes from, or the value."""
    x, mode = kernel.tensor(op.x), op.mode.data
    before = op.pad_width.get_values()[::2]
    shape = kernel.shape(op.result)
    if mode != "constant":
        return surrounded(x, shape, before, mode)
    return filled(x, shape, before, _value(op.pad_value.value.data, x))


def _value(value: float, x: te.Tensor) -> te.Expr:
    """The number that is put around the data: a constant, by which schedules know what this is, if it has one."""
    dtype = x.dtype
    if is_bool(dtype):
        return te.const(value != 0, dtype)
    if lookup(dtype).is_float and not is_small_float(dtype):
        return number(value, te.const(0.0, dtype))
    with suppress(ValueError, OverflowError):  # No number of the dtype, or none at all
        if not lookup(dtype).is_float:
            return te.const(int(value), dtype)
    return te.cast(te.const(value, "f64"), dtype)
