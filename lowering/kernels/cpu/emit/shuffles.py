"""Shuffles of vectors in registers: transposition, horizontal reductions, interleaving and its inverse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseArrayBase, VectorType, i64
from xdsl.ir import Attribute, SSAValue

from lowering.kernels.cpu.emit.code import Code
from tir_dialect.new_ops import new_op
from tir_dialect.ops.memory import lanes_of, vector_of


def transposed(code: Code, rows: Sequence[SSAValue]) -> list[SSAValue]:
    """The transpose of as many vectors as they have lanes, a power of two: halves, quarters, ... of pairs are
    swapped.
    """
    lanes, rows = len(rows), list(rows)
    step = lanes // 2
    while step:
        low = [lane if lane % (2 * step) < step else lane + lanes - step for lane in range(lanes)]
        high = [lane + step if lane % (2 * step) < step else lane + lanes for lane in range(lanes)]
        for i in range(lanes):
            if not i & step:
                pair = rows[i], rows[i + step]
                rows[i], rows[i + step] = shuffle(code, pair, low), shuffle(code, pair, high)
        step //= 2
    return rows


def row_sums(code: Code, rows: Sequence[SSAValue]) -> SSAValue:
    """The horizontal sums of as many vectors as they have lanes, a power of two."""
    return folded_rows(code, rows, lambda a, b: code.value(arith.AddfOp(a, b)))


def folded_rows(code: Code, rows: Sequence[SSAValue], combine: Callable[[SSAValue, SSAValue], SSAValue]) -> SSAValue:
    """Horizontal reductions of some vectors, a power of two and at most as many as they have lanes, in one vector.

    Halves of pairs are combined, then quarters; when there is one vector left, its own halves.
    """
    rows, count = list(rows), len(rows)
    lanes = lanes_of(rows[0].type) or 1
    step = lanes // 2
    while step:
        half = len(rows) // 2
        if half:
            low = [lane if lane % (2 * step) < step else lane + lanes - step for lane in range(lanes)]
            high = [lane + step if lane % (2 * step) < step else lane + lanes for lane in range(lanes)]
            pairs = [(rows[i], rows[i + half]) for i in range(half)]
            rows = [combine(shuffle(code, pair, low), shuffle(code, pair, high)) for pair in pairs]
        else:
            (value,) = rows
            rows = [combine(value, shuffle(code, (value, value), [lane ^ step for lane in range(lanes)]))]
        step //= 2
    return rows[0] if count == lanes else shuffle(code, (rows[0], rows[0]), range(0, lanes, lanes // count))


def shuffle(code: Code, pair: tuple[SSAValue, SSAValue], order: Sequence[int]) -> SSAValue:
    """The elements of two concatenated vectors at the indices `order`."""
    element = element_of(pair[0])
    mask = {"mask": DenseArrayBase.from_list(i64, list(order))}
    return code.value(new_op(vector.ShuffleOp, pair, (vector_of(element, len(order)),), mask))


def concatenated(code: Code, first: SSAValue, second: SSAValue) -> SSAValue:
    """The elements of two vectors as one."""
    return shuffle(code, (first, second), range(2 * (lanes_of(first.type) or 1)))


def bits_as(code: Code, value: SSAValue, element: Attribute, lanes: int) -> SSAValue:
    """The bits of a vector as so many elements of another type, the lowest bits first."""
    return code.value(new_op(vector.BitcastOp, (value,), (vector_of(element, lanes),)))


def element_of(value: SSAValue) -> Attribute:
    """The type of the elements of a vector."""
    if not isinstance(value.type, VectorType):
        raise TypeError(f"expected a vector, got {value.type}")
    return cast("VectorType[Attribute]", value.type).element_type


def is_power_of_two(number: int) -> bool:
    """Whether a number of lanes can be halved down to one."""
    return number > 1 and not number & (number - 1)


Sources = Sequence[tuple[int, int]]
"""For each lane the number of a vector, and the lane there."""


def deinterleave(code: Code, vectors: Sequence[SSAValue], count: int) -> list[list[SSAValue]]:
    """The components that are interleaved in consecutive vectors.

    Even elements are separated from odd ones while the number of components is even: `2**k` components take `k`
    shuffles each.
    """
    if count == 1:
        return [list(vectors)]
    lanes = _lanes(vectors)
    if count % 2:
        length = len(vectors) // count * lanes
        orders = [[divmod(position * count + first, lanes) for position in range(length)] for first in range(count)]
        return [_taken(code, vectors, sources) for sources in orders]
    pairs = list(zip(vectors[::2], vectors[1::2], strict=True))
    halves = ([shuffle(code, pair, range(first, 2 * lanes, 2)) for pair in pairs] for first in (0, 1))
    evens, odds = (deinterleave(code, half, count // 2) for half in halves)
    return [component for pair in zip(evens, odds, strict=True) for component in pair]


def interleave(code: Code, components: Sequence[Sequence[SSAValue]]) -> list[SSAValue]:
    """The inverse of `deinterleave`: consecutive vectors in which components are interleaved."""
    count = len(components)
    if count == 1:
        return list(components[0])
    lanes, each = _lanes(components[0]), len(components[0])
    if count % 2:
        elements = (divmod(number, count) for number in range(count * each * lanes))
        sources = [(component * each + position // lanes, position % lanes) for position, component in elements]
        return _taken(code, [vector for component in components for vector in component], sources)
    evens, odds = interleave(code, components[::2]), interleave(code, components[1::2])
    order = [lane // 2 + lane % 2 * lanes for lane in range(2 * lanes)]
    halves = (order[:lanes], order[lanes:])
    return [shuffle(code, pair, half) for pair in zip(evens, odds, strict=True) for half in halves]


def _taken(code: Code, vectors: Sequence[SSAValue], sources: Sources) -> list[SSAValue]:
    """Vectors of the elements of some lanes, in their order."""
    lanes = _lanes(vectors)
    return [_gathered(code, vectors, sources[first : first + lanes]) for first in range(0, len(sources), lanes)]


def _gathered(code: Code, vectors: Sequence[SSAValue], sources: Sources) -> SSAValue:
    """A vector of the elements of some lanes: shuffles the first two vectors, then the result and the next one."""
    lanes = len(sources)
    first, *others = sorted({vector for vector, _ in sources})
    value, lane_of = vectors[first], [lane for _, lane in sources]
    for number in others:
        order = [
            lanes + lane if vector == number else old for (vector, lane), old in zip(sources, lane_of, strict=True)
        ]
        value, lane_of = shuffle(code, (value, vectors[number]), order), list(range(lanes))
    return value


def _lanes(vectors: Sequence[SSAValue]) -> int:
    return SSAValue.get(vectors[0], type=VectorType).type.get_shape()[0]
