"""Block-quantised weights as words of integers: a lane of a vector is a block.

Vectors are made of as many blocks as they have lanes, one after the other in memory, whatever rows they belong to. A
word has four integers of a block without a sign, as dot-product instructions take them. A group is as many numbers of
a block as have one scale: each number is the scale times its integer less an offset, plus `least` if there is one;
`tir_dialect/block_formats.py` has the formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, IntegerType, VectorType, f16, f32, i8, i16, i32
from xdsl.ir import Operation, SSAValue

from lowering.kernels.emit.code import Code
from lowering.kernels.emit.vectorization import bits_as, element_of, shuffle
from lowering.kernels.gemm.dot_group_micro_kernel import view
from tir_dialect.block_formats import DOUBLED_FLOATS, NON_LINEAR
from tir_dialect.ops.arithmetic import ConvertOp
from tir_dialect.ops.memory import lanes_of
from tir_dialect.ops.vectors import LookupOp

LOADED = 16
"""Bytes of a block that are loaded at once: four words."""


@dataclass(frozen=True)
class WordGroup:
    """A group of each of some blocks."""

    words: Sequence[SSAValue]
    """Vectors of words, in the order of the numbers."""
    scale: SSAValue
    """A vector of `f32`, as is `least`."""
    least: SSAValue | None = None


class Blocks:
    """As many blocks in memory as a vector has lanes."""

    def __init__(self, code: Code, lanes: int, packed: SSAValue, starts: Sequence[SSAValue]):
        """Each begins at a byte of `packed`, a flat buffer."""
        self._code, self._lanes, self._packed, self._starts = code, lanes, packed, starts
        self._loaded: dict[int, list[SSAValue]] = {}
        self._headers: dict[int, SSAValue] = {}

    def give_header(self, at: int, values: SSAValue) -> None:
        """The vector of integers at some bytes of the blocks, which has been gathered."""
        self._headers[at] = values

    def gather_headers(self, headers: Sequence[tuple[int, IntegerType]]) -> None:
        """Copies the integers at some bytes of all blocks side by side."""
        code, lanes = self._code, self._lanes
        for at, kind in headers:
            size = kind.width.data // 8
            memory = code.alloc([lanes], kind, "header", scope="local")
            as_bytes = view(code, memory, [lanes * size], i8)
            for lane, start in enumerate(self._starts):
                code.store(code.load(self._packed, [code.add(start, at)], size), as_bytes, [code.index(lane * size)])
            self.give_header(at, code.load(memory, [code.index(0)], lanes))

    def header(self, at: int) -> SSAValue:
        """The integers at some bytes, of those that `LaneFormat.headers` names."""
        return self._headers[at]

    def words(self, at: int, count: int) -> list[SSAValue]:
        """So many words at some byte, a multiple of four."""
        return [word for first in range(at, at + 4 * count, LOADED) for word in self._four_words(first)]

    def _four_words(self, at: int) -> list[SSAValue]:
        """16 bytes of each block are 4 x 4 words of four blocks, which are transposed."""
        if at not in self._loaded:
            code, quarters = self._code, self._lanes // 4
            rows = [
                self._side_by_side([self._load(4 * quarter + i, at) for quarter in range(quarters)]) for i in range(4)
            ]
            low = [self._interleaved(rows[i], rows[i + 1], (0, 1)) for i in (0, 2)]
            high = [self._interleaved(rows[i], rows[i + 1], (2, 3)) for i in (0, 2)]
            self._loaded[at] = [
                shuffle(
                    code, (a, b), self._in_quarters([first, first + 1, self._lanes + first, self._lanes + first + 1])
                )
                for a, b in (low, high)
                for first in (0, 2)
            ]
        return self._loaded[at]

    def _load(self, block: int, at: int) -> SSAValue:
        loaded = self._code.load(self._packed, [self._code.add(self._starts[block], at)], LOADED)
        return bits_as(self._code, loaded, i32, 4)

    def _side_by_side(self, parts: list[SSAValue]) -> SSAValue:
        while len(parts) > 1:
            lanes = lanes_of(parts[0].type) or 1
            parts = [
                shuffle(self._code, (a, b), range(2 * lanes)) for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
        return parts[0]

    def _interleaved(self, a: SSAValue, b: SSAValue, words: tuple[int, int]) -> SSAValue:
        """Two words of each quarter, of `a` and of `b` in turn."""
        return shuffle(self._code, (a, b), self._in_quarters([each for w in words for each in (w, self._lanes + w)]))

    def _in_quarters(self, order: Sequence[int]) -> list[int]:
        return [4 * quarter + each for quarter in range(self._lanes // 4) for each in order]

    # Arithmetic on vectors

    def value(self, op: Operation) -> SSAValue:
        """The result of an op that is appended."""
        return self._code.value(op)

    def constant(self, number: int, kind: IntegerType = i32) -> SSAValue:
        """A number in all lanes."""
        return self.value(
            arith.ConstantOp(
                DenseIntOrFPElementsAttr.from_list(VectorType(kind, [self._lanes]), [number] * self._lanes)
            )
        )

    def bits(self, value: SSAValue, shift: int, mask: int) -> SSAValue:
        """Some bits of each lane, shifted to the right, or to the left if `shift` is negative."""
        if shift:
            kind = arith.ShRUIOp if shift > 0 else arith.ShLIOp
            value = self.value(kind(value, self.constant(abs(shift))))
        return self.value(arith.AndIOp(value, self.constant(mask if mask < 1 << 31 else mask - (1 << 32))))

    def bits_of_bytes(self, words: Sequence[SSAValue], shift: int, mask: int) -> list[SSAValue]:
        """Some bits of each byte."""
        return [self.bits(word, shift, mask * 0x01010101) for word in words]

    def joined(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """All bits that are in one of two vectors."""
        return self.value(arith.OrIOp(a, b))

    def real(self, integers: SSAValue) -> SSAValue:
        """Integers as `f32`."""
        return self.value(ConvertOp("sitofp", integers, VectorType(f32, [self._lanes])))

    def scaled(self, scale: SSAValue, integers: SSAValue) -> SSAValue:
        """A scale times integers."""
        return self.value(arith.MulfOp(scale, self.real(integers)))

    def negative(self, value: SSAValue) -> SSAValue:
        """The negative of `f32`."""
        return self.value(arith.NegfOp(value))

    def times(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The product of vectors of `f32`."""
        return self.value(arith.MulfOp(a, b))

    def half(self, integers: SSAValue, number: int = 0) -> SSAValue:
        """The `f16` in the lower 16 bits of each lane, or in the upper ones, as `f32`."""
        if number:
            integers = self.value(arith.ShRUIOp(integers, self.constant(16)))
        if element_of(integers) != i16:
            integers = self._converted("trunci", integers, i16)
        return self._converted("extf", self._converted("bitcast", integers, f16), f32)

    def single(self, integers: SSAValue) -> SSAValue:
        """The `f32` of the bits."""
        return self._converted("bitcast", integers, f32)

    def _converted(self, kind: str, value: SSAValue, element: AnyFloat | IntegerType) -> SSAValue:
        return self.value(ConvertOp(kind, value, VectorType(element, [self._lanes])))

    def signed_byte(self, word: SSAValue, number: int) -> SSAValue:
        """A byte of each word, with its sign."""
        if number < 3:
            word = self.value(arith.ShLIOp(word, self.constant(24 - 8 * number)))
        return self.value(arith.ShRSIOp(word, self.constant(24)))


