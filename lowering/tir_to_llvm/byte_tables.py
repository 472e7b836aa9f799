"""Tables of 256 bytes in vector registers: entries that bytes select, without an access to memory for each.

x86 shuffles the bytes of 16 by the lower four bits of others. A table is 16 such rows. Each of the upper bits then
selects half of what the rows have given: 16 shuffles and 15 selections for a register of entries.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType, i8
from xdsl.ir import SSAValue

from lowering.llvm.function_builder import element_type, lanes_of
from lowering.llvm.llvm_builder import LLVMBuilder
from tir_dialect.ops.memory import i32_array

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
