"""Bands of a few rows of a matrix that are read side by side, and what is asked for of the next band meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.prefetching import is_far
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import LoadOp
from tir_dialect.target import LINE_BYTES

BAND = 8
"""Rows that are read side by side: as many streams as the machine follows."""

PART_OF_L3 = 2
"""A matrix that takes more than such a part of the last-level cache comes from memory, for the most part."""


@dataclass(frozen=True)
class NextBand:
    """The elements in the next band of rows, for matrices that come from memory.

    Prefetchers follow a row to the end of a page, and begin anew in the next band. What is asked for is in the
    second-level cache when its turn comes; what is asked for in the first one instead takes slots of loads.
    """

    kernel: Kernel
    stage: Stage
    loads: Sequence[LoadOp]
    rows: int
    lane: int
    """The axes along rows and lanes."""

    @staticmethod
    def of(kernel: Kernel, stage: Stage, data: Iterable[LoadOp], rows: int, lane: int) -> NextBand | None:
        """The data that lies along rows; `None` if none does, or a vector is not a whole line of the cache."""
        if kernel.target.vector_bits < 8 * LINE_BYTES:
            return None
        moving: list[LoadOp] = []
        for load in data:
            access = kernel.access(stage, load)
            along = access.strides[lane].constant_value == 1 and access.strides[rows].terms
            if along and not access.computed and load in stage.needed and load.buffer not in kernel.rows:
                moving.append(load)
        return NextBand(kernel, stage, moving, rows, lane) if moving else None

    def ask(self, at: Mapping[int, SSAValue], start: SSAValue, count: int) -> None:
        """Asks for so many elements from `start` on, in the row of this one's number in the next band."""
        code = self.kernel.code
        for load in self.loads:
            access, memory = self.kernel.access(self.stage, load), self.kernel.memory(load)
            line = max(1, LINE_BYTES // byte_size(load.buffer_type.dtype))
            with code.when(self._is_wanted(load)):
                base = access.base + BAND * access.strides[self.rows]
                there = code.linear(base, [(value, access.strides[axis]) for axis, value in at.items()])
                for further in range(0, count, line):
                    code.prefetch(memory, [code.add(code.add(there, start), further)], 2)

    def _is_wanted(self, load: LoadOp) -> SSAValue:
        """Whether the matrix comes from memory, and a band of it has room in the second-level cache."""
        code, size = self.kernel.code, byte_size(load.buffer_type.dtype)
        step = self.kernel.access(self.stage, load).strides[self.rows]
        fits = code.compare("sle", code.dim(step), self.kernel.target.l2_bytes // BAND // size)
        return code.both(is_far(self.kernel, load, PART_OF_L3), fits)
