"""Rows of windows through memory.

The combined row is kept in a buffer padded with neutral elements, so windows that exceed the data need no condition,
and nothing is masked but the last store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.vectors import vector_iteration
from lowering.kernels.cpu.reduce.window_code import WindowCode
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.types import GLOBAL_SCOPE, BufferType


class WindowReduction(WindowCode):
    """The code of a window whose columns are combined after the row is stored."""

    def prepare(self) -> None:
        """Memory for a row, full of the number that changes nothing, and which part of it the data fills."""
        code, window = self.code, self.window
        size = window.length + window.stride * self.lanes
        scope = "local" if size.constant_value is not None else GLOBAL_SCOPE
        kind = BufferType([size], self.row_type.dtype, scope=scope, align=64)
        self.row = code.value(AllocBufferOp(kind), "row")
        first = self.in_row(self.first())
        with code.loop(code.dim(size), "w") as index:
            code.store(first, self.row, [index])
        super().prepare()

    def emit(self, at: Mapping[int, SSAValue]) -> None:
        """The results of a row."""
        self._vectors(self.low, self.high, lambda start, left: self._combine_rows(at, start, left))
        results = self.code.dim(self.window.results)
        self._vectors(self.code.index(0), results, lambda start, left: self._combine_members(at, start, left))

    def _vectors(self, low: SSAValue, high: SSAValue, vector: Callable[[SSAValue, SSAValue | None], None]) -> None:
        """Whole vectors from `low` on, then what is left."""
        code = self.code
        length = code.sub(high, low)
        count = code.divide(length, self.lanes)
        with code.loop(count, "block") as block:
            vector(code.add(low, code.mul(block, self.lanes)), None)
        done = code.mul(count, self.lanes)
        left = code.sub(length, done)
        with code.when(code.compare("sgt", left, 0)):
            vector(code.add(low, done), left)

    def _combine_rows(self, at: Mapping[int, SSAValue], start: SSAValue, left: SSAValue | None) -> None:
        """A vector of columns of all rows of the windows, combined into the row in memory."""
        sums = self.new_sums(self.window.reduction.accumulators[0].buffer_type, self.first())
        self.combine_rows(at, start, left, sums)
        # Lanes that are not there have the number that changes nothing, and a mask would hold up who loads the row.
        vector_iteration(self.kernel, start, self.lanes, None, [sums], self._keep)

    def _keep(self, index: SSAValue, old: Sequence[SSAValue]) -> Sequence[SSAValue]:
        self.code.store(self.in_row(old[0]), self.row, [index])
        return old

    def _combine_members(self, at: Mapping[int, SSAValue], start: SSAValue, left: SSAValue | None) -> None:
        """A vector of results, of which the first `left` are stored."""
        code, window, sums = self.code, self.window, self.new_sums(self.row_type, self.in_row(self.first()))
        size = self.stage.axes[window.member].extent
        with code.loop(code.dim(size), self.stage.axes[window.member].value.name_hint or "i") as member:
            further = code.mul(member, window.dilation)

            def step(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
                element = code.load(self.row, [code.add(code.mul(index, window.stride), further)])
                return [self.combined(old[0], element)]

            vector_iteration(self.kernel, start, self.lanes, None, [sums], step)
        self.finish(at, start, left, sums)
