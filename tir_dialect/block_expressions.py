"""Block-quantised weights as tensor expressions: the numbers of a tensor of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tir_dialect import te
from tir_dialect.block_formats import BlockFormat
from tir_dialect.dims import Dim


class _Block:
    """The bytes of a block, as `tir_dialect.block_formats.Bytes`; each number is a scalar expression."""

    def __init__(self, packed: te.Tensor, row: Sequence[te.Expr | Dim], first: te.Expr):
        self._packed, self._row, self._first = packed, row, first

    def byte(self, at: te.Expr | int) -> te.Expr:
        return te.cast(self._byte(at), "i32")

    def _byte(self, at: te.Expr | int) -> te.Expr:
        return self._packed[(*self._row, self._first + at)]

    def half(self, at: int) -> te.Expr:
        low, high = (te.cast(self._byte(position), "ui16") for position in (at, at + 1))
        return te.cast(te.reinterpret(low | high << 8, "f16"), "f32")

    def single(self, at: int) -> te.Expr:
        parts = (te.cast(self._byte(at + number), "ui32") << 8 * number for number in range(4))
        return te.reinterpret(reduce(lambda low, high: low | high, parts), "f32")

    def integer(self, index: te.Expr | int) -> te.Expr:
        return te.const(index, "i32") if isinstance(index, int) else te.cast(index, "i32")

    def real(self, integer: te.Expr) -> te.Expr:
        return te.cast(integer, "f32")

    def float_of_bits(self, integer: te.Expr) -> te.Expr:
        return te.reinterpret(integer, "f32")

    def select(self, condition: te.Expr, then: te.Expr, otherwise: te.Expr) -> te.Expr:
        return te.select(condition, then, otherwise)

    def element(self, values: Sequence[int], integer: te.Expr) -> te.Expr:
        """From eight bytes in a word, of which there are two."""
        low, high = (
            te.const(int.from_bytes(bytes(value & 255 for value in half), "little", signed=True), "i64")
            for half in (values[:8], values[8:])
        )
        word = te.select(integer < 8, low, high)
        byte = te.cast(word >> te.cast((integer & 7) << 3, "i64"), "i32") & 255
        return (byte ^ 128) - 128


def decoded(
    packed: te.Tensor,
    shape: Sequence[int | Dim],
    block_format: BlockFormat,
    dtype: str = "f32",
    *,
    leading: Sequence[Dim] = (),
) -> te.Tensor:
    """The numbers of rows of whole blocks; `shape` is that of the bytes with the columns in the last position.

    The bytes are those at the indices `leading` of the first axes, which the result does not have.
    """

    def element(*i: te.Expr) -> te.Expr:
        *row, column = i
        block = _Block(packed, (*leading, *row), column // block_format.elements * block_format.bytes)
        return te.cast(block_format.formula(block, column % block_format.elements), dtype)

    return te.compute(shape, element, name=f"dequantize_{block_format.name}")