Unpack = Callable[[Blocks, int], WordGroup]


@dataclass(frozen=True)
class LaneFormat:
    """How blocks of a format are unpacked."""

    groups: int
    """Groups of a block, of equal size."""
    unpack: Unpack
    """Unpacks a group, by its number."""
    headers: tuple[tuple[int, IntegerType], ...] = ()
    """Where blocks have integers that are gathered before: each a byte, and the type."""
    offset: int = 0
    """What is subtracted from each integer."""

    @property
    def has_least(self) -> bool:
        """Whether groups have a least number, so that nothing is subtracted."""
        return not self.offset


def _nibbles(blocks: Blocks, at: int) -> list[SSAValue]:
    """The lower halves of 16 bytes, then the upper halves."""
    words = blocks.words(at, 4)
    return [*blocks.bits_of_bytes(words, 0, 15), *blocks.bits_of_bytes(words, 4, 15)]


def _fifth_bits(blocks: Blocks, words: Sequence[SSAValue], bits: SSAValue) -> list[SSAValue]:
    """The words with the fifth bit of each integer: 32 bits, the lowest one first."""
    found: list[SSAValue] = []
    for number, word in enumerate(words):
        # Four bits are multiplied to four bytes, of which each has another one as its fifth bit.
        four = blocks.bits(bits, 4 * number, 15)
        spread = blocks.value(arith.MuliOp(four, blocks.constant(1 << 4 | 1 << 11 | 1 << 18 | 1 << 25)))
        found.append(blocks.joined(word, blocks.bits(spread, 0, 0x10101010)))
    return found


def _q4_0(blocks: Blocks, number: int) -> WordGroup:
    return WordGroup(_nibbles(blocks, 2), blocks.half(blocks.words(0, 4)[0]))


