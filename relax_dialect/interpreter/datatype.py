"""Conversion between element types, of values, of bytes, and to and from scaled integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relax_dialect.interpreter.operators import DimValues, computes, computes_in, result_dtype, wide
from relax_dialect.interpreter.runtime_values import Array, Shape
from relax_dialect.ops.datatype import AstypeOp, DequantizeBlocksOp, DequantizeOp, QuantizeOp, ReinterpretOp
from tir_dialect.block_arrays import decode
from tir_dialect.dtypes import from_numpy, numpy_dtype
from tir_dialect.weights import converted


@computes(AstypeOp)
def astype(op: AstypeOp, x: Array) -> Array:
    """Every element converted."""
    return converted(x, op.dtype)


@computes_in(ReinterpretOp)
def reinterpret(dims: DimValues, op: ReinterpretOp, x: Array, shape: Shape) -> Sequence[Array]:
    """Bytes, as NumPy sees them."""
    dtype = x.dtype if op.dtype is None else numpy_dtype(op.dtype)
    start, sizes = dims(op.offset), tuple(shape)
    found = np.ascontiguousarray(x).reshape(-1).view(np.uint8)[start : start + math.prod(sizes) * dtype.itemsize]
    return (((found != 0) if dtype == np.bool_ else found.view(dtype)).reshape(sizes),)


def _parameter(parameter: Array, axis: int, rank: int) -> Array:
    """A scale or zero point that broadcasts with the data."""
    if parameter.ndim == 0:
        return wide(parameter)
    shape = [1] * rank
    shape[axis] = parameter.size
    return wide(parameter).reshape(shape)


def limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The least and the greatest number of an integer dtype that `f64` holds too."""
    info = np.iinfo(dtype.type)
    greatest = float(info.max)
    return float(info.min), greatest if int(greatest) <= info.max else float(np.nextafter(greatest, 0))


@computes(QuantizeOp)
def quantize(op: QuantizeOp, x: Array, scale: Array, zero_point: Array) -> Array:
    """Rounded to even, moved by the zero point, clipped."""
    axis, dtype = op.axis.value.data, result_dtype(op, x)
    positions = np.round(wide(x) / _parameter(scale, axis, x.ndim)).astype(np.float64)
    low, high = limits(dtype)
    return converted(np.clip(positions + _parameter(zero_point, axis, x.ndim), low, high), from_numpy(dtype))


@computes(DequantizeOp)
def dequantize(op: DequantizeOp, x: Array, scale: Array, zero_point: Array) -> Array:
    """The distance from the zero point, scaled; integers are subtracted in `i64`."""
    axis, dtype = op.axis.value.data, result_dtype(op, x)
    work = wide(np.empty(0, dtype)).dtype
    zero = _parameter(zero_point, axis, x.ndim)
    distance = x.astype(np.int64) - zero.astype(np.int64) if zero.dtype.kind in "iu" else x.astype(work) - zero
    return (distance.astype(work) * _parameter(scale, axis, x.ndim).astype(work)).astype(dtype)


@computes(DequantizeBlocksOp)
def dequantize_blocks(op: DequantizeBlocksOp, packed: Array) -> Array:
    """The numbers, decoded in `f32`."""
    return converted(decode(packed, op.block_format), from_numpy(result_dtype(op, packed)))
