"""Splitting of long reductions, so that L1 holds the weights of one part while several tiles use them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.conv.shape import Shape
from lowering.kernels.cpu.conv.sums import Blocks
from lowering.kernels.cpu.gemm.problem import Gemm as Product
from tir_dialect.dims import Dim, constant
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size

SHARE = 0.3
"""Of the first-level cache for the weights of a part; there are data of two tiles too, and sums pass through."""
SHARE_OF_LONG_PARTS = 0.5
"""The same, where a tile has so many sums that they take long to come and go."""
MANY_REGISTERS = 32


@dataclass(frozen=True)
class ReductionParts:
    """How the outermost reduced axis is split, and how many tiles go through a part before the next."""

    steps: int
    count: int
    tiles: int


@dataclass(frozen=True)
class ReductionPart:
    """A part: its first step along the outermost axis, and its length; the first part of all starts at zero."""

    start: SSAValue
    steps: SSAValue
    is_first: SSAValue
    most: int
    """Steps of any part."""


def find_reduction_parts(product: Product, blocks: Blocks, shape: Shape, lines: Dim) -> ReductionParts | None:
    """The parts of a reduction; `None` if its weights are few, or no more than one tile uses them."""
    what, target = product.what, product.kernel.target
    sizes = [product_of(what.stage.extents[axis] for axis in axes).constant_value for axes in blocks.reduced]
    if len(sizes) < 2 or any(size is None for size in sizes):
        return None
    outer, *inner = (size or 0 for size in sizes)
    row = shape.blocks * blocks.vectors * product.tiles.lanes * byte_size(what.element)
    weights = row * (product_of(map(constant, inner)).constant_value or 0)
    tiles = target.l1_bytes * 3 // 10 // (row * shape.pixels)
    known = lines.constant_value
    if outer * weights <= target.l1_bytes // 2 or tiles < 2 or known == 1:
        return None
    share = SHARE if target.vector_registers < MANY_REGISTERS else SHARE_OF_LONG_PARTS
    count = -(-outer // max(1, int(target.l1_bytes * share) // weights))
    return ReductionParts(-(-outer // count), count, tiles if known is None else min(tiles, known))
