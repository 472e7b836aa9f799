"""Transposition of vectors in registers."""

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
    """As many vectors as they have lanes, a power of two: halves, quarters, ... of pairs are exchanged."""
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
    """The sums of as many vectors as they have lanes, a power of two."""
    return folded_rows(code, rows, lambda a, b: code.value(arith.AddfOp(a, b)))


def folded_rows(code: Code, rows: Sequence[SSAValue], combine: Callable[[SSAValue, SSAValue], SSAValue]) -> SSAValue:
    """One value of each of some vectors, a power of two and at most as many as they have lanes, in a vector of as many.

    Halves of pairs are combined, then quarters; where there are no pairs left, those of one.
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
    """The elements of two vectors side by side that `order` numbers."""
    element = element_of(pair[0])
    mask = {"mask": DenseArrayBase.from_list(i64, list(order))}
    return code.value(new_op(vector.ShuffleOp, pair, (vector_of(element, len(order)),), mask))


def element_of(value: SSAValue) -> Attribute:
    """The type of the elements of a vector."""
    if not isinstance(value.type, VectorType):
        raise TypeError(f"expected a vector, got {value.type}")
    return cast("VectorType[Attribute]", value.type).element_type


def is_power_of_two(number: int) -> bool:
    """Whether a number of lanes can be halved down to one."""
    return number > 1 and not number & (number - 1)
