"""Code on words: memory viewed as words and as the numbers in them, and dot products."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, i8, i32
from xdsl.ir import Attribute, SSAValue

from lowering.kernels.cpu.emit.code import Code
from tir_dialect.dims import DimLike
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.dot import DotOp
from tir_dialect.ops.view import ViewOp
from tir_dialect.target import LINE_BYTES
from tir_dialect.types import BufferType

WORD_BYTES = 4
SIGN = -128
"""A byte of which only the highest bit is set."""
SIGN_WORD = -0x7F7F7F80
"""Four of them."""


def view(code: Code, buffer: SSAValue, shape: Sequence[DimLike], dtype: AnyFloat | IntegerType) -> SSAValue:
    """The memory of a buffer with another shape and dtype."""
    scope = SSAValue.get(buffer, type=BufferType).type.scope
    return code.value(ViewOp(buffer, BufferType(shape, dtype, scope=scope)), buffer.name_hint)


def number(code: Code, value: int, dtype: AnyFloat | IntegerType) -> SSAValue:
    """A constant."""
    return code.value(
        arith.ConstantOp(
            IntegerAttr(value, dtype) if isinstance(dtype, IntegerType) else FloatAttr(float(value), dtype)
        )
    )


def splat(code: Code, value: int, dtype: AnyFloat | IntegerType, lanes: int) -> SSAValue:
    """A vector of one constant."""
    return code.splat(number(code, value, dtype), lanes)


def dot(code: Code, dtypes: tuple[Attribute, Attribute], a: SSAValue, b: SSAValue, total: SSAValue) -> SSAValue:
    """A vector of sums with the products of the numbers in words."""
    return code.value(DotOp(dtypes, a, b, total))


def flipped(code: Code, values: SSAValue, lanes: int) -> SSAValue:
    """A vector of bytes with the other sign: 128 more or less."""
    return code.value(arith.XOrIOp(values, splat(code, SIGN, i8, lanes)))


def sign_words(code: Code, lanes: int) -> SSAValue:
    """WordContraction of four bytes of which only the highest bit is set."""
    return splat(code, SIGN_WORD, i32, lanes)


def lanes_of_line(dtype: AnyFloat | IntegerType) -> int:
    """How many numbers a cache line has."""
    return LINE_BYTES // byte_size(dtype)
