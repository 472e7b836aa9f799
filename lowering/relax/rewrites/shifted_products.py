"""Transposed convolutions to few filters: a product for each element of the kernel, and sums of shifted products.

As a convolution such filters would leave lanes of a vector empty, and multiply by zeros where the kernel is no multiple
of the stride. The products of all positions of the data have neither; each index of the result adds a few of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as combinations

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Operation, SSAValue

from lowering.relax.layout.blocking import reshaped, shape_of
from relax_dialect.ops.binary import AddOp
from relax_dialect.ops.convolution import Conv1dOp, Conv2dOp, Conv3dOp, TransposedConvolutionOp
from relax_dialect.ops.indexing import StridedSliceOp
from relax_dialect.ops.manipulation import PermuteDimsOp
from relax_dialect.ops.padding import PadOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant

LEAST_FILTERS = 16
"""With fewer a convolution is bound by memory, and several of them read the data several times."""
ZEROS = 1.4
"""So many times the products that are needed are worth sums without zeros."""
LEAST_CHANNELS = 64
"""With fewer channels of the data, or half as many where there would be zeros, a product takes less than to add it."""
MOST_PARTS = 4
"""Of products that are added, or twice as many where there would be zeros."""

_FORWARD = {1: Conv1dOp, 2: Conv2dOp, 3: Conv3dOp}


@dataclass(frozen=True)
class Shifts:
    """A spatial dimension: elements `t * stride` to `(t + 1) * stride` of the kernel go to positions `step * t`
    later.
    """

    size: int
    """Of the kernel."""
    stride: int
    step: int
    taps: int
    before: int
    """How many positions in front are left out."""
    added: int
    """How many positions there are more than of the data."""

    def part(self, tap: int) -> tuple[int, int, list[int], list[int]]:
        """Where a part of the kernel begins and ends, and what is added around its elements and its positions."""
        begin, end = tap * self.stride, min((tap + 1) * self.stride, self.size)
        low = self.step * tap - self.before
        return begin, end, [0, self.stride - (end - begin)], [low, self.added - low]


def are_few(op: TransposedConvolutionOp, axes: Sequence[Shifts]) -> bool:
    """Whether there are so few filters, and so few parts of the kernel, that sums of products are faster.

    Sums of narrower numbers than `f32` would be rounded more often.
    """
    kinds = [value.type.dtype for value in (op.x, op.result) if isinstance(value.type, TensorType)]
    if op.groups.value.data != 1 or kinds not in ([f32, f32], [f64, f64]):
        return False
    channels, filters = (dim.constant_value or 0 for dim in shape_of(op.w)[:2])
    filled = math.prod(axis.stride * axis.taps for axis in axes)
    factor = 2 if filled >= ZEROS * math.prod(axis.size for axis in axes) else 1
    parts = math.prod(axis.taps for axis in axes)
    fits = 1 < parts <= factor * MOST_PARTS and all(axis.stride > 1 for axis in axes)
    return fits and factor * channels >= LEAST_CHANNELS and 2 * filters < factor * LEAST_FILTERS


def sums_of_shifted(op: TransposedConvolutionOp, axes: Sequence[Shifts], data: Sequence[Dim]) -> list[Operation]:
    """The ops whose last result is `[n, O, *strides, *positions]`; `data` are the dimensions of the data."""
    rank, sizes = op.RANK, [axis.size for axis in axes]
    made = _products(op, sizes, data)
    value, total = made[-1].results[0], list[SSAValue]()
    for taps in combinations(*(range(axis.taps) for axis in axes)):
        parts = [axis.part(tap) for axis, tap in zip(axes, taps, strict=True)]
        begin, end = [part[0] for part in parts], [part[1] for part in parts]
        widths = [0] * 4 + [width for part in parts for width in part[2]] + [each for part in parts for each in part[3]]
        made.append(StridedSliceOp(value, [*range(2, 2 + rank)], begin, end))
        made.append(PadOp(made[-1].results[0], widths))
        if total:
            made.append(AddOp(total[-1], made[-1].results[0]))
        total.append(made[-1].results[0])
    return made


def _products(op: TransposedConvolutionOp, sizes: Sequence[int], data: Sequence[Dim]) -> list[Operation]:
    """The products `[n, O, *sizes, *positions]` of all positions of the data with all elements of the kernel."""
    rank, filters = op.RANK, shape_of(op.w)[1]
    made: list[Operation] = [PermuteDimsOp(op.w, [*range(1, 2 + rank), 0])]
    made += reshaped(made[-1].results[0], [filters * math.prod(sizes), shape_of(op.w)[0], *[constant(1)] * rank])
    made.append(_FORWARD[rank](op.x, made[-1].results[0]))
    split = [data[0], filters, *map(constant, sizes), *data[2:]]
    return [*made, *reshaped(made[-1].results[0], split)]
