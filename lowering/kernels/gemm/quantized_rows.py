"""Rows of a GEMM as integers of 8, 16 or 24 bits with a scale for each block, in the order of `block_words`.

A number is split into signed bytes, its planes: `p0 + 256 p1 + 65536 p2`. Machines that multiply pairs of 16 bits, but
no bytes, have it whole: of four numbers, one plane has the first and the third, another the second and the fourth. A
step is the greatest magnitude of a block divided by the greatest integer, so that a number is off by at most half of a
step: by 1/254, 1/65278 or 1/16711422 of that magnitude. A block with an infinity or NaN has that as its step, and only
zeros, so that what it is multiplied with becomes NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, IntegerType, VectorType, f32, i8, i16, i32
from xdsl.ir import Operation, SSAValue

from lowering.kernels.emit.code import Code
from lowering.kernels.emit.vectorization import shuffle
from lowering.kernels.gemm.block_words import LANE_FORMATS
from lowering.kernels.gemm.dot_group_contraction import has_dot_products, has_int16_products
from lowering.kernels.gemm.dot_group_micro_kernel import dot, splat, view
from lowering.kernels.gemm.problem import Gemm
from tir_dialect.block_formats import BlockFormat
from tir_dialect.ops.arithmetic import ConvertOp
from tir_dialect.ops.vectors import ui8
from tir_dialect.target import Target

MOST = {1: 127, 2: 127 * 257, 3: 127 * 65793}
"""The greatest integer by the number of planes: each plane is at most 127."""
LEAST_MAGNITUDE = 1e-30
"""The greatest magnitude of a block whose numbers count as zeros: their step may have no inverse."""


INT16_PLANES = 2
"""Planes of pairs of 16 bits."""
EVEN_BYTES = 0x00FF00FF
"""The first and the third byte of a word."""


def multiplies_int16(target: Target) -> bool:
    """Whether a machine adds up two products of 16 bits at once, but not four of bytes."""
    return has_int16_products(target) and not has_dot_products(target, i8)


@dataclass(frozen=True)
class Pattern:
    """Which block of a row each lane has: vectors take blocks of the matrix in a row, so that the pattern repeats after
    some vectors.
    """

    blocks: int
    """Blocks of a row."""
    lanes: int

    @property
    def vectors(self) -> int:
        """Vectors after which the first lane has the first block of a row again."""
        return self.blocks // gcd(self.blocks, self.lanes)

    @property
    def copies(self) -> int:
        """Rows of the matrix that these vectors have."""
        return self.vectors * self.lanes // self.blocks


class QuantizedRows:
    """Memory for some rows, and the code that fills it."""

    def __init__(self, gemm: Gemm, block_format: BlockFormat, pattern: Pattern, planes: int, rows: int):
        self._gemm, self.code, self._format, self.pattern, self.planes = gemm, gemm.code, block_format, pattern, planes
        self._lanes, self._k = pattern.lanes, pattern.blocks * block_format.elements
        lane_format = LANE_FORMATS[block_format.name]
        self._groups, self._offset = lane_format.groups, lane_format.offset
        self._words = block_format.elements // 4
        self._in_int16 = planes == INT16_PLANES and multiplies_int16(gemm.kernel.target)
        vectors, lanes, code = pattern.vectors, self._lanes, self.code
        self._size = vectors * self._words * planes * lanes
        self._packed = code.alloc([rows * self._size], i32, "row_words")
        self._steps = code.alloc([rows * vectors * lanes], f32, "row_steps")
        self._sums = code.alloc([rows * vectors * self._groups * lanes], f32, "row_sums")
        self._starts = code.alloc([rows * vectors * self._groups * planes * lanes], i32, "row_starts")
        self._integers = code.alloc([planes * self._k], i8, "row_integers")
        self._block_steps = code.alloc([pattern.blocks], f32, "block_steps")

    # What a kernel reads

    def word(self, row: SSAValue, vector: SSAValue, number: int, plane: int) -> SSAValue:
        """Four integers of each lane: of a vector of the pattern, the word of that number in its blocks."""
        code = self.code
        first = code.mul(code.add(code.mul(row, self.pattern.vectors), vector), self._words * self.planes * self._lanes)
        at = code.add(first, (number * self.planes + plane) * self._lanes)
        return code.load(self._packed, [at], self._lanes)

    def step(self, row: SSAValue, vector: SSAValue) -> SSAValue:
        """What the integers are multiplied by."""
        at = self.code.mul(self.code.add(self.code.mul(row, self.pattern.vectors), vector), self._lanes)
        return self.code.load(self._steps, [at], self._lanes)

    def sum(self, row: SSAValue, vector: SSAValue, group: int) -> SSAValue:
        """The sums of the integers of a group, as `f32`."""
        return self.code.load(self._sums, [self._of_group(row, vector, group, 1)], self._lanes)

    def start(self, row: SSAValue, vector: SSAValue, group: int, plane: int) -> SSAValue:
        """What an accumulator begins with: the offset of the weights times the sum of a plane, subtracted."""
        if not self._offset:
            return splat(self.code, 0, i32, self._lanes)
        at = self.code.add(self._of_group(row, vector, group, self.planes), plane * self._lanes)
        return self.code.load(self._starts, [at], self._lanes)

    def dot(self, weights: SSAValue, word: SSAValue, plane: int, total: SSAValue) -> SSAValue:
        """An accumulator of a plane, with the products of four bytes of weights and a word of the plane added."""
        if not self._in_int16:
            return dot(self.code, (ui8, i8), weights, word, total)
        if plane:
            weights = self._value(arith.ShRUIOp(weights, splat(self.code, 8, i32, self._lanes)))
        weights = self._value(arith.AndIOp(weights, splat(self.code, EVEN_BYTES, i32, self._lanes)))
        return dot(self.code, (i16, i16), weights, word, total)

    def combined(self, planes: list[SSAValue]) -> SSAValue:
        """Accumulators of all planes, as one vector of `f32`."""
        if not self._in_int16:
            return combined(self.code, planes, self._lanes)
        even, odd = planes
        return self._converted("sitofp", self._value(arith.AddiOp(even, odd)), f32)

    def _of_group(self, row: SSAValue, vector: SSAValue, group: int, each: int) -> SSAValue:
        code, size = self.code, each * self._lanes
        first = code.mul(code.add(code.mul(row, self.pattern.vectors), vector), self._groups * size)
        return code.add(first, group * size)

    # How it is made

    def quantize(self, row: SSAValue) -> None:
        """Fills the memory of a row."""
        code, pattern = self.code, self.pattern
        with code.loop(code.index(pattern.blocks), "block") as block:
            self._quantize_block(row, block)
        self._pack(row)
        if self._offset or self._groups_have_least:
            with code.loop(code.index(pattern.vectors), "vector") as vector:
                for group in range(self._groups):
                    self._add_up(row, vector, group)

    @property
    def _groups_have_least(self) -> bool:
        return not self._offset

    def _quantize_block(self, row: SSAValue, block: SSAValue) -> None:
        """The integers of a block go to the memory of each plane; its step, to that of the blocks."""
        code, lanes, elements = self.code, self._lanes, self._format.elements
        first = code.mul(block, elements)
        numbers = numbers_of_block(self._gemm, row, first, elements)
        step, integers = quantized(code, numbers, MOST[self.planes])
        code.store(step, self._block_steps, [block])
        for i, each in enumerate(integers):
            self._split(each, code.add(first, i * lanes))

    def _split(self, integers: SSAValue, at: SSAValue) -> None:
        """Stores the bytes of integers, or pairs of these, each plane to its memory."""
        code, lanes = self.code, self._lanes
        if self._in_int16:
            pairs = view(code, self._integers, [INT16_PLANES * self._k // 2], i16)
            halves = self._converted("trunci", integers, i16)
            for plane in range(INT16_PLANES):
                some = shuffle(code, (halves, halves), range(plane, lanes, INT16_PLANES))
                code.store(some, pairs, [code.divide(code.add(at, plane * self._k), INT16_PLANES)])
            return
        for plane in range(self.planes):
            code.store(self._converted("trunci", integers, i8), self._integers, [code.add(at, plane * self._k)])
            if plane + 1 < self.planes:
                rounded = self._value(arith.AddiOp(integers, splat(code, 128, i32, lanes)))
                integers = self._value(arith.ShRSIOp(rounded, splat(code, 8, i32, lanes)))

    def _pack(self, row: SSAValue) -> None:
        """Copies words to the lanes that have their blocks."""
        code, pattern, lanes, planes = self.code, self.pattern, self._lanes, self.planes
        words = view(code, self._integers, [planes * self._words * pattern.blocks], i32)
        start = code.mul(row, pattern.vectors)
        with (
            code.loop(code.index(pattern.copies), "copy") as copy,
            code.loop(code.index(pattern.blocks), "block") as block,
        ):
            position = code.add(code.mul(copy, pattern.blocks), block)
            lane, vector = code.remainder(position, lanes), code.add(start, code.divide(position, lanes))
            step = code.add(code.mul(vector, lanes), lane)
            code.store(code.load(self._block_steps, [block]), self._steps, [step])
            source, target = (
                code.mul(block, self._words),
                code.add(code.mul(vector, self._words * planes * lanes), lane),
            )
            with code.loop(code.index(self._words), "word") as word:
                for plane in range(planes):
                    value = code.load(words, [code.add(code.add(source, word), plane * self._words * pattern.blocks)])
                    at = code.add(code.mul(word, planes * lanes), plane * lanes)
                    code.store(value, self._packed, [code.add(target, at)])

    def _add_up(self, row: SSAValue, vector: SSAValue, group: int) -> None:
        """The sums of the planes of a group, as the kernel needs them."""
        code, lanes = self.code, self._lanes
        each, ones = self._words // self._groups, splat(code, 0x01010101, i32, lanes)
        totals: list[SSAValue] = []
        for plane in range(self.planes):
            total = splat(code, 0, i32, lanes)
            for number in range(group * each, (group + 1) * each):
                total = self.dot(ones, self.word(row, vector, number, plane), plane, total)
            totals.append(total)
        if not self._offset:
            code.store(self.combined(totals), self._sums, [self._of_group(row, vector, group, 1)])
            return
        first = self._of_group(row, vector, group, self.planes)
        for plane, total in enumerate(totals):
            value = self._value(arith.MuliOp(total, splat(code, -self._offset, i32, lanes)))
            code.store(value, self._starts, [code.add(first, plane * lanes)])

    def _value(self, op: Operation) -> SSAValue:
        return self.code.value(op)

    def _converted(self, kind: str, value: SSAValue, element: AnyFloat | IntegerType) -> SSAValue:
        return self._value(ConvertOp(kind, value, VectorType(element, [self._lanes])))


def combined(code: Code, planes: list[SSAValue], lanes: int) -> SSAValue:
    """Sums of planes, of at most 32 bits in all but the last of three, as one vector of `f32`."""
    low = planes[0]
    if len(planes) > 1:
        shifted = code.value(arith.ShLIOp(planes[1], splat(code, 8, i32, lanes)))
        low = code.value(arith.AddiOp(shifted, low))
    kind = VectorType(f32, [lanes])
    total = code.value(ConvertOp("sitofp", low, kind))
    if len(planes) < 3:
        return total
    high = code.value(ConvertOp("sitofp", planes[2], kind))
    factor = code.value(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(kind, [65536.0])))
    return code.fma(high, factor, total)


def numbers_of_block(gemm: Gemm, row: SSAValue, first: SSAValue, elements: int) -> list[SSAValue]:
    """So many numbers of a row from an element on, as vectors."""
    code, contraction = gemm.code, gemm.contraction
    return [
        gemm.vector(
            contraction.rows,
            {contraction.row: row, contraction.reduced: code.add(first, lane)},
            contraction.reduced,
            None,
        )
        for lane in range(0, elements, gemm.tiles.lanes)
    ]


def quantized(code: Code, numbers: list[SSAValue], most: int) -> tuple[SSAValue, list[SSAValue]]:
    """The step of a block, given as vectors of `f32`, with which the greatest magnitude is `most`, and its integers as
    vectors of `i32`.
    """
    # The greatest magnitude of all lanes, in each lane; NaN if there is one.
    found = [code.value(math.AbsFOp(each)) for each in numbers]
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [code.value(arith.MaximumfOp(*pair)) for pair in pairs]
    (greatest,) = found
    lanes = SSAValue.get(greatest, type=VectorType).type.get_shape()[0]
    distance = lanes // 2
    while distance:
        order = [lane ^ distance for lane in range(lanes)]
        greatest = code.value(arith.MaximumfOp(greatest, shuffle(code, (greatest, greatest), order)))
        distance //= 2
    lanes = SSAValue.get(greatest, type=VectorType).type.get_shape()[0]
    one_lane = code.alloc([lanes], f32, "greatest", scope="local")
    code.store(greatest, one_lane, [code.index(0)])
    magnitude = code.load(one_lane, [code.index(0)])
    limit = code.number(most, f32)
    step = code.value(arith.DivfOp(magnitude, limit))
    finite = code.value(arith.CmpfOp(magnitude, code.number(3.4028234663852886e38, f32), "ole"))
    counts = code.value(arith.CmpfOp(magnitude, code.number(LEAST_MAGNITUDE, f32), "oge"))
    has_step, zero = code.both(finite, counts), code.number(0.0, f32)
    inverse, limits = (
        code.splat(code.select(has_step, each, zero), lanes)
        for each in (code.value(arith.DivfOp(limit, magnitude)), limit)
    )
    integers: list[SSAValue] = []
    for number in numbers:
        # Numbers divided by their step, rounded; NaN becomes the limit.
        value = code.value(math.RoundEvenOp(code.value(arith.MulfOp(number, inverse))))
        value = code.value(arith.MinnumfOp(value, limits))
        value = code.value(arith.MaxnumfOp(value, code.value(arith.NegfOp(limits))))
        integers.append(code.value(ConvertOp("fptosi", value, VectorType(i32, [lanes]))))
    return step, integers
