"""The structure of a direct convolution on channel-blocked data, and the blocking of its reduction.

The innermost dimension of output and weights is a block of channels, which is one or a few vectors; the data is not
indexed by it. Accumulators of several pixels and blocks stay in registers. Nothing is packed: weights are loaded in
place, and elements of the data are broadcast. Convolutions in `NCHW16c` have this form, and so have matrix products
with small N.

A long reduction is blocked (as by KC in a GEMM), so that L1 holds the weights of a block while several tiles use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.conv.register_tile import RegisterTile
from lowering.kernels.gemm.problem import Gemm
from lowering.kernels.structure.contraction import Factor, is_chain
from lowering.kernels.structure.stages import AffineAccess
from tir_dialect.dims import Dim, constant
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import LoadOp

MAX_VECTORS = 4
"""Vectors in a block at most."""


@dataclass(frozen=True)
class ChannelBlocks:
    """The axes of a direct convolution."""

    lane: int
    """The axis within a block."""
    vectors: int
    """Vectors in a block."""
    pixels: tuple[int, ...]
    """The axes that collapse into one, along which pixels share weights."""
    rows: tuple[int, ...]
    """The other axes that move only the data and the output."""
    reduced: tuple[tuple[int, ...], ...]
    """The reduced axes, collapsed where that is possible; the one with the smallest stride of the weights is last."""


def find_channel_blocks(gemm: Gemm) -> ChannelBlocks | None:
    """The channel blocks of a contraction; `None` if it has none."""
    contraction = gemm.contraction
    size = contraction.stage.extents[contraction.column[-1]].constant_value if len(contraction.column) == 1 else None
    lanes = gemm.tiles.lanes
    if not size or contraction.is_integer or size % lanes or size > MAX_VECTORS * lanes or lanes == 1:
        return None
    if (
        not all(_is_plain(factor) for factor in (contraction.rows, contraction.columns))
        or contraction.columns.stride(contraction.column[0]) != 1
    ):
        return None
    if contraction.columns.panels is not None:  # only the indices in the first panel follow from strides
        return None
    output, weights = contraction.output, contraction.columns.accesses[0]
    pixel = next((axis for axis in contraction.row if output.strides[axis].constant_value == size), None)
    if pixel is None or any(weights.strides[axis].constant_value is None for axis in contraction.reduced):
        return None
    pixels = _joined(gemm, pixel)
    reduced = sorted(contraction.reduced, key=lambda axis: -(weights.strides[axis].constant_value or 0))
    rows = tuple(axis for axis in contraction.row if axis not in pixels)
    return ChannelBlocks(contraction.column[0], size // lanes, pixels, rows, _together(gemm, reduced))


def _together(gemm: Gemm, reduced: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Adjacent reduced axes collapsed into one where neither data nor weights jump between them."""
    contraction, groups = gemm.contraction, list[tuple[int, ...]]()
    for axis in reduced:
        longer = (*groups[-1], axis) if groups else ()
        if longer and is_chain(
            (*contraction.rows.accesses, *contraction.columns.accesses), contraction.stage.extents, longer
        ):
            groups[-1] = longer
        else:
            groups.append((axis,))
    return tuple(groups)


def _is_plain(factor: Factor) -> bool:
    """Whether a factor is a plain load at an affine index."""
    plain = isinstance(factor.value.owner, LoadOp) and factor.value.type == factor.element
    return plain and factor.is_linear


def _joined(gemm: Gemm, pixel: int) -> tuple[int, ...]:
    """The axes that collapse with that of the pixels: neither data nor output jumps between them."""
    contraction, epilogue = gemm.contraction, gemm.epilogue
    count = len(contraction.stage.axes)
    accesses: Iterable[AffineAccess] = [
        *contraction.rows.accesses,
        contraction.output,
        *(step.access(op, count) for step, op in epilogue.accesses),
    ]
    found, accesses = (pixel,), tuple(accesses)
    while True:
        rest = (axis for axis in contraction.row if axis not in found)
        before = next((axis for axis in rest if is_chain(accesses, contraction.stage.extents, (axis, *found))), None)
        if before is None:
            return found
        found = (before, *found)


def load_of(factor: Factor) -> tuple[SSAValue, AffineAccess]:
    """The buffer of a factor that is a plain load, and the access."""
    load = factor.value.owner
    assert isinstance(load, LoadOp)  # `find_channel_blocks` accepts only plain loads
    return load.buffer, factor.accesses[0]


L1_FRACTION = 0.3
"""The part of L1 for the weights of a reduction block. Data of two tiles is there too, and accumulators pass through.
"""
L1_FRACTION_MANY_REGISTERS = 0.5
"""The same for tiles with many accumulators, which take longer to spill and reload."""
MANY_REGISTERS = 32


@dataclass(frozen=True)
class ReductionBlocks:
    """How the outermost reduced axis is blocked, and how many tiles use a block before the next one."""

    steps: int
    count: int
    tiles: int


@dataclass(frozen=True)
class ReductionBlock:
    """A block of the reduction: its number, its first step along the outermost axis, and its length."""

    number: SSAValue
    start: SSAValue
    steps: SSAValue
    most: int
    """Steps of a block at most."""


def find_reduction_blocks(gemm: Gemm, blocks: ChannelBlocks, shape: RegisterTile, rows: Dim) -> ReductionBlocks | None:
    """The blocks of a reduction; `None` if all its weights fit in L1, or only one tile uses them."""
    contraction, target = gemm.contraction, gemm.kernel.target
    sizes = [product_of(contraction.stage.extents[axis] for axis in axes).constant_value for axes in blocks.reduced]
    if len(sizes) < 2 or any(size is None for size in sizes):
        return None
    outer, *inner = (size or 0 for size in sizes)
    row = shape.blocks * blocks.vectors * gemm.tiles.lanes * byte_size(contraction.element)
    weights = row * (product_of(map(constant, inner)).constant_value or 0)
    tiles = target.l1_bytes * 3 // 10 // (row * shape.pixels)
    known = rows.constant_value
    if outer * weights <= target.l1_bytes // 2 or tiles < 2 or known == 1:
        return None
    pixels = L1_FRACTION if target.vector_registers < MANY_REGISTERS else L1_FRACTION_MANY_REGISTERS
    count = -(-outer // max(1, int(target.l1_bytes * pixels) // weights))
    return ReductionBlocks(-(-outer // count), count, tiles if known is None else min(tiles, known))
