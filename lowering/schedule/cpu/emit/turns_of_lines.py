"""Lines whose elements take turns in memory: vectors of them are interleaved, and split, in registers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.code import Code
from lowering.schedule.cpu.emit.transpose import shuffle

Places = Sequence[tuple[int, int]]
"""For each lane the number of a vector, and the lane there."""


def split(code: Code, vectors: Sequence[SSAValue], count: int) -> list[list[SSAValue]]:
    """So many lines of vectors, whose elements take turns in vectors side by side.

    Even elements are parted from odd ones as long as the number of lines is even: for `2**k` lines, `k` shuffles each.
    """
    if count == 1:
        return [list(vectors)]
    lanes = _lanes(vectors)
    if count % 2:
        length = len(vectors) // count * lanes
        lines = [[divmod(place * count + line, lanes) for place in range(length)] for line in range(count)]
        return [_taken(code, vectors, places) for places in lines]
    pairs = list(zip(vectors[::2], vectors[1::2], strict=True))
    halves = ([shuffle(code, pair, range(first, 2 * lanes, 2)) for pair in pairs] for first in (0, 1))
    evens, odds = (split(code, half, count // 2) for half in halves)
    return [line for pair in zip(evens, odds, strict=True) for line in pair]


def interleaved(code: Code, lines: Sequence[Sequence[SSAValue]]) -> list[SSAValue]:
    """The inverse: vectors side by side in which the elements of lines take turns."""
    count = len(lines)
    if count == 1:
        return list(lines[0])
    lanes, each = _lanes(lines[0]), len(lines[0])
    if count % 2:
        elements = (divmod(number, count) for number in range(count * each * lanes))
        places = [(line * each + place // lanes, place % lanes) for place, line in elements]
        return _taken(code, [vector for line in lines for vector in line], places)
    evens, odds = interleaved(code, lines[::2]), interleaved(code, lines[1::2])
    order = [lane // 2 + lane % 2 * lanes for lane in range(2 * lanes)]
    halves = (order[:lanes], order[lanes:])
    return [shuffle(code, pair, half) for pair in zip(evens, odds, strict=True) for half in halves]


def _taken(code: Code, vectors: Sequence[SSAValue], places: Places) -> list[SSAValue]:
    """Vectors of the elements at some places, in their order."""
    lanes = _lanes(vectors)
    return [_gathered(code, vectors, places[first : first + lanes]) for first in range(0, len(places), lanes)]


def _gathered(code: Code, vectors: Sequence[SSAValue], places: Places) -> SSAValue:
    """A vector of the elements at some places: of the first two vectors, then of this and the next, and so on."""
    lanes = len(places)
    first, *others = sorted({vector for vector, _ in places})
    value, lane_of = vectors[first], [lane for _, lane in places]
    for number in others:
        order = [lanes + lane if vector == number else old for (vector, lane), old in zip(places, lane_of, strict=True)]
        value, lane_of = shuffle(code, (value, vectors[number]), order), list(range(lanes))
    return value


def _lanes(vectors: Sequence[SSAValue]) -> int:
    return SSAValue.get(vectors[0], type=VectorType).type.get_shape()[0]
