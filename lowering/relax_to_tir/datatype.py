"""Conversion between element types, of values, of bytes, and to and from scaled integers."""

from __future__ import annotations

import math
from functools import reduce

from lowering.relax_to_tir.elementwise import is_float_expr, widen
from lowering.relax_to_tir.indices import axis_of, ravel, unravel
from lowering.relax_to_tir.kernel import Kernel, legalizes
from relax_dialect.ops.datatype import AstypeOp, DequantizeBlocksOp, DequantizeOp, QuantizeOp, ReinterpretOp
from tir_dialect import te
from tir_dialect.block_expressions import decoded
from tir_dialect.dtypes import byte_size, is_bool
from tir_dialect.te.coerce import integer_range


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
