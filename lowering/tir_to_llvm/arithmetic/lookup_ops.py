"""Look-ups in tables of 16 bytes: one shuffle of bytes where the target has it, else a selection for each entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType, i8
from xdsl.ir import Operation, SSAValue

from lowering.llvm.builder.llvm_builder import LLVMBuilder
from lowering.llvm.builder.vector_types import dense_integers, lanes_of
from lowering.tir_to_llvm.arithmetic.arith_ops import Lower
from tir_dialect.ops.lookup import ENTRIES, LookupOp
from tir_dialect.ops.memory import i32_array

_X86 = {64: "llvm.x86.avx512.pshuf.b.512", 32: "llvm.x86.avx2.pshuf.b", 16: "llvm.x86.ssse3.pshuf.b.128"}
"""By number of bytes: each 16 of them are looked up in 16 bytes of a vector of tables."""
_ARM = {16: "llvm.aarch64.neon.tbl1.v16i8"}


def _lookup(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    lookup, (vector,) = cast(LookupOp, op), operands
    size = lanes_of(vector.type) * (1 if lookup.is_of_bytes else 4)
    numbers = b.make(llvm.BitcastOp, (vector,), _bytes(size))
    numbers = b.make(llvm.AndOp, (numbers, b.integer(ENTRIES - 1, numbers.type)), numbers.type)
    return b.make(llvm.BitcastOp, (_found(b, numbers, lookup.entries),), vector.type)


def _found(b: LLVMBuilder, numbers: SSAValue, table: Sequence[int]) -> SSAValue:
    """The entries of the table at numbers from 0 to 15."""
    size, instructions = lanes_of(numbers.type), _instructions(b)
    if not instructions:
        return _selected(b, numbers, table)
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


def _selected(b: LLVMBuilder, numbers: SSAValue, table: Sequence[int]) -> SSAValue:
    """Starts with the first entry; each other one replaces it where it is meant."""
    found = b.integer(table[0], numbers.type)
    for number, entry in enumerate(table[1:], 1):
        is_meant = b.compare("eq", numbers, b.integer(number, numbers.type))
        found = b.select(is_meant, b.integer(entry, numbers.type), found)
    return found


def _part(b: LLVMBuilder, vector: SSAValue, order: Sequence[int]) -> SSAValue:
    """Some lanes of a vector."""
    return b.make(llvm.ShuffleVectorOp, (vector, vector), _bytes(len(order)), {"mask": i32_array(*order)})


def _bytes(size: int) -> VectorType:
    return VectorType(i8, [size])


LOOKUP_LOWERINGS: dict[type[Operation], Lower] = {LookupOp: _lookup}
