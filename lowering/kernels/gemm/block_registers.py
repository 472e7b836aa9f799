"""Block-quantised weights decoded in vector registers: the integers of a group, what scales them and what is added.

A group is as many numbers in a row as have one scale. Its integers are unpacked by vector arithmetic on the bytes,
which are read once; `tir_dialect/block_formats.py` has the formula of each number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, IntegerType, VectorType, f16, f32, i8, i16, i32
from xdsl.ir import Operation, SSAValue

from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import buffer_type
from lowering.kernels.emit.vectorization import element_of, shuffle
from tir_dialect.block_formats import DOUBLED_FLOATS, NON_LINEAR, BlockFormat
from tir_dialect.dims import constant, floordiv
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.arithmetic import ConvertOp
from tir_dialect.ops.blocks import ViewOp
from tir_dialect.ops.memory import lanes_of
from tir_dialect.ops.vectors import LookupOp
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class Group:
    """Numbers of a block: each is the scale times its integer, plus `least` if there is one."""

    start: int
    """The index of the first one."""
    integers: Sequence[SSAValue]
    """Vectors of `f32`."""
    scale: SSAValue
    """In all lanes, as is `least`."""
    least: SSAValue | None = None

    def numbers(self, code: Code) -> list[SSAValue]:
        """Vectors of what the integers stand for."""
        if self.least is None:
            return [code.value(arith.MulfOp(self.scale, each)) for each in self.integers]
        return [code.fma(self.scale, each, self.least) for each in self.integers]


@dataclass(frozen=True)
class Memory:
    """The bytes of a matrix, and views of them, for blocks that begin at even addresses."""

    code: Code
    lanes: int
    """Numbers in a vector: 16 or a part of that."""
    bytes: SSAValue
    halves: SSAValue
    """As `f16`."""
    words: SSAValue
    """As `i16`."""
    singles: SSAValue
    """As `f32`, for blocks whose size is a multiple of four."""

    @staticmethod
    def of(code: Code, packed: SSAValue, lanes: int) -> Memory:
        """Of a flat buffer of bytes."""
        size = buffer_type(packed).shape[0]
        halves, words, singles = (
            code.value(ViewOp(packed, BufferType([floordiv(size, constant(byte_size(kind)))], kind)))
            for kind in (f16, i16, f32)
        )
        return Memory(code, lanes, packed, halves, words, singles)


class Block:
    """A block in memory, of which groups are unpacked."""

    def __init__(self, memory: Memory, at: SSAValue):
        """The block begins `at` so many bytes."""
        self._memory, self._at, self._code = memory, at, memory.code
        self._known: dict[tuple[str, int], SSAValue] = {}

    @property
    def lanes(self) -> int:
        """Numbers in a vector."""
        return self._memory.lanes

    # Scalars

    def half(self, at: int) -> SSAValue:
        """The `f16` at an even byte as an `f32`."""
        return self._once("half", at, lambda: self._value(arith.ExtFOp(self._pair(self._memory.halves, at), f32)))

    def halves(self, at: int) -> tuple[SSAValue, SSAValue]:
        """Two `f16` side by side, each as an `f32` in all lanes."""
        pair = self._code.load(self._memory.halves, [self._code.add(self._code.divide(self._at, 2), at // 2)], 2)
        wide = self._value(ConvertOp("extf", pair, VectorType(f32, [2])))
        first, second = (shuffle(self._code, (wide, wide), [lane] * self.lanes) for lane in (0, 1))
        return first, second

    def scale_and_least(self) -> tuple[SSAValue, SSAValue]:
        """The scale of a block of `f32` and integers, and what a 0 is, in all lanes."""
        first = self._code.divide(self._at, 4)
        scale, zero = (self._code.load(self._memory.singles, [self._code.add(first, number)]) for number in (0, 1))
        return self.splat(scale), self.splat(self.negative(self._value(arith.MulfOp(scale, zero))))

    def splat(self, value: SSAValue) -> SSAValue:
        """A scalar in all lanes."""
        return self._code.splat(value, self.lanes)

    def word(self, at: int) -> SSAValue:
        """The two bytes at an even one, as an integer."""
        return self._once("word", at, lambda: self._value(arith.ExtUIOp(self._pair(self._memory.words, at), i32)))

    def byte(self, at: int, *, signed: bool = False) -> SSAValue:
        """A byte as an integer."""

        def load() -> SSAValue:
            byte = self._code.load(self._memory.bytes, [self._code.add(self._at, at)])
            return self._value(arith.ExtSIOp(byte, i32) if signed else arith.ExtUIOp(byte, i32))

        return self._once("byte", at, load)

    def _pair(self, memory: SSAValue, at: int) -> SSAValue:
        return self._code.load(memory, [self._code.add(self._code.divide(self._at, 2), at // 2)])

    def _once(self, kind: str, at: int, make: Callable[[], SSAValue]) -> SSAValue:
        if (kind, at) not in self._known:
            self._known[kind, at] = make()
        return self._known[kind, at]

    def bits(self, value: SSAValue, shift: int, mask: int) -> SSAValue:
        """Some bits of an integer or of each lane."""
        if shift:
            value = self._value(arith.ShRUIOp(value, self._like(value, shift)))
        return self._value(arith.AndIOp(value, self._like(value, mask)))

    def joined(self, low: SSAValue, high: SSAValue, shift: int) -> SSAValue:
        """Integers of lower bits and, shifted, upper ones."""
        if shift:
            high = self._value(arith.ShLIOp(high, self._like(high, shift)))
        return self._value(arith.OrIOp(low, high))

    def less(self, value: SSAValue, number: int) -> SSAValue:
        """An integer, or each lane, less a number."""
        return self._value(arith.SubiOp(value, self._like(value, number)))

    def entries(self, table: Sequence[int], at: int) -> list[SSAValue]:
        """The entries of a table that the halves of 16 bytes select."""
        return [self._value(LookupOp(numbers, table)) for numbers in self.nibbles(at, 16)]

    def half_power(self, exponent: SSAValue) -> SSAValue:
        """`2 ** (exponent - 128)`, an `f32` that is subnormal for exponents below 2."""
        subnormal = self._value(arith.ShLIOp(self._like(exponent, 1 << 21), self.bits(exponent, 0, 1)))
        normal = self._value(arith.ShLIOp(self.less(exponent, 1), self._like(exponent, 23)))
        is_small = self._value(arith.CmpiOp(exponent, self._like(exponent, 2), "ult"))
        bits = self._value(arith.SelectOp(is_small, subnormal, normal))
        return self._value(arith.BitcastOp(bits, f32))

    def scaled(self, scale: SSAValue, integer: SSAValue) -> SSAValue:
        """A scale times an integer."""
        return self._value(arith.MulfOp(scale, self._value(arith.SIToFPOp(integer, f32))))

    # Vectors

    def bytes(self, at: int, count: int) -> list[SSAValue]:
        """Bytes side by side, as vectors of them."""
        return [
            self._code.load(self._memory.bytes, [self._code.add(self._at, at + first)], self.lanes)
            for first in range(0, count, self.lanes)
        ]

    def nibbles(self, at: int, count: int) -> list[SSAValue]:
        """The lower halves of so many bytes, then the upper halves."""
        loaded = self.bytes(at, count)
        return [self.bits(each, shift, 15) for shift in (0, 4) for each in loaded]

    def fifth_bits(self, at: int) -> list[SSAValue]:
        """32 bits as lanes of bytes: 1 or 0."""
        found: list[SSAValue] = []
        for first in range(0, 32, self.lanes):
            word = self._code.splat(self.word(at + first // 16 * 2), self.lanes)
            shifts = self._vector(i32, [first % 16 + lane for lane in range(self.lanes)])
            bits = self.bits(self._value(arith.ShRUIOp(word, shifts)), 0, 1)
            found.append(self._value(ConvertOp("trunci", bits, VectorType(i8, [self.lanes]))))
        return found

    def floats(self, integers: Sequence[SSAValue], *, signed: bool) -> list[SSAValue]:
        """Vectors of bytes as vectors of `f32`."""
        wide, real = VectorType(i32, [self.lanes]), VectorType(f32, [self.lanes])
        extended = (self._value(ConvertOp("extsi" if signed else "extui", each, wide)) for each in integers)
        return [self._value(ConvertOp("sitofp", each, real)) for each in extended]

    def _value(self, op: Operation) -> SSAValue:
        return self._code.value(op)

    def negative(self, value: SSAValue) -> SSAValue:
        """The negative of a scalar."""
        return self._value(arith.NegfOp(value))

    def _like(self, value: SSAValue, number: int) -> SSAValue:
        """A number as an integer, or as each lane."""
        if lanes_of(value.type) is not None:
            kind = i8 if element_of(value) == i8 else i32
            return self._vector(kind, [number] * self.lanes)
        return self._value(arith.ConstantOp(IntegerAttr(number, i32)))

    def _vector(self, kind: IntegerType, numbers: Sequence[int]) -> SSAValue:
        attribute = DenseIntOrFPElementsAttr.from_list(VectorType(kind, [self.lanes]), numbers)
        return self._value(arith.ConstantOp(attribute))


def _q4_0(block: Block, number: int) -> Group:
    integers = [block.less(each, 8) for each in block.nibbles(2, 16)]
    return Group(0, block.floats(integers, signed=True), block.splat(block.half(0)))


def _q4_1(block: Block, number: int) -> Group:
    return Group(0, block.floats(block.nibbles(4, 16), signed=False), *block.halves(0))


def _fifth(block: Block, at: int) -> list[SSAValue]:
    """Integers of five bits, of which the upper ones precede the lower ones."""
    pairs = zip(block.nibbles(at + 4, 16), block.fifth_bits(at), strict=True)
    return [block.joined(low, high, 4) for low, high in pairs]


def _q5_0(block: Block, number: int) -> Group:
    integers = [block.less(each, 16) for each in _fifth(block, 2)]
    return Group(0, block.floats(integers, signed=True), block.splat(block.half(0)))


def _q5_1(block: Block, number: int) -> Group:
    return Group(0, block.floats(_fifth(block, 4), signed=False), *block.halves(0))


def _q8_0(block: Block, number: int) -> Group:
    return Group(0, block.floats(block.bytes(2, 32), signed=True), block.splat(block.half(0)))


def _scale_and_least(block: Block, number: int) -> tuple[SSAValue, SSAValue]:
    if number < 4:
        scale, least = (block.bits(block.byte(at + number), 0, 63) for at in (4, 8))
    else:
        rest = block.byte(8 + number)
        scale, least = (
            block.joined(block.bits(rest, shift, 15), block.bits(block.byte(at + number), 6, 3), 4)
            for at, shift in ((0, 0), (4, 4))
        )
    scaled, added = block.scaled(block.half(0), scale), block.negative(block.scaled(block.half(2), least))
    return block.splat(scaled), block.splat(added)


def _q4_k(block: Block, number: int) -> Group:
    scale, least = _scale_and_least(block, number)
    integers = [block.bits(each, number % 2 * 4, 15) for each in block.bytes(16 + number // 2 * 32, 32)]
    return Group(32 * number, block.floats(integers, signed=False), scale, least)


def _q5_k(block: Block, number: int) -> Group:
    scale, least = _scale_and_least(block, number)
    low = [block.bits(each, number % 2 * 4, 15) for each in block.bytes(48 + number // 2 * 32, 32)]
    high = [block.bits(each, number, 1) for each in block.bytes(16, 32)]
    integers = [block.joined(*pair, 4) for pair in zip(low, high, strict=True)]
    return Group(32 * number, block.floats(integers, signed=False), scale, least)


def _q6_k(block: Block, number: int) -> Group:
    outer, inner = number // 8 * 32, number % 8 * 16
    low = [block.bits(each, inner // 64 * 4, 15) for each in block.bytes(2 * outer + inner % 64, 16)]
    high = [block.bits(each, inner // 32 * 2, 3) for each in block.bytes(128 + outer + inner % 32, 16)]
    integers = [block.less(block.joined(*pair, 4), 32) for pair in zip(low, high, strict=True)]
    scale = block.scaled(block.half(208), block.byte(192 + number, signed=True))
    return Group(16 * number, block.floats(integers, signed=True), block.splat(scale))


def _iq4_nl(block: Block, number: int) -> Group:
    return Group(0, block.floats(block.entries(NON_LINEAR, 2), signed=True), block.splat(block.half(0)))


def _iq4_xs(block: Block, number: int) -> Group:
    low = block.bits(block.byte(4 + number // 2), number % 2 * 4, 15)
    high = block.bits(block.byte(2 + number // 4), number % 4 * 2, 3)
    scale = block.scaled(block.half(0), block.less(block.joined(low, high, 4), 32))
    integers = block.entries(NON_LINEAR, 8 + 16 * number)
    return Group(32 * number, block.floats(integers, signed=True), block.splat(scale))


def _mxfp4(block: Block, number: int) -> Group:
    integers = block.entries(DOUBLED_FLOATS, 1)
    return Group(0, block.floats(integers, signed=True), block.splat(block.half_power(block.byte(0))))


def _u4_f32(block: Block, number: int) -> Group:
    return Group(0, block.floats(block.nibbles(8, 16), signed=False), *block.scale_and_least())


def _u8_f32(block: Block, number: int) -> Group:
    return Group(0, block.floats(block.bytes(8, 32), signed=False), *block.scale_and_least())


GROUPS: Mapping[str, tuple[int, Callable[[Block, int], Group]]] = {
    "q4_0": (1, _q4_0),
    "q4_1": (1, _q4_1),
    "q5_0": (1, _q5_0),
    "q5_1": (1, _q5_1),
    "q8_0": (1, _q8_0),
    "q4_k": (8, _q4_k),
    "q5_k": (8, _q5_k),
    "q6_k": (16, _q6_k),
    "iq4_nl": (1, _iq4_nl),
    "iq4_xs": (8, _iq4_xs),
    "mxfp4": (1, _mxfp4),
    "u4_f32": (1, _u4_f32),
    "u8_f32": (1, _u8_f32),
}
"""How many groups a block of a format has, and what unpacks one, by its number."""
WITH_LEAST = frozenset(("q4_1", "q5_1", "q4_k", "q5_k", "u4_f32", "u8_f32"))
"""The formats whose groups have a least number."""


def can_unpack(block_format: BlockFormat, lanes: int) -> bool:
    """Whether vectors of so many numbers can be unpacked in registers."""
    return block_format.name in GROUPS and lanes in (4, 8, 16)
