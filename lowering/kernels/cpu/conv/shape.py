"""The register tiles of blocked products: how many pixels of how many blocks are computed at once.

A line is divided into as few tiles as possible, whose heights differ by one at most. A line of known length has tiles
of one or two heights. For lines of symbolic length there are tiles of a few heights; each call takes the number of
tiles that takes the least time, and a tile has the next height that exists. With many registers there are so many
heights that the tiles of any line are as high as its shares are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import inf

LATENCY = 4
"""So many cycles after a multiply-add has begun its result can be added to."""
WAITING = 8
"""Cycles of a step in which multipliers wait, by the number of sums: as measured."""
LOADING = 1.1
"""Loads take longer than that by this factor, on average: they wait for each other where a line comes from afar."""
MOST_BLOCKS = 3
"""Weights of more blocks at once were slower with every height."""
GAIN = 0.015
"""Tiles of one more height have to save so much of the time,"""
FEW = 4
"""if there are so many already."""
SHORT = (1, 4)
"""Heights for lines shorter than the usual ones."""
MANY_REGISTERS, ENOUGH_SUMS = 32, 8
"""With so many registers, which are as wide as the multipliers, so few sums keep these busy."""
FEW_GROUPS = 8
"""In more groups of blocks one that is not whole does not count."""
USUAL_SIDES = (8, 10, 13, 16, 20, 26, 32, 40, 52, 64, 80, 128, *2 * (7, 14, 28, 56, 112))
"""Of pictures within networks, where nothing is known: those made of a picture of 224 are twice as frequent."""


@dataclass(frozen=True)
class Shape:
    """A register tile: so many pixels of so many blocks."""

    heights: tuple[int, ...]
    """How many pixels a tile may have, the greatest first; the last fits any line."""
    blocks: int

    @property
    def pixels(self) -> int:
        """How many pixels a tile has at most."""
        return self.heights[0]

    def least_of_shares(self, height: int) -> int | None:
        """The least height from which on there is each up to this one; `None` if there is none."""
        low = height
        while low - 1 in self.heights:
            low -= 1
        return low if 1 < low < height else None


@cache
def tile_shape(registers: int, vectors: int, pixels: int | None, blocks: int | None, joined: bool) -> Shape:
    """The tile that takes the least time for lines of `pixels` and so many blocks, of `vectors` each.

    A line of unknown length is a side of a picture, or all of it if its lines are `joined`.
    """
    lengths = [side**2 if joined else side for side in USUAL_SIDES] if pixels is None else [pixels]
    best, least = Shape((1,), 1), inf
    for count in (1,) if blocks is None else range(1, min(blocks, MOST_BLOCKS) + 1):
        width = count * vectors
        most = max((registers - 1 - width) // width, 1)
        if pixels is None:
            time, heights = _few_heights(lengths, most, width)
            if registers >= MANY_REGISTERS and not joined:
                heights = _heights_of_any(heights, width)
                time = _time(lengths, heights, width)
        else:
            time, heights = min(_even_heights(pixels, height, width) for height in range(most, 0, -1))
        rest = last_blocks(registers, blocks, count)
        total = -(-((blocks or 1) - rest) // count) * time
        total += _time(lengths, heights, rest * vectors) if rest else 0
        if total < least:
            best, least = Shape(heights, count), total
    return best


def last_blocks(registers: int, blocks: int | None, count: int) -> int:
    """How many blocks remain after the last whole group, if these have tiles of their own: where there are few groups.

    Else a whole group at the end computes some blocks twice.
    """
    has_own = blocks is not None and registers >= MANY_REGISTERS and count < blocks < FEW_GROUPS * count
    return blocks % count if has_own and blocks else 0


def _heights_of_any(usual: Sequence[int], width: int) -> tuple[int, ...]:
    """The greatest of the usual heights, and from that with enough sums to its double: one of these, or two that
    differ by one, divide any line.
    """
    low = -(-ENOUGH_SUMS // width)
    short = (max(low >> power, 1) for power in range(1, low.bit_length()))
    return tuple(sorted({usual[0], *range(low, 2 * low), *short, 1}, reverse=True))


def _even_heights(length: int, most: int, width: int) -> tuple[float, tuple[int, ...]]:
    """The time of as few tiles for a line as `most` pixels allow, and their heights: two if that gains enough."""
    tiles = max(1, -(-length // most))
    low, more = divmod(length, tiles)
    if not low:
        return inf, (most,)
    one = tiles * step_cycles(most, width) / length if most <= length else inf
    two = (more * step_cycles(low + 1, width) + (tiles - more) * step_cycles(low, width)) / length
    return (two, (low + 1, low) if more else (low,)) if two < (1 - GAIN) * one else (one, (most,))


def _few_heights(lengths: Sequence[int], most: int, width: int) -> tuple[float, tuple[int, ...]]:
    """Those for short lines, and each that gains enough beside the ones before; first the time with the best.

    Of heights that are about as good the greatest is taken, which reads weights least often.
    """
    heights = tuple(height for height in SHORT if height <= most)
    best = _time(lengths, heights, width)
    while len(heights) < most:
        others = {height: _time(lengths, (height, *heights), width) for height in range(most, 0, -1)}
        height = min(others, key=lambda each: (round(others[each] / len(lengths), 2), -each))
        gain = GAIN if len(heights) >= FEW else 0
        if others[height] >= (1 - gain) * best:
            break
        heights, best = (height, *heights), others[height]
    return best, tuple(sorted(heights, reverse=True))


def _time(lengths: Sequence[int], heights: Sequence[int], width: int) -> float:
    """The cycles for a pixel of one step of the sums, for all lines together.

    Each line has the best number of tiles, and a tile the next height that there is.
    """
    cycles, ascending = [0.0], sorted(heights)
    for height in ascending:
        cycles += [step_cycles(height, width)] * (height + 1 - len(cycles))

    def of_line(length: int, height: int) -> float:
        tiles = -(-length // height)
        low, more = divmod(length, tiles)
        return more * cycles[min(low + 1, height)] + (tiles - more) * cycles[low]

    return sum(min(of_line(each, height) for height in ascending if height <= each) / each for each in lengths)


def step_cycles(height: int, width: int, waiting: float = WAITING) -> float:
    """About how long one step of the sums of a tile takes: two multiply-adds, or two loads, at a time.

    The fewer sums there are, the more often a multiplier waits for one of them.
    """
    return max(height * width / 2, LOADING * (height + width) / 2, LATENCY) + waiting / (height * width)


def cycles_of_choice(registers: int, height: int, width: int) -> float:
    """The same for the choice that a call makes; vectors as wide as the multipliers hardly wait."""
    return step_cycles(height, width, 1 if registers >= MANY_REGISTERS else WAITING)
