"""Tensors made from a shape, a rule or a seed; and conversion between element types."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

from xdsl.ir import Attribute, SSAValue

from lowering.relax_to_tir.elementwise import is_float_expr, wide_dtype, widen
from lowering.relax_to_tir.kernel import Kernel, axis_of, legalizes, ravel, sizes, unravel
from relax_dialect.formulas import range_length
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
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.block_expressions import decoded
from tir_dialect.dims import Dim, maximum
from tir_dialect.dtypes import byte_size, is_bool
from tir_dialect.te.coerce import integer_range


@legalizes(FullOp)
def full(kernel: Kernel, op: FullOp) -> te.Tensor:
    """One value everywhere."""
    return _fill(kernel, op.result, op.value)


@legalizes(FullLikeOp)
def full_like(kernel: Kernel, op: FullLikeOp) -> te.Tensor:
    """One value everywhere."""
    return _fill(kernel, op.result, op.value)


def _fill(kernel: Kernel, result: SSAValue, value: SSAValue) -> te.Tensor:
    dtype = str(kernel.dtype(result))
    scalar = kernel.tensor(value)[()] if isinstance(value.type, TensorType) else kernel.scalar(value)
    return te.compute(kernel.shape(result), lambda *i: te.cast(scalar, dtype), name="full")


@legalizes(ZerosOp, OnesOp, ZerosLikeOp, OnesLikeOp)
def filled(kernel: Kernel, op: FilledOp | FilledLikeOp) -> te.Tensor:
    """The op's constant everywhere."""
    value = te.const(op.VALUE, str(kernel.dtype(op.result)))
    return te.compute(kernel.shape(op.result), lambda *i: value, name="full")


@sizes(ArangeOp)
def arange_length(kernel: Kernel, op: ArangeOp) -> te.Tensor:
    """How many numbers there are. A step of 0 gives a size that no shape has."""
    start, stop, step = (exact(kernel.scalar(operand)) for operand in op.operands)
    length = range_length(start, stop, step)
    return te.compute((1,), lambda *i: length, name="arange_length")


def exact(x: te.Expr) -> te.Expr:
    """A number in the widest dtype of its kind."""
    return te.cast(x, "f64" if is_float_expr(x) else "i64")


@legalizes(ArangeOp)
def arange(kernel: Kernel, op: ArangeOp) -> te.Tensor:
    """`start + i * step`."""
    start, step = exact(kernel.scalar(op.start)), exact(kernel.scalar(op.step))
    dtype = str(kernel.dtype(op.result))
    return te.compute(
        kernel.shape(op.result), lambda *i: te.cast(start + te.cast(i[0], start.dtype) * step, dtype), name="arange"
    )


@legalizes(TrilOp)
def tril(kernel: Kernel, op: TrilOp) -> te.Tensor:
    """The elements on and below a diagonal."""
    return _triangle(kernel, op, lambda row, column: column <= row + op.k.data)


@legalizes(TriuOp)
def triu(kernel: Kernel, op: TriuOp) -> te.Tensor:
    """The elements on and above a diagonal."""
    return _triangle(kernel, op, lambda row, column: column >= row + op.k.data)


def _triangle(kernel: Kernel, op: TriangleOp, keeps: Callable[[te.Expr, te.Expr], te.Expr]) -> te.Tensor:
    x = kernel.tensor(op.x)
    zero = te.const(0, x.dtype)
    return te.compute(x.shape, lambda *i: te.select(keeps(i[-2], i[-1]), x[i], zero), name="triangle")


@legalizes(EyeOp)
def eye(kernel: Kernel, op: EyeOp) -> te.Tensor:
    """Ones on a diagonal."""
    return _diagonal(kernel.shape(op.result), op.k.value.data, kernel.dtype(op.result))


@legalizes(EyeLikeOp)
def eye_like(kernel: Kernel, op: EyeLikeOp) -> te.Tensor:
    """Ones on a diagonal."""
    return _diagonal(kernel.shape(op.result), op.k.value.data, kernel.dtype(op.result))


def _diagonal(shape: Sequence[Dim], k: int, dtype: Attribute) -> te.Tensor:
    one, zero = (te.const(value, str(dtype)) for value in (1, 0))
    return te.compute(shape, lambda *i: te.select(i[1] == i[0] + k, one, zero), name="eye")


@legalizes(CosineWindowOp)
def cosine_window(kernel: Kernel, op: CosineWindowOp) -> te.Tensor:
    """The sum of cosines."""
    shape, dtype = kernel.shape(op.result), str(kernel.dtype(op.result))
    end = maximum(shape[0] if op.periodic is not None else shape[0] - 1, 1)

    def element(*i: te.Expr) -> te.Expr:
        angle = te.cast(i[0], "f64") * (2 * math.pi) / te.cast(te.cast(end, "index"), "f64")
        total = te.const(0.0, "f64")
        for k, coefficient in enumerate(op.coefficients.get_values()):
            total = total + te.cos(angle * k) * ((-1) ** k * coefficient)
        return te.cast(total, dtype)

    return te.compute(shape, element, name="cosine_window")


WordContraction = tuple[te.Expr, te.Expr, te.Expr, te.Expr]


@legalizes(RandomUniformOp)
def uniform(kernel: Kernel, op: RandomUniformOp) -> te.Tensor:
    """`low + fraction * (high - low)`."""
    low, high = op.low.value.data, op.high.value.data

    def element(random: WordContraction, dtype: str) -> te.Expr:
        if dtype == "f64":
            part = te.cast(fraction(random[0], random[1]), dtype) * 2.0**-53
        else:
            part = te.cast(random[0] >> 8, dtype) * 2.0**-24
        return part * te.const(high - low, dtype) + te.const(low, dtype)

    return _by_index(kernel, op, element)


@legalizes(RandomNormalOp)
def normal(kernel: Kernel, op: RandomNormalOp) -> te.Tensor:
    """A point of the plane by its distance and angle, of which one coordinate is taken."""
    mean, scale = op.mean.value.data, op.scale.value.data

    def element(random: WordContraction, dtype: str) -> te.Expr:
        if dtype == "f64":
            part = te.cast(fraction(random[0], random[1]) + 1, dtype) * 2.0**-53
            turn = te.cast(fraction(random[2], random[3]), dtype) * 2.0**-53
        else:
            part, turn = te.cast(random[0] + 1, dtype) * 2.0**-32, te.cast(random[1] >> 8, dtype) * 2.0**-24
        distance = te.sqrt(te.log(part) * -2.0)
        return distance * te.cos(turn * (2 * math.pi)) * te.const(scale, dtype) + te.const(mean, dtype)

    return _by_index(kernel, op, element)


def _by_index(kernel: Kernel, op: RandomOp, element: Callable[[WordContraction, str], te.Expr]) -> te.Tensor:
    shape, dtype = kernel.shape(op.result), str(kernel.dtype(op.result))
    seed, stream = kernel.scalar(op.seed), op.stream.value.data

    def value(*i: te.Expr) -> te.Expr:
        random = words(te.cast(seed, "ui64"), stream, _linear_index(i, shape))
        return te.cast(element(random, wide_dtype(dtype)), dtype)

    return te.compute(shape, value, name="random")


def _linear_index(indices: Sequence[te.Expr], shape: Sequence[Dim]) -> te.Expr:
    """The number of an element in row-major order."""
    sizes = [te.cast(te.cast(dim, "index"), "i64") for dim in shape]
    steps = zip(indices, sizes, strict=True)
    position = reduce(lambda before, step: before * step[1] + te.cast(step[0], "i64"), steps, te.const(0, "i64"))
    return te.cast(position, "ui64")


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
