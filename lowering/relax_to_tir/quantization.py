"""Conversion between floating-point numbers and scaled integers, one by one and in blocks."""

from __future__ import annotations

import math

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.indices import axis_of
from lowering.relax_to_tir.kernel import Kernel
from lowering.relax_to_tir.scalars import is_float_expr, widen
from relax_dialect.ops.quantization import DequantizeBlocksOp, DequantizeOp, QuantizeOp
from tir_dialect import te
from tir_dialect.block_expressions import decoded
from tir_dialect.te.coerce import integer_range


def _parameter(parameter: te.Tensor, i: tuple[te.Expr, ...], axis: int, x: te.Tensor) -> te.Expr:
    """The scale or zero point for an element of the data."""
    if parameter.ndim == 0:
        return parameter[()]
    extent = parameter.shape[0]
    return parameter[i[axis] if extent is x.shape[axis] else te.minimum(i[axis], extent - 1)]


@legalizes(QuantizeOp)
def quantize(kernel: Kernel, op: QuantizeOp) -> te.Tensor:
    """Rounded to even, moved by the zero point, clipped."""
    x, scale, zero = (kernel.tensor(operand) for operand in op.operands)
    axis, dtype = axis_of(op.axis, max(x.ndim, 1)), kernel.dtype(op.result)
    low, high = limits(*integer_range(te.const(0, str(dtype)).dtype))

    def element(*i: te.Expr) -> te.Expr:
        value, step = widen(x[i]), widen(_parameter(scale, i, axis, x))
        wide = "f64" if "f64" in (str(value.dtype), str(step.dtype)) else "f32"
        position = te.cast(te.round(te.cast(value, wide) / te.cast(step, wide)), "f64")
        moved = position + te.cast(_parameter(zero, i, axis, x), "f64")
        return te.cast(te.minimum(te.maximum(moved, low), high), str(dtype))

    return te.compute(x.shape, element, name="quantize")


def limits(least: int, greatest: int) -> tuple[float, float]:
    """The least and the greatest number of an integer dtype that `f64` holds too."""
    high = float(greatest)
    return float(least), high if int(high) <= greatest else math.nextafter(high, 0)


@legalizes(DequantizeOp)
def dequantize(kernel: Kernel, op: DequantizeOp) -> te.Tensor:
    """The distance from the zero point, scaled; integers are subtracted in `i64`."""
    x, scale, zero = (kernel.tensor(operand) for operand in op.operands)
    axis, dtype = axis_of(op.axis, max(x.ndim, 1)), str(kernel.dtype(op.result))
    wide = widen(te.const(0.0, dtype)).dtype

    def element(*i: te.Expr) -> te.Expr:
        origin = _parameter(zero, i, axis, x)
        kind = wide if is_float_expr(origin) else te.const(0, "i64").dtype
        distance = te.cast(te.cast(x[i], kind) - te.cast(origin, kind), wide)
        return te.cast(distance * te.cast(_parameter(scale, i, axis, x), wide), dtype)

    return te.compute(x.shape, element, name="dequantize")


@legalizes(DequantizeBlocksOp)
def dequantize_blocks(kernel: Kernel, op: DequantizeBlocksOp) -> te.Tensor:
    """Every element by the formula of the format."""
    return decoded(kernel.tensor(op.packed), kernel.shape(op.result), op.block_format, str(kernel.dtype(op.result)))
