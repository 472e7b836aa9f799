"""Block-quantised formats of weights: a block is some bytes that stand for 32 or 256 numbers in a row.

The formats are those of GGUF files, under their names in lower case, and two for ONNX, whose scales are `f32`: `u4_f32`
and `u8_f32`. A row of a matrix is a sequence of blocks. In a block there are small integers, and what they are scaled
by: one `f16` for the block, and in the formats of 256 numbers a small integer for each 16 or 32 of these besides.

The table has one formula for each format, which gives the number at an index from the bytes. A formula is written in
terms of `Bytes`, so that NumPy arrays (`tir_dialect/block_arrays.py`) and tensor expressions evaluate the same one. The
order of its roundings is that of `gguf.quants`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Number: TypeAlias = Any
"""An index, an integer of 32 bits or an `f32`, with Python's operators: an array or a tensor expression."""


class Bytes(Protocol):
    """The bytes of one block, and the functions of numbers that Python has no operators for."""

    def byte(self, at: Number) -> Number:
        """A byte as an integer from 0 to 255."""
        ...

    def half(self, at: int) -> Number:
        """The `f16` at two bytes, the lower one first, as an `f32`."""
        ...

    def single(self, at: int) -> Number:
        """The `f32` at four bytes, the lowest one first."""
        ...

    def integer(self, index: Number) -> Number:
        """An index as an integer."""
        ...

    def real(self, integer: Number) -> Number:
        """An integer as an `f32`."""
        ...

    def float_of_bits(self, integer: Number) -> Number:
        """The `f32` with the bits of an integer."""
        ...

    def select(self, condition: Number, then: Number, otherwise: Number) -> Number:
        """One of two integers; both are evaluated."""
        ...

    def element(self, values: Sequence[int], integer: Number) -> Number:
        """The element of a table of 16 integers of 8 bits."""
        ...


Formula: TypeAlias = Callable[[Bytes, Number], Number]
"""The `f32` at an index within a block."""


@dataclass(frozen=True)
class BlockFormat:
    """A format of blocks."""

    name: str
    elements: int
    """How many numbers a block stands for."""
    bytes: int
    """Its size."""
    formula: Formula

    def columns(self, row_bytes: int) -> int:
        """How many numbers a row of whole blocks has."""
        return row_bytes // self.bytes * self.elements

    def row_bytes(self, columns: int) -> int:
        """The bytes of a row of whole blocks."""
        return columns // self.elements * self.bytes


