"""Tensors made from a shape, a rule or a seed, or from another tensor by conversion of its elements.

Windows of signals are computed in `f64`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from relax_dialect.interpreter.operators import DimValues, computes, computes_in, result_dtype, wide
from relax_dialect.interpreter.runtime_values import Array, Shape
from relax_dialect.ops.creation import (
    ArangeOp,
    CosineWindowOp,
    EyeLikeOp,
    EyeOp,
    FilledLikeOp,
    FilledOp,
    FullLikeOp,
    FullOp,
    OnesLikeOp,
    OnesOp,
    RandomNormalOp,
    RandomOp,
    RandomUniformOp,
    TriangleOp,
    TrilOp,
    TriuOp,
    ZerosLikeOp,
    ZerosOp,
    fraction,
    words,
)
from relax_dialect.ops.datatype import AstypeOp, DequantizeBlocksOp, DequantizeOp, QuantizeOp, ReinterpretOp
from relax_dialect.struct_info.types import PrimType
from tir_dialect.block_arrays import decode
from tir_dialect.dtypes import from_numpy, numpy_dtype
from tir_dialect.weights import converted


@computes(FullOp)
def full(op: FullOp, shape: Shape, value: Array | float) -> Array:
    """One value everywhere."""
    found = _scalar(value, op.value.type)
    return np.full(shape, converted(found, from_numpy(result_dtype(op, found))))


@computes(FullLikeOp)
def full_like(op: FullLikeOp, x: Array, value: Array | float) -> Array:
    """One value everywhere."""
    return np.full(x.shape, converted(_scalar(value, op.value.type), from_numpy(result_dtype(op, x))))


def _scalar(value: Array | float, info: Attribute) -> Array:
    """A scalar tensor, or a number as a prim value of its type holds it."""
    return np.asarray(value, numpy_dtype(info.dtype) if isinstance(info, PrimType) else None)


@computes(ZerosOp, OnesOp)
def filled(op: FilledOp, shape: Shape) -> Array:
    """The op's constant everywhere."""
    return np.full(shape, op.VALUE, result_dtype(op, np.empty(0)))


@computes(ZerosLikeOp, OnesLikeOp)
def filled_like(op: FilledLikeOp, x: Array) -> Array:
    """The op's constant everywhere."""
    return np.full(x.shape, op.VALUE, result_dtype(op, x))


@computes(ArangeOp)
def arange(op: ArangeOp, start: float, stop: float, step: float) -> Array:
    """`start + i * step`, in `i64` or `f64`, converted at the end; `ValueError` for a step of 0."""
    if step == 0:
        raise ValueError("'relax.arange' expected a step that is not 0")
    first, last, each = (
        _scalar(value, operand.type).item() for value, operand in zip((start, stop, step), op.operands, strict=True)
    )
    length = -((first - last) // each) if isinstance(each, int) else np.ceil((last - first) / each)
    return converted(first + np.arange(max(int(length), 0)) * each, from_numpy(result_dtype(op, np.asarray(first))))


@computes_in(TrilOp, TriuOp)
def triangle(dims: DimValues, op: TriangleOp, x: Array) -> Sequence[Array]:
    """One side of a diagonal."""
    return (getattr(np, op.NUMPY_NAME)(x, dims(op.k)),)


@computes_in(EyeOp)
def eye(dims: DimValues, op: EyeOp) -> Sequence[Array]:
    """Ones on a diagonal."""
    return (np.eye(dims(op.rows), dims(op.columns), op.k.value.data, result_dtype(op, np.empty(0))),)


@computes(EyeLikeOp)
def eye_like(op: EyeLikeOp, x: Array) -> Array:
    """Ones on a diagonal."""
    rows, columns = x.shape
    return np.eye(rows, columns, op.k.value.data, result_dtype(op, x))


@computes_in(CosineWindowOp)
def cosine_window(dims: DimValues, op: CosineWindowOp) -> list[Array]:
    """The sum of cosines."""
    length = dims(op.length)
    end = length if op.periodic is not None else max(length - 1, 1)
    angle = 2 * np.pi * np.arange(length) / max(end, 1)
    total = np.zeros(length)
    for k, coefficient in enumerate(op.coefficients.get_values()):
        total += (-1) ** k * coefficient * np.cos(k * angle)
    return [total.astype(numpy_dtype(op.dtype))]


WordContraction = tuple[Any, Any, Any, Any]


@computes(RandomUniformOp)
def uniform(op: RandomUniformOp, seed: int, shape: Shape) -> Array:
    """`low + fraction * (high - low)`."""
    low, high = op.low.value.data, op.high.value.data
    random, wide = _words(op, seed, shape), _wide(op)
    if wide is np.float64:
        part = fraction(random[0], random[1]).astype(wide) * wide(2.0**-53)
    else:
        part = (random[0] >> 8).astype(wide) * wide(2.0**-24)
    return (part * wide(high - low) + wide(low)).astype(numpy_dtype(op.dtype))


@computes(RandomNormalOp)
def normal(op: RandomNormalOp, seed: int, shape: Shape) -> Array:
    """A point of the plane by its distance and angle, of which one coordinate is taken."""
    mean, scale = op.mean.value.data, op.scale.value.data
    random, wide = _words(op, seed, shape), _wide(op)
    if wide is np.float64:
        part = (fraction(random[0], random[1]) + 1).astype(wide) * wide(2.0**-53)
        turn = fraction(random[2], random[3]).astype(wide) * wide(2.0**-53)
    else:
        part, turn = (random[0] + 1).astype(wide) * wide(2.0**-32), (random[1] >> 8).astype(wide) * wide(2.0**-24)
    distance = np.sqrt(np.log(part) * wide(-2.0))
    return (distance * np.cos(turn * wide(2 * math.pi)) * wide(scale) + wide(mean)).astype(numpy_dtype(op.dtype))


def _words(op: RandomOp, seed: int, shape: Shape) -> WordContraction:
    positions = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
    return words(np.asarray(seed, np.int64).view(np.uint64), op.stream.value.data, positions)


def _wide(op: RandomOp) -> type[np.float32 | np.float64]:
    """The type in which elements are computed."""
    return np.float64 if numpy_dtype(op.dtype) == np.float64 else np.float32


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
