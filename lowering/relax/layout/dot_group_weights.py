"""Panels of dot-product groups, `[ceildiv(n, width), ceildiv(k, parts), width, parts]`: columns for dot-product
instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue

from lowering.kernels.cpu.gemm.dot_groups.contraction import DotGroupContraction
from tir_dialect.ops.memory import LoadOp
from vm_dialect.tensors import aligned_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray


def is_transposed(groups: DotGroupContraction, load: LoadOp) -> bool | None:
    """Whether columns come before the axes of the sum, in a buffer that has just these, or after; `None` if neither.

    Dimensions of one element do not count.
    """
    contraction, shape = groups.contraction, tuple(load.buffer_type.shape)
    pairs = zip(contraction.stage.accesses[load], shape, strict=True)
    several = [(index, dim) for index, dim in pairs if dim.constant_value != 1]
    indices, dims = [index for index, _ in several], tuple(dim for _, dim in several)
    if (
        len(contraction.column) != 1
        or len(indices) != len(groups.reduced) + 1
        or not all(dim.is_constant for dim in dims)
    ):
        return None
    for transposed, order in (
        (True, (*contraction.column, *groups.reduced)),
        (False, (*groups.reduced, *contraction.column)),
    ):
        along = all(index.is_axis(axis) for index, axis in zip(indices, order, strict=True))
        if along and dims == tuple(contraction.stage.extents[axis] for axis in order):
            return transposed
    return None


@dataclass
class Indices:
    """Emits the arithmetic of indices."""

    emitted: list[Operation]

    def emit(self, op: Operation) -> SSAValue:
        """The result of an op."""
        self.emitted.append(op)
        return op.results[0]

    def number(self, value: int) -> SSAValue:
        """A constant."""
        return self.emit(arith.ConstantOp(IntegerAttr(value, IndexType())))

    def split(self, value: SSAValue, divisor: int) -> tuple[SSAValue, SSAValue]:
        """Quotient and remainder."""
        number = self.number(divisor)
        return self.emit(arith.DivUIOp(value, number)), self.emit(arith.RemUIOp(value, number))

    def joined(self, indices: Sequence[SSAValue], sizes: Sequence[int]) -> SSAValue:
        """Several indices as one, the last changing fastest."""
        total = indices[0]
        for index, size in zip(indices[1:], sizes[1:], strict=True):
            total = self.emit(arith.AddiOp(self.emit(arith.MuliOp(total, self.number(size))), index))
        return total


def word_shape(sizes: Sequence[int], transposed: bool, width: int, parts: int) -> tuple[int, int, int, int]:
    """The shape of the panels of columns of a shape."""
    n, *along = sizes if transposed else (sizes[-1], *sizes[:-1])
    return -(-n // width), -(-prod(along) // parts), width, parts


def group_indices(
    indices: Indices, element: Sequence[SSAValue], sizes: Sequence[int], transposed: bool, width: int, parts: int
) -> list[SSAValue]:
    """Where the element with some indices, of columns of this shape, is in the panels."""
    given = list(element)
    column, along = (given[0], given[1:]) if transposed else (given[-1], given[:-1])
    panel, within = indices.split(column, width)
    group, member = indices.split(indices.joined(along, sizes[1:] if transposed else sizes[:-1]), parts)
    return [panel, group, within, member]


def pack_words(array: NDArray[Any], transposed: bool, width: int, parts: int) -> NDArray[Any]:
    """A copy in panels, aligned to a cache line; zeros past the last column and the end of a sum."""
    matrix = array.reshape(array.shape[0], -1).T if transposed else array.reshape(-1, array.shape[-1])
    panels, depth, _, _ = shape = word_shape(array.shape, transposed, width, parts)
    padded = np.zeros((depth * parts, panels * width), array.dtype)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    packed = aligned_bytes(padded.nbytes).view(array.dtype).reshape(shape)
    packed[...] = padded.reshape(depth, parts, panels, width).transpose(2, 0, 3, 1)
    return packed
