"""Conversion between element types, of values and of bytes."""

from __future__ import annotations

from functools import reduce

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.indices import ravel, unravel
from lowering.relax_to_tir.kernel import Kernel
from relax_dialect.ops.datatype import AstypeOp, ReinterpretOp
from tir_dialect import te
from tir_dialect.dtypes import byte_size, is_bool


@legalizes(AstypeOp)
def astype(kernel: Kernel, op: AstypeOp) -> te.Tensor:
    """Every element converted."""
    x, dtype = kernel.tensor(op.x), str(kernel.dtype(op.result))
    return te.compute(x.shape, lambda *i: te.cast(x[i], dtype), name="astype")


@legalizes(ReinterpretOp)
def reinterpret(kernel: Kernel, op: ReinterpretOp) -> te.Tensor:
    """Bits of one element, or of several side by side."""
    x, shape, dtype = kernel.tensor(op.x), kernel.shape(op.result), kernel.dtype(op.result)
    old, new = byte_size(kernel.dtype(op.x)), byte_size(dtype)

    def bits(*i: te.Expr) -> te.Expr:
        position = ravel(i, shape) * new + op.offset.data
        first = te.floordiv(position, old)
        if new > old:
            parts = (te.cast(_bits(x, first + at, old), f"ui{8 * new}") << 8 * old * at for at in range(new // old))
            return reduce(lambda low, high: low | high, parts)
        whole, rest = _bits(x, first, old), te.floormod(position, old) * 8
        return whole if new == old else te.cast(whole >> te.cast(rest, whole.dtype), f"ui{8 * new}")

    def typed(*i: te.Expr) -> te.Expr:
        return bits(*i) != 0 if is_bool(dtype) else te.reinterpret(bits(*i), str(dtype))

    return te.compute(shape, typed, name="reinterpret")


def _bits(x: te.Tensor, position: te.Expr, size: int) -> te.Expr:
    """The element at a position in row-major order as an integer."""
    value = x[unravel(position, x.shape)]
    return te.cast(value, "ui8") if is_bool(x.dtype) else te.reinterpret(value, f"ui{8 * size}")
