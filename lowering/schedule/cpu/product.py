"""What the rules for contractions share: the operands, their sizes, and how their elements are reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import SSAValue

from lowering.schedule.cpu.code import Code
from lowering.schedule.cpu.contraction import Contraction, Operand
from tir_dialect.dims import Dim, constant, floordiv, maximum, minimum, product

Place = Mapping[int, SSAValue]
"""The value of iterators by their number."""


@dataclass(frozen=True)
class Product:
    """A contraction whose code is being written; its row axes count as one."""

    code: Code
    what: Contraction
    cores: int
    arguments: Mapping[SSAValue, SSAValue]
    """The buffers of the new function for those of the contraction."""

    @cached_property
    def m(self) -> Dim:
        """Rows."""
        return product(self.what.extents[axis] for axis in self.what.row)

    @property
    def n(self) -> Dim:
        """Columns."""
        return self.what.extents[self.what.column[0]]

    @property
    def k(self) -> Dim:
        """Length of the sums."""
        return self.what.extents[self.what.reduced[0]]

    def threads(self, least: int) -> Dim:
        """How many threads have `least` products of two numbers each to do, at least one and at most all."""
        worthwhile = floordiv(self.m * self.n * self.k, constant(least))
        return maximum(minimum(worthwhile, constant(self.cores)), constant(1))

    def row_place(self, row: SSAValue) -> dict[int, SSAValue]:
        """The indices along the row axes for the number of a row."""
        place: dict[int, SSAValue] = {}
        rest = row
        for axis in reversed(self.what.row[1:]):
            extent = self.code.dim(self.what.extents[axis])
            place[axis] = self.code.remainder(rest, extent)
            rest = self.code.divide(rest, extent)
        if self.what.row:
            place[self.what.row[0]] = rest
        return place

    def load(self, operand: Operand, place: Place, lanes: int | None = None, mask: SSAValue | None = None) -> SSAValue:
        """An element, or as many along the last dimension as a vector has lanes."""
        return self.code.load(self.arguments[operand.buffer], [place[axis] for axis in operand.axes], lanes, mask)

    def store(self, value: SSAValue, place: Place, mask: SSAValue) -> None:
        """Puts a vector into the output."""
        output = self.what.output
        self.code.store(value, self.arguments[output.buffer], [place[axis] for axis in output.axes], mask)
