"""Which steps of a panel of bytes cannot saturate sums of two products, on machines without dot products of bytes.

Products of a row without a sign and a column with one are at most 255 times the column. So two of them fit 16 bits with
a sign, whatever the row is, if neither the positive nor the negative numbers of the pair add up to more than 128. Few
weights are large enough for more.
"""

from __future__ import annotations

from functools import reduce

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, i16, i32
from xdsl.ir import SSAValue

from lowering.kernels.gemm.dot_group_micro_kernel import GROUP_BYTES, PanelVector, Steps, in_halves, splat
from lowering.kernels.gemm.problem import Gemm
from tir_dialect.dims import Dim
from tir_dialect.ops.vectors import CompareOp, FirstLaneOp
from tir_dialect.target import LINE_BYTES

LARGEST = 128
"""To which the numbers of one sign in a pair may add up: 255 times as much fits 16 bits."""


class StepOrder:
    """The steps of a panel for each task: first those that cannot saturate, in their order, then the others."""

    def __init__(self, gemm: Gemm, depth: Dim, tasks: Dim):
        self.gemm, self.code, self.depth = gemm, gemm.code, depth
        self.order = self.code.alloc([tasks, depth], i32, "order")
        self.ends = self.code.alloc([tasks, LINE_BYTES // GROUP_BYTES], i32, "ends")
        """How many steps cannot saturate, and the first of the others in the order; a cache line for each task."""

    def of(self, task: SSAValue, columns: PanelVector) -> Steps:
        """The steps of a panel, found once for all rows."""
        code, depth, first, second = self.code, self.code.dim(self.depth), self.code.index(0), self.code.index(1)
        code.store(self._number(first), self.ends, [task, first])
        code.store(self._number(depth), self.ends, [task, second])
        with code.loop(depth, "r", vectorize=False) as r:
            front, back = (self._index(self.ends, [task, each]) for each in (first, second))
            fits = self._fits(columns, r)
            back = code.select(fits, back, code.sub(back, 1))
            code.store(self._number(r), self.order, [task, code.select(fits, front, back)])
            code.store(self._number(code.select(fits, code.add(front, 1), front)), self.ends, [task, first])
            code.store(self._number(back), self.ends, [task, second])
        return Steps(self._index(self.ends, [task, first]), lambda number: self._index(self.order, [task, number]))

    def _fits(self, columns: PanelVector, r: SSAValue) -> SSAValue:
        """Whether no pair of a step can saturate."""
        code, tiles = self.code, self.gemm.tiles
        lanes = 2 * tiles.lanes
        zero = code.zeros(i16, lanes)
        sums: list[SSAValue] = []
        for number in range(tiles.vectors):
            halves = in_halves(code, columns(r, number), tiles.lanes)
            positive, negative = (
                code.value(arith.AddiOp(code.value(kind(halves[0], zero)), code.value(kind(halves[1], zero))))
                for kind in (arith.MaxSIOp, arith.MinSIOp)
            )
            sums += [positive, code.value(arith.SubiOp(zero, negative))]
        largest = reduce(lambda a, b: code.value(arith.MaxSIOp(a, b)), sums)
        beyond = code.value(CompareOp("sgt", largest, splat(code, LARGEST, i16, lanes)))
        return code.compare("eq", code.value(FirstLaneOp(beyond)), lanes)

    def _number(self, index: SSAValue) -> SSAValue:
        return self.code.value(arith.IndexCastOp(index, i32))

    def _index(self, buffer: SSAValue, indices: list[SSAValue]) -> SSAValue:
        return self.code.value(arith.IndexCastOp(self.code.load(buffer, indices), IndexType()))
