"""The mean of a row and the sum of squared differences to it, in one pass instead of two.

```
s = sum(x);  mean = s / n;  v = sum((x - mean)**2)
->
k = mean of the first c elements;  s = sum(x - k);  q = sum((x - k)**2)
mean = k + s / n;  v = max(q - s * s / n, 0)
```

Rounding errors are proportional to q, which is v + n * (mean - k)**2. The c elements whose mean is k belong to the row,
so the second term is at most (n - c) / c * v: with a thirty-second of the row q is at most 32 times v, whatever the
elements are, and hardly more than v where the first ones are typical.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.kernels.cpu.row.moments import Moments, find_moments
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.analysis.structure import loop_of
from tir_dialect.dims import Dim, ceildiv, maximum, minimum, product
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.ops.scalars import DimOp
from tir_dialect.types import BufferType

PART, LANES = 32, 32
"""One of so many numbers is among the first; in a row that is one axis these are a multiple of so many."""


def join_moments(stages: Sequence[Stage]) -> bool:
    """Rewrites the code of stages; says whether there was anything to rewrite."""
    found = next(find_moments(stages), None)
    if found is not None:
        _Rewriting(found).rewrite()
    return found is not None


class _Rewriting:
    """Rewrites the one into the other."""

    def __init__(self, found: Moments):
        self.found = found
        self.sums, self.means = found.total.stores[0].buffer, found.means.stores[0].buffer
        self.heads, self.shifts = self._memory(self.sums, "heads"), self._memory(self.means, "shifts")
        self.squares = found.squares.stores[0].buffer
        self.parts = self._memory(self.squares, "parts")

    def rewrite(self) -> None:
        """All steps."""
        found = self.found
        first, second = found.first.nest, found.second.nest
        numbers = self._head * product(found.first.extents[self._head_axis + 1 :])
        shifts, shift = self._quotients(self.heads, self.shifts, numbers)
        self._only_finite(shift)
        Rewriter.insert_op([self._sums_of_heads(), shifts], InsertPoint.before(first))
        second.detach()
        Rewriter.insert_op([second, self._without_mean()], InsertPoint.after(first))
        _redirect(second, self.squares, self.parts)
        _redirect(second, self.means, self.shifts)
        self._subtract_shifts()
        self._add_shifts()

    def _memory(self, like: SSAValue, name: str) -> SSAValue:
        """More memory as some other."""
        alloc = AllocBufferOp(SSAValue.get(like, type=BufferType).type)
        alloc.buffer.name_hint = name
        Rewriter.insert_op(alloc, InsertPoint.before(self.found.first.nest))
        return alloc.buffer

    @property
    def _head_axis(self) -> int:
        """The outermost axis of the numbers of a row."""
        extents, rows = self.found.first.extents, self.found.rows
        return next((n for n in range(rows, len(extents)) if extents[n].constant_value != 1), rows)

    @property
    def _head(self) -> Dim:
        """How many values of that axis the first numbers have."""
        axis, extents = self._head_axis, self.found.first.extents
        length = extents[axis]
        if axis + 1 < len(extents):
            return ceildiv(length, PART)
        return minimum(length, LANES * ceildiv(length, LANES * PART))

    def _sums_of_heads(self) -> Operation:
        """The first numbers of each row, added up."""
        first, axis = self.found.first.nest, self._head_axis
        nest = first.clone()
        block = next(op for op in nest.walk() if isinstance(op, BlockOp))
        extent, loop = DimOp(self._head), loop_of(block.bindings[axis])
        assert loop is not None  # each loop of a stage drives an axis
        Rewriter.insert_op(extent, InsertPoint.before(first))
        loop.operands[len(loop.operands) - 1] = extent.result
        block.operands[len(block.bindings) + axis] = extent.result
        _redirect(nest, self.sums, self.heads)
        return nest

    def _quotients(self, sums: SSAValue, target: SSAValue, numbers: Dim) -> tuple[Operation, arith.DivfOp]:
        """What the means are, of other sums, for so many numbers; none are one, whose sum is 0."""
        values: dict[SSAValue, SSAValue] = {}
        nest = self.found.means.nest.clone(value_mapper=values)
        quotient = values[self.found.quotient.result].owner
        assert isinstance(quotient, arith.DivfOp)  # it is a copy of one
        count = DimOp(maximum(numbers, 1))
        wide = arith.IndexCastOp(count.result, i64)
        divisor = arith.SIToFPOp(wide.result, self.found.dtype)
        Rewriter.insert_op([count, wide, divisor], InsertPoint.before(quotient))
        quotient.operands[1] = divisor.result
        _redirect(nest, self.sums, sums)
        _redirect(nest, self.means, target)
        return nest, quotient

    def _only_finite(self, shift: arith.DivfOp) -> None:
        """Makes a shift that is no finite number 0: a mean of infinity would be infinity less infinity."""
        zero = arith.ConstantOp(FloatAttr(0.0, self.found.dtype))
        nothing = arith.SubfOp(shift.result, shift.result)
        is_finite = arith.CmpfOp(nothing.result, zero.result, "oeq")
        kept = arith.SelectOp(is_finite.result, shift.result, zero.result)
        store = next(use.operation for use in shift.result.uses if isinstance(use.operation, StoreOp))
        Rewriter.insert_op([zero, nothing, is_finite, kept], InsertPoint.before(store))
        store.operands[0] = kept.result

    def _without_mean(self) -> Operation:
        """The squares of how far numbers are from the mean, from those of how far they are from the shift."""
        nest, quotient = self._quotients(self.sums, self.squares, self.found.count)
        total = quotient.lhs.owner
        assert isinstance(total, LoadOp)  # as in what it is a copy of
        product = arith.MulfOp(quotient.result, total.result)
        parts = LoadOp(self.parts, total.indices)
        rest = arith.SubfOp(parts.result, product.result)
        zero = arith.ConstantOp(FloatAttr(0.0, self.found.dtype))
        result = arith.MaximumfOp(rest.result, zero.result)
        store = next(use.operation for use in quotient.result.uses if isinstance(use.operation, StoreOp))
        Rewriter.insert_op([product, parts, rest, zero, result], InsertPoint.before(store))
        store.operands[0] = result.result
        return nest

    def _subtract_shifts(self) -> None:
        """From each number of the first sums."""
        (combine,), (number,) = self.found.total.combine, self.found.total.sources
        load = LoadOp(self.shifts, self.found.total.accumulators[0].indices)
        apart = arith.SubfOp(number, load.result)
        Rewriter.insert_op([load, apart], InsertPoint.before(combine))
        combine.operands[next(n for n, operand in enumerate(combine.operands) if operand is number)] = apart.result

    def _add_shifts(self) -> None:
        """To the means of what is apart from them."""
        quotient, store = self.found.quotient, self.found.means.stores[0]
        load = LoadOp(self.shifts, store.indices)
        mean = arith.AddfOp(quotient.result, load.result)
        Rewriter.insert_op([load, mean], InsertPoint.before(store))
        store.operands[0] = mean.result


def _redirect(nest: Operation, old: SSAValue, new: SSAValue) -> None:
    """Accesses to one memory become those to another."""
    for op in nest.walk():
        for number, operand in enumerate(op.operands):
            if operand is old:
                op.operands[number] = new
