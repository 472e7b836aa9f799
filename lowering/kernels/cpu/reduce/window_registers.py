"""Rows of windows in registers: two vectors of results of columns are shuffled, as AVX-512 can, and combined to as many
results of windows as these hold.

Through memory a vector would be loaded from parts of two that have just been stored. A processor forwards what is in
one store only, so it would wait for both, longer than for all else about a row of some vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.transpose import shuffle
from lowering.kernels.cpu.emit.vectors import vector_iteration
from lowering.kernels.cpu.emit.widths import masks_are_registers
from lowering.kernels.cpu.reduce.window import Window
from lowering.kernels.cpu.reduce.window_code import WindowCode
from lowering.kernels.cpu.structure.stages import Stage
from lowering.kernels.cpu.traversal.accumulators import accumulator
from tir_dialect.dims import ceildiv, constant
from tir_dialect.dtypes import byte_size

REGISTERS = 2
"""Of columns, which a shuffle takes."""


class WindowRegisters(WindowCode):
    """The code of a window whose columns are in registers."""

    def __init__(self, kernel: Kernel, stage: Stage, window: Window, one_iteration: bool = False):
        """All results of a row are those of `one_iteration`, if there is code for no others."""
        super().__init__(kernel, stage, window)
        self.one_iteration = one_iteration

    @property
    def count(self) -> int:
        """How many results an iteration has: those whose windows are in the registers."""
        return (REGISTERS * self.lanes - 1 - self.window.reach) // self.window.stride + 1

    @property
    def is_possible(self) -> bool:
        """Whether registers are shuffled and masked at will, and an iteration advances by a vector and more."""
        is_small = self.window.size <= self.lanes and byte_size(self.row_type.dtype) >= 4
        return masks_are_registers(self.kernel) and is_small and self.count * self.window.stride >= self.lanes

    @property
    def suits_long_rows(self) -> bool:
        """Whether a row of many iterations had better not go through memory: not where two iterations share many
        columns, or where it takes more than an addition to combine elements.
        """
        shared = REGISTERS * self.lanes - self.count * self.window.stride
        return isinstance(self.window.reduction.combine[0], arith.AddfOp) and 8 * shared <= REGISTERS * self.lanes

    @property
    def is_one_iteration(self) -> SSAValue:
        """Whether one iteration has all results of a row."""
        return self.code.compare("sle", self.code.dim(self.window.results), self.count)

    def emit(self, at: Mapping[int, SSAValue]) -> None:
        """The results of a row."""
        if self.one_iteration:
            self._iteration(at, self.code.index(0))
            return
        iterations = ceildiv(self.window.results, constant(self.count))
        with self.code.loop(self.code.dim(iterations), "iteration", vectorize=False) as iteration:
            self._iteration(at, self.code.mul(iteration, self.count))

    def _iteration(self, at: Mapping[int, SSAValue], first: SSAValue) -> None:
        """The results of an iteration from `first` on."""
        code, window, results = self.code, self.window, self.code.dim(self.window.results)
        columns = self._columns(at, code.mul(first, window.stride))
        left = code.minimum(code.sub(results, first), self.count)
        self._results(at, columns, 0, first, left)
        if self.count > self.lanes:
            with code.when(code.compare("sgt", left, self.lanes)):
                second = code.add(first, self.lanes)
                self._results(at, columns, self.lanes, second, code.sub(left, self.lanes))

    def _columns(self, at: Mapping[int, SSAValue], index: SSAValue) -> Sequence[SSAValue]:
        """The results of columns from an index in the row on; outside of the data the number that changes nothing."""
        code, lanes = self.code, self.lanes
        columns = [self.new_sums(self.row_type, self.in_row(self.first())) for _ in range(REGISTERS)]
        for number, sums in enumerate(columns):
            start = code.add(index, number * lanes)
            inside = code.sub(self.low, start), code.sub(self.high, start)
            with code.when(code.compare("sgt", inside[1], 0)):
                self.combine_rows(at, start, inside, sums, as_in_row=True)
        return [code.load(sums, [code.index(0)], lanes) for sums in columns]

    def _results(
        self, at: Mapping[int, SSAValue], columns: Sequence[SSAValue], before: int, first: SSAValue, left: SSAValue
    ) -> None:
        """A vector of results of an iteration, those behind so many, of which `left` are stored."""
        code, window, lanes = self.code, self.window, self.lanes
        members = [accumulator(self.kernel, self.row_type, lanes) for _ in range(window.size)]
        last = REGISTERS * lanes - 1
        for number, member in enumerate(members):
            indices = (window.stride * (before + lane) + window.dilation * number for lane in range(lanes))
            order = [min(index, last) for index in indices]  # what is beyond belongs to no result of this iteration
            code.store(shuffle(code, (columns[0], columns[1]), order), member, [code.index(0)])

        def step(index: SSAValue, old: Sequence[SSAValue]) -> Sequence[SSAValue]:
            total = old[0]
            for each in old[1:]:
                total = self.combined(total, each)
            return [total, *old[1:]]

        vector_iteration(self.kernel, code.index(0), lanes, None, members, step)
        self.finish(at, first, left, members[0])
