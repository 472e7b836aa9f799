"""Random numbers: each element by its position in row-major order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

from lowering.relax_to_tir.kernel import Kernel, legalizes
from lowering.relax_to_tir.scalars import wide_dtype
from relax_dialect.ops.random import RandomNormalOp, RandomOp, RandomUniformOp, fraction, words
from tir_dialect import te
from tir_dialect.dims import Dim

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
