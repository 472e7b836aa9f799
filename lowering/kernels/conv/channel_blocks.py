"""The structure of a direct convolution on channel-blocked data, its register tile, and the blocking of its reduction.

The innermost dimension of output and weights is a block of channels, which is one or a few vectors; the data is not
indexed by it. Accumulators of several pixels and blocks stay in registers. Nothing is packed: weights are loaded in
place, and elements of the data are broadcast. Convolutions in `NCHW16c` have this form, and so have matrix products
with small N.

The register tile is MR pixels of some channel blocks. A row is divided into as few tiles as possible, whose MR differ
by one at most. A row of known length has tiles with one or two values of MR. For rows of symbolic length there are
micro-kernels with a few values of MR. Each call takes the cheapest number of tiles by a cost model, and a tile takes
the next larger MR that exists. With many registers there are enough values of MR for any row.

A long reduction is blocked (as by KC in a GEMM), so that L1 holds the weights of a block while several tiles use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf

from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    CONV_FEW_BLOCK_GROUPS,
    CONV_FREE_MR_CHOICES,
    CONV_L1_FRACTION,
    CONV_L1_FRACTION_MANY_REGISTERS,
    CONV_LOAD_FACTOR,
    CONV_MANY_REGISTERS,
    CONV_MAX_BLOCK_VECTORS,
    CONV_MAX_BLOCKS,
    CONV_MIN_ACCUMULATORS,
    CONV_MIN_MR_GAIN,
    CONV_SHORT_ROW_MRS,
    CONV_STALL_CYCLES,
    FMA_LATENCY_CYCLES,
    TYPICAL_IMAGE_SIDES,
)
from lowering.kernels.gemm.problem import Gemm
from lowering.kernels.structure.contraction import Factor, is_chain
from lowering.kernels.structure.stages import AffineAccess
from tir_dialect.dims import Dim, constant
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import LoadOp


@dataclass(frozen=True)
class RegisterTile:
    """A register tile: MR pixels of some channel blocks."""

    mr_choices: tuple[int, ...]
    """The values of MR, in descending order; the last one suits any row."""
    blocks: int

    @property
    def pixels(self) -> int:
        """The largest MR."""
        return self.mr_choices[0]

    def smallest_consecutive_mr(self, mr: int) -> int | None:
        """The smallest MR from which on there is every one up to this; `None` if there is none."""
        low = mr
        while low - 1 in self.mr_choices:
            low -= 1
        return low if 1 < low < mr else None


@cache
def choose_register_tile(
    registers: int, vectors: int, pixels: int | None, blocks: int | None, joined: bool
) -> RegisterTile:
    """The cheapest tile for rows of `pixels` and so many blocks, of `vectors` each.

    A row of unknown length is a side of an image, or all of its pixels if its rows are `joined`.
    """
    lengths = [side**2 if joined else side for side in TYPICAL_IMAGE_SIDES] if pixels is None else [pixels]
    best, least = RegisterTile((1,), 1), inf
    for count in (1,) if blocks is None else range(1, min(blocks, CONV_MAX_BLOCKS) + 1):
        width = count * vectors
        most = max((registers - 1 - width) // width, 1)
        if pixels is None:
            time, mr_choices = _select_mrs(lengths, most, width)
            if registers >= CONV_MANY_REGISTERS and not joined:
                # The greatest usual MR, and all from one with enough accumulators to its double: one or two of
                # these divide any row.
                low = -(-CONV_MIN_ACCUMULATORS // width)
                short = (max(low >> power, 1) for power in range(1, low.bit_length()))
                mr_choices = tuple(sorted({mr_choices[0], *range(low, 2 * low), *short, 1}, reverse=True))
                time = _time(lengths, mr_choices, width)
        else:
            time, mr_choices = min(_even_mrs(pixels, mr, width) for mr in range(most, 0, -1))
        rest = remainder_blocks(registers, blocks, count)
        total = -(-((blocks or 1) - rest) // count) * time
        total += _time(lengths, mr_choices, rest * vectors) if rest else 0
        if total < least:
            best, least = RegisterTile(mr_choices, count), total
    return best


def remainder_blocks(registers: int, blocks: int | None, count: int) -> int:
    """Blocks after the last whole group, if they have tiles of their own, which is so with few groups.

    Otherwise the last group overlaps the one before, and computes some blocks twice.
    """
    has_own = blocks is not None and registers >= CONV_MANY_REGISTERS and count < blocks < CONV_FEW_BLOCK_GROUPS * count
    return blocks % count if has_own and blocks else 0


def _even_mrs(length: int, most: int, width: int) -> tuple[float, tuple[int, ...]]:
    """The time of as few tiles for a row as `most` pixels allow, and their MR: two values if the gain is enough."""
    tiles = max(1, -(-length // most))
    low, more = divmod(length, tiles)
    if not low:
        return inf, (most,)
    one = tiles * step_cycles(most, width) / length if most <= length else inf
    two = (more * step_cycles(low + 1, width) + (tiles - more) * step_cycles(low, width)) / length
    return (two, (low + 1, low) if more else (low,)) if two < (1 - CONV_MIN_MR_GAIN) * one else (one, (most,))


def _select_mrs(lengths: Sequence[int], most: int, width: int) -> tuple[float, tuple[int, ...]]:
    """The time with the best values of MR, and these: those for short rows, and each that gains enough over those
    before.

    Of values that are about as good the greatest is taken, which loads weights least often.
    """
    mr_choices = tuple(mr for mr in CONV_SHORT_ROW_MRS if mr <= most)
    best = _time(lengths, mr_choices, width)
    while len(mr_choices) < most:
        others = {mr: _time(lengths, (mr, *mr_choices), width) for mr in range(most, 0, -1)}
        mr = min(others, key=lambda each: (round(others[each] / len(lengths), 2), -each))
        gain = CONV_MIN_MR_GAIN if len(mr_choices) >= CONV_FREE_MR_CHOICES else 0
        if others[mr] >= (1 - gain) * best:
            break
        mr_choices, best = (mr, *mr_choices), others[mr]
    return best, tuple(sorted(mr_choices, reverse=True))


def _time(lengths: Sequence[int], mr_choices: Sequence[int], width: int) -> float:
    """The cycles of one step of the reduction for a pixel, summed over all row lengths.

    Each row has the best number of tiles, and a tile the next larger MR that there is.
    """
    cycles, ascending = [0.0], sorted(mr_choices)
    for mr in ascending:
        cycles += [step_cycles(mr, width)] * (mr + 1 - len(cycles))

    def of_line(length: int, mr: int) -> float:
        tiles = -(-length // mr)
        low, more = divmod(length, tiles)
        return more * cycles[min(low + 1, mr)] + (tiles - more) * cycles[low]

    return sum(min(of_line(each, mr) for mr in ascending if mr <= each) / each for each in lengths)


def step_cycles(mr: int, width: int, waiting: float = CONV_STALL_CYCLES) -> float:
    """About how long one step of the reduction takes: two multiply-adds, or two loads, in a cycle.

    The fewer accumulators there are, the more often a multiplier waits for one of them.
    """
    return max(mr * width / 2, CONV_LOAD_FACTOR * (mr + width) / 2, FMA_LATENCY_CYCLES) + waiting / (mr * width)


def runtime_step_cycles(registers: int, mr: int, width: int) -> float:
    """The same for the choice at run time; vectors as wide as the multipliers hardly stall."""
    return step_cycles(mr, width, 1 if registers >= CONV_MANY_REGISTERS else CONV_STALL_CYCLES)


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
    if not size or contraction.is_integer or size % lanes or size > CONV_MAX_BLOCK_VECTORS * lanes or lanes == 1:
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
    pixels = CONV_L1_FRACTION if target.vector_registers < CONV_MANY_REGISTERS else CONV_L1_FRACTION_MANY_REGISTERS
    count = -(-outer // max(1, int(target.l1_bytes * pixels) // weights))
    return ReductionBlocks(-(-outer // count), count, tiles if known is None else min(tiles, known))