def _nibble(block: Bytes, first: int, j: Number) -> Number:
    """Half a byte: 16 bytes have the lower halves of 16 numbers, then the upper halves of 16 more."""
    return block.byte(j % 16 + first) >> block.integer(j // 16 * 4) & 15


def _bit(block: Bytes, first: int, j: Number) -> Number:
    """One bit; eight in a byte, the lowest one first."""
    return block.byte(j // 8 + first) >> block.integer(j % 8) & 1


def _signed(byte: Number) -> Number:
    return (byte ^ 128) - 128


def _q4_0(block: Bytes, j: Number) -> Number:
    return block.half(0) * block.real(_nibble(block, 2, j) - 8)


def _q4_1(block: Bytes, j: Number) -> Number:
    return block.half(0) * block.real(_nibble(block, 4, j)) + block.half(2)


def _q5_0(block: Bytes, j: Number) -> Number:
    return block.half(0) * block.real((_nibble(block, 6, j) | _bit(block, 2, j) << 4) - 16)


def _q5_1(block: Bytes, j: Number) -> Number:
    return block.half(0) * block.real(_nibble(block, 8, j) | _bit(block, 4, j) << 4) + block.half(2)


def _q8_0(block: Bytes, j: Number) -> Number:
    return block.real(_signed(block.byte(j + 2))) * block.half(0)


def _q2_k(block: Bytes, j: Number) -> Number:
    scales = block.byte(j // 16)
    number = block.byte(j // 128 * 32 + j % 32 + 16) >> block.integer(j // 32 % 4 * 2) & 3
    return block.half(80) * block.real(scales & 15) * block.real(number) - block.half(82) * block.real(scales >> 4)


def _q3_k(block: Bytes, j: Number) -> Number:
    group = j // 16
    low = block.byte(group % 8 + 96) >> block.integer(group // 8 * 4) & 15
    high = block.byte(group % 4 + 104) >> block.integer(group // 4 * 2) & 3
    number = block.byte(j // 128 * 32 + j % 32 + 32) >> block.integer(j // 32 % 4 * 2) & 3
    less = (block.byte(j % 32) >> block.integer(j // 32) & 1 ^ 1) << 2  # a bit that is set stands for 0
    return block.half(108) * block.real((low | high << 4) - 32) * block.real(number - less)


def _scale_and_least(block: Bytes, group: Number) -> tuple[Number, Number]:
    """Eight times two numbers of six bits in 12 bytes: those of the first four groups and the upper bits of the others,
    then the lower bits of the others.
    """
    position, is_first = group % 4, group < 4
    scale, least, rest = block.byte(position + 4), block.byte(position + 8), block.byte(position + 12)
    return (
        block.select(is_first, scale & 63, rest & 15 | scale >> 2 & 48),
        block.select(is_first, least & 63, rest >> 4 | least >> 2 & 48),
    )


def _q4_k(block: Bytes, j: Number) -> Number:
    scale, least = _scale_and_least(block, j // 32)
    number = block.byte(j // 64 * 32 + j % 32 + 16) >> block.integer(j // 32 % 2 * 4) & 15
    return block.half(0) * block.real(scale) * block.real(number) - block.half(2) * block.real(least)


def _q5_k(block: Bytes, j: Number) -> Number:
    scale, least = _scale_and_least(block, j // 32)
    low = block.byte(j // 64 * 32 + j % 32 + 48) >> block.integer(j // 32 % 2 * 4) & 15
    high = block.byte(j % 32 + 16) >> block.integer(j // 32) & 1
    return block.half(0) * block.real(scale) * block.real(low | high << 4) - block.half(2) * block.real(least)


def _q6_k(block: Bytes, j: Number) -> Number:
    low = block.byte(j // 128 * 64 + j % 64) >> block.integer(j // 64 % 2 * 4) & 15
    high = block.byte(j // 128 * 32 + j % 32 + 128) >> block.integer(j // 32 % 4 * 2) & 3
    scale = block.real(_signed(block.byte(j // 16 + 192)))
    return block.half(208) * scale * block.real((low | high << 4) - 32)


NON_LINEAR = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
"""What the 16 values of four bits stand for in `iq4_nl` and `iq4_xs`."""

DOUBLED_FLOATS = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
"""Twice the values of `f4E2M1FN`."""


def _iq4_nl(block: Bytes, j: Number) -> Number:
    return block.half(0) * block.real(block.element(NON_LINEAR, _nibble(block, 2, j)))


def _iq4_xs(block: Bytes, j: Number) -> Number:
    group = j // 32
    low = block.byte(group // 2 + 4) >> block.integer(group % 2 * 4) & 15
    high = block.byte(group // 4 + 2) >> block.integer(group % 4 * 2) & 3
    number = block.byte(group * 16 + j % 16 + 8) >> block.integer(j // 16 % 2 * 4) & 15
    return block.half(0) * block.real((low | high << 4) - 32) * block.real(block.element(NON_LINEAR, number))


def _mxfp4(block: Bytes, j: Number) -> Number:
    exponent = block.byte(0)
    # Half of the power of two, whose bits differ where it is subnormal.
    bits = block.select(exponent < 2, block.integer(0x00200000) << (exponent & 1), (exponent - 1) << 23)
    return block.float_of_bits(bits) * block.real(block.element(DOUBLED_FLOATS, _nibble(block, 1, j)))


def _u4_f32(block: Bytes, j: Number) -> Number:
    return (block.real(_nibble(block, 8, j)) - block.single(4)) * block.single(0)


def _u8_f32(block: Bytes, j: Number) -> Number:
    return (block.real(block.byte(j + 8)) - block.single(4)) * block.single(0)


FORMATS: Mapping[str, BlockFormat] = {
    each.name: each
    for each in (
        BlockFormat("q4_0", 32, 18, _q4_0),
        BlockFormat("q4_1", 32, 20, _q4_1),
        BlockFormat("q5_0", 32, 22, _q5_0),
        BlockFormat("q5_1", 32, 24, _q5_1),
        BlockFormat("q8_0", 32, 34, _q8_0),
        BlockFormat("q2_k", 256, 84, _q2_k),
        BlockFormat("q3_k", 256, 110, _q3_k),
        BlockFormat("q4_k", 256, 144, _q4_k),
        BlockFormat("q5_k", 256, 176, _q5_k),
        BlockFormat("q6_k", 256, 210, _q6_k),
        BlockFormat("iq4_nl", 32, 18, _iq4_nl),
        BlockFormat("iq4_xs", 256, 136, _iq4_xs),
        BlockFormat("mxfp4", 32, 17, _mxfp4),
        BlockFormat("u4_f32", 32, 24, _u4_f32),
        BlockFormat("u8_f32", 32, 40, _u8_f32),
    )
}
"""The formats by name."""