def _q4_1(blocks: Blocks, number: int) -> WordGroup:
    header = blocks.words(0, 4)[0]
    return WordGroup(_nibbles(blocks, 4), blocks.half(header), blocks.half(header, 1))


def _q5_0(blocks: Blocks, number: int) -> WordGroup:
    first, second, *_ = blocks.words(0, 4)
    low = blocks.value(arith.ShRUIOp(first, blocks.constant(16)))
    high = blocks.value(arith.ShLIOp(second, blocks.constant(16)))
    return WordGroup(_fifth_bits(blocks, _nibbles(blocks, 6), blocks.joined(low, high)), blocks.half(first))


def _q5_1(blocks: Blocks, number: int) -> WordGroup:
    header, bits, *_ = blocks.words(0, 4)
    words = _fifth_bits(blocks, _nibbles(blocks, 8), bits)
    return WordGroup(words, blocks.half(header), blocks.half(header, 1))


def _q8_0(blocks: Blocks, number: int) -> WordGroup:
    signs = blocks.constant(-0x7F7F7F80)
    words = [blocks.value(arith.XOrIOp(word, signs)) for word in blocks.words(2, 8)]
    return WordGroup(words, blocks.half(blocks.words(0, 4)[0]))


def _scale_and_least(blocks: Blocks, number: int) -> tuple[SSAValue, SSAValue]:
    """As `tir_dialect.block_formats` has them, from the 16 bytes that a block begins with."""
    halves, scales, leasts, rest = blocks.words(0, 4)
    shift = number % 4 * 8
    if number < 4:
        scale, least = blocks.bits(scales, shift, 63), blocks.bits(leasts, shift, 63)
    else:
        scale = blocks.joined(blocks.bits(rest, shift, 15), blocks.bits(scales, shift + 2, 48))
        least = blocks.joined(blocks.bits(rest, shift + 4, 15), blocks.bits(leasts, shift + 2, 48))
    return (
        blocks.scaled(blocks.half(halves), scale),
        blocks.negative(blocks.scaled(blocks.half(halves, 1), least)),
    )


