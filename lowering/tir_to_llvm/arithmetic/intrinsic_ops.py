"""Ops with instructions of their own: dot products of words, look-ups in tables of 16 bytes, and what AVX-512 does in
fewer instructions than LLVM selects. Other targets compute them by arithmetic. And look-ups in tables of 256 bytes.

The instructions of x86 and Arm for bytes take one unsigned and one signed factor, and do not saturate.

A quotient by `1 + e**x`, as silu has it, is part of an elementary function: its divisor is a number from 1 on or
infinite, so that an estimate of the reciprocal and a step of Newton's replace a division, which takes as long
as sixteen multiplications. It is at most 2 units in the last place off. Extrema are exact.

The maximum of x86 is its second operand where one is NaN, and where both are zeros: with a constant first it is what
IEEE 754 has, but for -0 where the constant is 0, and a sum with 0 is 0 then.

A table of 256 bytes stays in vector registers: bytes select entries without an access to memory for each. x86 shuffles
the bytes of 16 by the lower four bits of others. A table is 16 such rows. Each of the upper bits then selects half of
what the rows have given: 16 shuffles and 15 selections for a register of entries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import cast

from xdsl.dialects import arith, llvm, vector
from xdsl.dialects.builtin import FloatAttr, VectorType, bf16, f32, f64, i8, i16, i32
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.llvm.function_builder import dense_integers, element_type, lane_count, lanes_of
from lowering.llvm.llvm_builder import LLVMBuilder
from lowering.tir_to_llvm.arithmetic.arith_ops import ARITH_LOWERINGS, Lower
from lowering.tir_to_llvm.math.floats import (
    REGISTER,
    ROUNDED_AS_SET,
    Floats,
    extremum,
    has_extrema,
    has_registers,
    reciprocal,
)
from tir_dialect.analysis.patterns import power_in_sum
from tir_dialect.ops.memory import i32_array
from tir_dialect.ops.vectors import ENTRIES, PARTS, DotOp, LookupOp

_BYTES = {
    16: (("avx512vnni",), "llvm.x86.avx512.vpdpbusd.512"),
    8: (("avx512vnni", "avxvnni"), "llvm.x86.avx512.vpdpbusd.256"),
    4: (("avx512vnni", "avxvnni"), "llvm.x86.avx512.vpdpbusd.128"),
}
_ARM_BYTES = {4: (("i8mm",), "llvm.aarch64.neon.usdot.v4i32.v16i8")}
_FLOATS = {
    16: (("avx512bf16",), "llvm.x86.avx512bf16.dpbf16ps.512"),
    8: (("avx512bf16",), "llvm.x86.avx512bf16.dpbf16ps.256"),
    4: (("avx512bf16",), "llvm.x86.avx512bf16.dpbf16ps.128"),
}
_WORD = 32


def _dot(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    dot = cast("DotOp", op)
    lhs, rhs, total = operands
    if dot.is_float:
        name = _instruction(b, (_FLOATS,), lanes_of(total.type))
        if name is not None:
            return _call(b, name, (lhs, rhs, total), bf16)
        f = Floats(b, total.type)
        halves = ((_low(b, lhs), _low(b, rhs)), (_high(b, lhs), _high(b, rhs)))
        return reduce(lambda so_far, pair: f.fma(*pair, so_far), halves, total)
    if dot.lhs_dtype == i16:
        # Pairs of 16 bits with signs.
        words = (lhs, rhs)
        name = _pair_intrinsic(b, lanes_of(total.type))
        if name is not None:
            return b.wrapping(llvm.AddOp, total, b.intrinsic(name, _as_parts(b, words, i16), total.type))
        for first in (0, 1):
            left, right = (_extended_part(b, word, first, 16, signed=True) for word in words)
            total = b.wrapping(llvm.AddOp, total, b.wrapping(llvm.MulOp, left, right))
        return total
    if dot.saturating is not None:
        return _saturating_sum(b, (lhs, rhs), total)
    signs = [dtype == i8 for dtype in (dot.lhs_dtype, dot.rhs_dtype)]
    name = _instruction(b, (_BYTES, _ARM_BYTES), lanes_of(total.type)) if signs[0] != signs[1] else None
    if name is not None:
        return _call(b, name, (rhs, lhs, total) if signs[0] else (lhs, rhs, total), i8)
    words = (lhs, rhs)
    name = _pair_intrinsic(b, lanes_of(total.type))
    if name is not None:
        # Bytes at even positions and those at odd ones are extended to 16 bits, of which two make a sum.
        for is_odd in (False, True):
            left, right = (_halves(b, word, is_odd, signed) for word, signed in zip(words, signs, strict=True))
            total = b.wrapping(llvm.AddOp, total, b.intrinsic(name, (left, right), total.type))
        return total
    return _sum_of_single_bytes(b, words, signs, total, range(PARTS[i8]))


Instructions = dict[int, tuple[tuple[str, ...], str]]
"""By number of lanes: the extensions of which one is needed, and the intrinsic."""


def _instruction(b: LLVMBuilder, tables: Sequence[Instructions], lanes: int) -> str | None:
    known = [table[lanes] for table in tables if lanes in table]
    return next((name for needed, name in known if b.module.extensions.intersection(needed)), None)


def _call(b: LLVMBuilder, name: str, operands: Sequence[SSAValue], part: Attribute) -> SSAValue:
    *words, total = operands
    return b.intrinsic(name, (total, *_as_parts(b, words, part)), total.type)


def _as_parts(b: LLVMBuilder, words: Sequence[SSAValue], part: Attribute) -> list[SSAValue]:
    """The numbers that words consist of."""
    parts = VectorType(part, [lanes_of(words[0].type) * PARTS[part]])
    return [b.make(llvm.BitcastOp, (word,), parts) for word in words]


_PAIRS = {8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}
"""By number of lanes: the intrinsic of AVX2 and AVX-512 that sums the products of pairs of 16 bits."""


def _pair_intrinsic(b: LLVMBuilder, lanes: int | None) -> str | None:
    has_pairs = b.module.avx512 if lanes == 16 else b.module.vector_bits >= 256
    return _PAIRS.get(lanes or 0) if has_pairs else None


_SATURATING = {8: "llvm.x86.avx2.pmadd.ub.sw", 16: "llvm.x86.avx512.pmaddubs.w.512"}
"""The same for pairs of bytes, the first without and the second with a sign, saturated to 16 bits."""


def _saturating_sum(b: LLVMBuilder, words: Sequence[SSAValue], total: SSAValue) -> SSAValue:
    """Sums of two products of bytes, limited to 16 bits, and then of two of these."""
    lanes = lanes_of(total.type)
    name, kind = _pair_intrinsic(b, lanes), VectorType(i16, [2 * lanes])
    if name is not None:
        pairs = b.intrinsic(_SATURATING[lanes], _as_parts(b, words, i8), kind)
        return b.wrapping(llvm.AddOp, total, b.intrinsic(name, (pairs, b.integer(1, kind)), total.type))
    limits = b.integer(-(1 << 15), total.type), b.integer((1 << 15) - 1, total.type)
    for first in (0, 2):
        pair = _sum_of_single_bytes(b, words, (False, True), b.integer(0, total.type), range(first, first + 2))
        pair = b.overloaded("llvm.smax", (pair, limits[0]), total.type)
        total = b.wrapping(llvm.AddOp, total, b.overloaded("llvm.smin", (pair, limits[1]), total.type))
    return total


_LOW_BYTES = 0x00FF00FF


def _halves(b: LLVMBuilder, word: SSAValue, is_odd: bool, signed: bool) -> SSAValue:
    """The low or the high byte of each 16 bits, extended.

    Those without a sign by masks of words, which LLVM sees through where these are made by shifts.
    """
    kind, bits = VectorType(i16, [2 * lanes_of(word.type)]), 8
    if not signed:
        low = b.make(llvm.LShrOp, (word, b.integer(bits, word.type)), word.type) if is_odd else word
        return b.make(llvm.BitcastOp, (b.make(llvm.AndOp, (low, b.integer(_LOW_BYTES, word.type)), word.type),), kind)
    pair = b.make(llvm.BitcastOp, (word,), kind)
    high = pair if is_odd else b.make(llvm.ShlOp, (pair, b.integer(bits, kind)), kind)
    return b.make(llvm.AShrOp, (high, b.integer(bits, kind)), kind)


def _sum_of_single_bytes(
    b: LLVMBuilder, words: Sequence[SSAValue], signs: Sequence[bool], total: SSAValue, numbers: Iterable[int]
) -> SSAValue:
    for number in numbers:
        left, right = (
            _extended_part(b, word, number, 8, signed=signed) for word, signed in zip(words, signs, strict=True)
        )
        total = b.wrapping(llvm.AddOp, total, b.wrapping(llvm.MulOp, left, right))
    return total


def _extended_part(b: LLVMBuilder, word: SSAValue, number: int, bits: int, *, signed: bool) -> SSAValue:
    """A number of so many bits of each word, extended."""
    high = b.make(llvm.ShlOp, (word, b.integer(_WORD - bits * (number + 1), word.type)), word.type)
    return b.make(llvm.AShrOp if signed else llvm.LShrOp, (high, b.integer(_WORD - bits, word.type)), word.type)


def _low(b: LLVMBuilder, word: SSAValue) -> SSAValue:
    return _as_floats(b, b.make(llvm.ShlOp, (word, b.integer(_WORD // 2, word.type)), word.type))


def _high(b: LLVMBuilder, word: SSAValue) -> SSAValue:
    return _as_floats(b, b.make(llvm.AndOp, (word, b.integer(-1 << (_WORD // 2), word.type)), word.type))


def _as_floats(b: LLVMBuilder, word: SSAValue) -> SSAValue:
    return b.make(llvm.BitcastOp, (word,), VectorType(f32, [lanes_of(word.type)]))


DOT_LOWERINGS: dict[type[Operation], Lower] = {DotOp: _dot}


_X86 = {64: "llvm.x86.avx512.pshuf.b.512", 32: "llvm.x86.avx2.pshuf.b", 16: "llvm.x86.ssse3.pshuf.b.128"}
"""By number of bytes: each 16 of them are looked up in 16 bytes of a vector of tables."""
_ARM = {16: "llvm.aarch64.neon.tbl1.v16i8"}


def _lookup(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    lookup, (vector,) = cast("LookupOp", op), operands
    size = lanes_of(vector.type) * (1 if lookup.is_of_bytes else 4)
    numbers = b.make(llvm.BitcastOp, (vector,), _bytes(size))
    numbers = b.make(llvm.AndOp, (numbers, b.integer(ENTRIES - 1, numbers.type)), numbers.type)
    return b.make(llvm.BitcastOp, (_found(b, numbers, lookup.entries),), vector.type)


def _found(b: LLVMBuilder, numbers: SSAValue, table: Sequence[int]) -> SSAValue:
    """The entries of the table at numbers from 0 to 15."""
    size, instructions = lanes_of(numbers.type), _instructions(b)
    if not instructions:
        # Starts with the first entry; each other one replaces it where it is meant.
        found = b.integer(table[0], numbers.type)
        for number, entry in enumerate(table[1:], 1):
            is_meant = b.compare("eq", numbers, b.integer(number, numbers.type))
            found = b.select(is_meant, b.integer(entry, numbers.type), found)
        return found
    width = min((each for each in instructions if each >= size), default=0)
    if not width:  # more than a register
        halves = [_part(b, numbers, range(first, first + size // 2)) for first in (0, size // 2)]
        first, second = (_found(b, half, table) for half in halves)
        return b.make(llvm.ShuffleVectorOp, (first, second), numbers.type, {"mask": i32_array(*range(size))})
    whole = numbers if width == size else _part(b, numbers, [at % size for at in range(width)])
    tables = b.constant(dense_integers([*table] * (width // ENTRIES), i8), whole.type)
    found = b.intrinsic(instructions[width], (tables, whole), whole.type)
    return found if width == size else _part(b, found, range(size))


def _instructions(b: LLVMBuilder) -> dict[int, str]:
    """What the target has, by number of bytes."""
    if "neon" in b.module.extensions:
        return _ARM
    if b.module.vector_bits < 256:
        return {}
    return {size: name for size, name in _X86.items() if size < 64 or b.module.avx512}


def _part(b: LLVMBuilder, vector: SSAValue, order: Sequence[int]) -> SSAValue:
    """Some lanes of a vector."""
    return b.make(llvm.ShuffleVectorOp, (vector, vector), _bytes(len(order)), {"mask": i32_array(*order)})


def _bytes(size: int) -> VectorType:
    return VectorType(i8, [size])


LOOKUP_LOWERINGS: dict[type[Operation], Lower] = {LookupOp: _lookup}


def _divf(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    dividend, divisor = operands
    f = Floats(b, dividend.type)
    if power_in_sum(op.operands[1]) is not None and has_registers(f):
        return f.mul(dividend, reciprocal(f, divisor))
    return ARITH_LOWERINGS[arith.DivfOp](b, op, operands)


def _extremum(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    left, right = operands
    f, greatest = Floats(b, left.type), isinstance(op, arith.MaximumfOp)
    for value, limit in ((left, op.operands[1]), (right, op.operands[0])):
        # The number that a value is, or all lanes of it.
        owner = limit.owner
        if isinstance(owner, vector.BroadcastOp):
            owner = owner.source.owner
        constant = owner.value if isinstance(owner, arith.ConstantOp) else None
        number = constant.value.data if isinstance(constant, FloatAttr) else None
        if number is not None and _is_limit(number, greatest) and _has_ordered_extrema(f):
            return _limited(f, value, number, greatest)
    if has_extrema(f):
        return extremum(f, left, right, greatest)
    return ARITH_LOWERINGS[type(op)](b, op, operands)


def _is_limit(number: float, greatest: bool) -> bool:
    """Whether `_limited` takes a constant: not NaN, nor -0 as an upper limit, which no sum makes of +0."""
    return not math.isnan(number) and (greatest or number != 0 or math.copysign(1.0, number) > 0)


def _has_ordered_extrema(f: Floats) -> bool:
    """Whether these are floats of x86 in registers of AVX2 or more."""
    module = f.b.module
    return module.vector_bits >= 256 and "neon" not in module.extensions and element_type(f.type) in (f32, f64)


def _limited(f: Floats, value: SSAValue, limit: float, greatest: bool) -> SSAValue:
    """The greater or smaller of a value and a constant."""
    constant, lanes = f.number(limit), lane_count(f.type) or 1
    if element_type(f.type) == f32 and lanes == REGISTER and f.b.module.avx512:
        name, as_set = f"llvm.x86.avx512.{'max' if greatest else 'min'}.ps.512", f.b.integer(ROUNDED_AS_SET, i32)
        number = f.b.intrinsic(name, (constant, value, as_set), f.type)
    else:
        beyond = f.b.compare_floats("olt" if greatest else "ogt", value, constant)
        number = f.b.select(beyond, constant, value)
    return f.add(number, constant) if greatest and limit == 0 and math.copysign(1.0, limit) > 0 else number


REGISTER_LOWERINGS: dict[type[Operation], Lower] = {
    arith.DivfOp: _divf,
    arith.MaximumfOp: _extremum,
    arith.MinimumfOp: _extremum,
}
"""In place of those of all machines."""


ROW = 16
"""Entries of a row."""
_SHUFFLES = {16: "llvm.x86.ssse3.pshuf.b.128", 32: "llvm.x86.avx2.pshuf.b"}
"""By number of bytes."""
_WIDEST = max(_SHUFFLES)
_EXTENSIONS = (llvm.ZExtOp, llvm.SExtOp)


def bytes_of(b: LLVMBuilder, numbers: SSAValue) -> SSAValue | None:
    """The bytes without a sign that a vector of numbers is extended from; `None` if it is not, or cannot be looked up.

    Fewer than 16 are loaded sooner one by one.
    """
    maker = numbers.owner
    while isinstance(maker, _EXTENSIONS) and element_type(maker.operands[0].type) != i8:
        maker = maker.operands[0].owner
    count = lanes_of(numbers.type)
    suits = b.module.vector_bits >= 256 and (count in _SHUFFLES or count % _WIDEST == 0)
    return maker.operands[0] if suits and isinstance(maker, llvm.ZExtOp) else None


def look_up(b: LLVMBuilder, table: SSAValue, numbers: SSAValue, alignment: int) -> SSAValue:
    """The entries at bytes, of a table at an address."""
    count = lanes_of(numbers.type)
    width = min(count, _WIDEST)
    pieces = [
        _look_up_register(
            b, table, numbers if count == width else _lanes(b, numbers, range(first, first + width)), alignment
        )
        for first in range(0, count, width)
    ]
    while len(pieces) > 1:
        pairs = zip(pieces[::2], pieces[1::2], strict=True)
        pieces = [_joined(b, *pair) for pair in pairs]
    return pieces[0]


def _look_up_register(b: LLVMBuilder, table: SSAValue, numbers: SSAValue, alignment: int) -> SSAValue:
    kind, shuffle = numbers.type, _SHUFFLES[lanes_of(numbers.type)]
    low = b.make(llvm.AndOp, (numbers, b.integer(ROW - 1, kind)), kind)
    # An upper bit becomes that of the sign, by which registers are selected.
    moved = [b.make(llvm.ShlOp, (numbers, b.integer(7 - bit, kind)), kind) for bit in (4, 5, 6)]
    is_set = [b.compare("slt", each, b.integer(0, kind)) for each in (*moved, numbers)]

    def found(first: int, bits: int) -> SSAValue:
        """The entries of the rows from one on, which so many of the upper bits number: few are in registers at once."""
        if not bits:
            row = b.load(b.element(table, b.integer(ROW * first), i8), VectorType(i8, [ROW]), alignment)
            rows = _lanes(b, row, [lane % ROW for lane in range(lanes_of(kind))])
            return b.intrinsic(shuffle, (rows, low), kind)
        halves = [found(first + half * 2 ** (bits - 1), bits - 1) for half in (0, 1)]
        return b.select(is_set[bits - 1], halves[1], halves[0])

    return found(0, len(is_set))


def _lanes(b: LLVMBuilder, vector: SSAValue, order: Sequence[int]) -> SSAValue:
    return b.make(llvm.ShuffleVectorOp, (vector, vector), VectorType(i8, [len(order)]), {"mask": i32_array(*order)})


def _joined(b: LLVMBuilder, first: SSAValue, second: SSAValue) -> SSAValue:
    count = lanes_of(first.type) + lanes_of(second.type)
    return b.make(llvm.ShuffleVectorOp, (first, second), VectorType(i8, [count]), {"mask": i32_array(*range(count))})