def _q4_k(blocks: Blocks, number: int) -> WordGroup:
    words = blocks.words(16 + number // 2 * 32, 8)
    return WordGroup(blocks.bits_of_bytes(words, number % 2 * 4, 15), *_scale_and_least(blocks, number))


def _q5_k(blocks: Blocks, number: int) -> WordGroup:
    low = blocks.bits_of_bytes(blocks.words(48 + number // 2 * 32, 8), number % 2 * 4, 15)
    high = blocks.bits_of_bytes(blocks.words(16, 8), number - 4, 16)
    words = [blocks.joined(*pair) for pair in zip(low, high, strict=True)]
    return WordGroup(words, *_scale_and_least(blocks, number))


def _q6_k(blocks: Blocks, number: int) -> WordGroup:
    outer, inner = number // 8 * 32, number % 8 * 16
    low = blocks.bits_of_bytes(blocks.words(2 * outer + inner % 64, 4), inner // 64 * 4, 15)
    high = blocks.bits_of_bytes(blocks.words(128 + outer + inner % 32, 4), inner // 32 * 2 - 4, 48)
    scale = blocks.signed_byte(blocks.words(192, 4)[number // 4], number % 4)
    words = [blocks.joined(*pair) for pair in zip(low, high, strict=True)]
    return WordGroup(words, blocks.scaled(blocks.half(blocks.header(208)), scale))


def _chosen(blocks: Blocks, mask: SSAValue, then: SSAValue, otherwise: SSAValue) -> SSAValue:
    """The bits of one of two vectors."""
    rest = blocks.value(arith.XOrIOp(mask, blocks.constant(-1)))
    return blocks.joined(blocks.value(arith.AndIOp(then, mask)), blocks.value(arith.AndIOp(otherwise, rest)))


MIDDLE = 128
"""What is added to entries of tables, so that they have no sign."""


def _entries(blocks: Blocks, at: int, table: Sequence[int]) -> list[SSAValue]:
    """The entries that the halves of 16 bytes select, plus `MIDDLE`."""
    shifted = [entry + MIDDLE if entry < 0 else entry - MIDDLE for entry in table]  # the same bits, as `i8`
    return [blocks.value(LookupOp(word, shifted)) for word in _nibbles(blocks, at)]


def _iq4_nl(blocks: Blocks, number: int) -> WordGroup:
    return WordGroup(_entries(blocks, 2, NON_LINEAR), blocks.half(blocks.words(0, 4)[0]))


def _iq4_xs(blocks: Blocks, number: int) -> WordGroup:
    first, low, *_ = blocks.words(0, 4)
    scale = blocks.joined(blocks.bits(low, 4 * number, 15), blocks.bits(first, 12 + 2 * number, 48))
    scale = blocks.value(arith.SubiOp(scale, blocks.constant(32)))
    return WordGroup(_entries(blocks, 8 + 16 * number, NON_LINEAR), blocks.scaled(blocks.half(first), scale))


def _mxfp4(blocks: Blocks, number: int) -> WordGroup:
    exponent = blocks.bits(blocks.words(0, 4)[0], 0, 255)
    # Half of the power of two, which is subnormal for exponents below 2.
    subnormal = blocks.value(arith.ShLIOp(blocks.constant(1 << 21), blocks.bits(exponent, 0, 1)))
    normal = blocks.value(arith.ShLIOp(blocks.value(arith.SubiOp(exponent, blocks.constant(1))), blocks.constant(23)))
    is_small = blocks.value(
        arith.ShRSIOp(blocks.value(arith.SubiOp(exponent, blocks.constant(2))), blocks.constant(31))
    )
    return WordGroup(_entries(blocks, 1, DOUBLED_FLOATS), blocks.single(_chosen(blocks, is_small, subnormal, normal)))


def _q2_k(blocks: Blocks, number: int) -> WordGroup:
    outer, inner = number // 8 * 32, number % 8 * 16
    words = blocks.bits_of_bytes(blocks.words(16 + outer + inner % 32, 4), inner // 32 * 2, 3)
    scales, halves = blocks.words(0, 4)[number // 4], blocks.header(80)
    shift = number % 4 * 8
    scale = blocks.scaled(blocks.half(halves), blocks.bits(scales, shift, 15))
    return WordGroup(
        words, scale, blocks.negative(blocks.scaled(blocks.half(halves, 1), blocks.bits(scales, shift + 4, 15)))
    )


def _q3_k(blocks: Blocks, number: int) -> WordGroup:
    outer, inner = number // 8 * 32, number % 8 * 16
    low = blocks.bits_of_bytes(blocks.words(32 + outer + inner % 32, 4), inner // 32 * 2, 3)
    high = blocks.bits_of_bytes(blocks.words(inner % 32, 4), number // 2 - 2, 4)
    words = [blocks.joined(*pair) for pair in zip(low, high, strict=True)]
    nibble = blocks.bits(blocks.header(96 + number % 8 // 4 * 4), number % 4 * 8 + number // 8 * 4, 15)
    pair = blocks.bits(blocks.header(104), number % 4 * 8 + number // 4 * 2 - 4, 48)
    scale = blocks.value(arith.SubiOp(blocks.joined(nibble, pair), blocks.constant(32)))
    return WordGroup(words, blocks.scaled(blocks.half(blocks.header(108)), scale))


def _scale_and_zero(blocks: Blocks) -> tuple[SSAValue, SSAValue]:
    scale, zero = (blocks.single(word) for word in blocks.words(0, 4)[:2])
    return scale, blocks.negative(blocks.times(scale, zero))


def _u4_f32(blocks: Blocks, number: int) -> WordGroup:
    return WordGroup(_nibbles(blocks, 8), *_scale_and_zero(blocks))


def _u8_f32(blocks: Blocks, number: int) -> WordGroup:
    return WordGroup(blocks.words(8, 8), *_scale_and_zero(blocks))


LANE_FORMATS: Mapping[str, LaneFormat] = {
    "q4_0": LaneFormat(1, _q4_0, (), 8),
    "q4_1": LaneFormat(1, _q4_1),
    "q5_0": LaneFormat(1, _q5_0, offset=16),
    "q5_1": LaneFormat(1, _q5_1),
    "q8_0": LaneFormat(1, _q8_0, (), 128),
    "q2_k": LaneFormat(16, _q2_k, ((80, i32),)),
    "q3_k": LaneFormat(16, _q3_k, ((96, i32), (100, i32), (104, i32), (108, i16)), 4),
    "q4_k": LaneFormat(8, _q4_k),
    "q5_k": LaneFormat(8, _q5_k),
    "q6_k": LaneFormat(16, _q6_k, ((208, i16),), 32),
    "iq4_nl": LaneFormat(1, _iq4_nl, (), MIDDLE),
    "iq4_xs": LaneFormat(8, _iq4_xs, (), MIDDLE),
    "mxfp4": LaneFormat(1, _mxfp4, (), MIDDLE),
    "u4_f32": LaneFormat(1, _u4_f32),
    "u8_f32": LaneFormat(1, _u8_f32),
}
"""The formats whose integers can be multiplied as they are."""
