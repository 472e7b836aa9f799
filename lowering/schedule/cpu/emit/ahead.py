"""Memory that is asked for while a row is computed: the next row's operands, and where this row's result goes.

Arithmetic on one pass over a row leaves the memory idle that other passes wait for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.kernel import Kernel, is_heavy
from lowering.schedule.cpu.structure.stages import Access, Stage
from tir_dialect.ops.memory import StoreOp


@dataclass(frozen=True)
class Ahead:
    """An access of another pass, contiguous along the row, to memory of the caller."""

    stage: Stage
    op: Access

    def start(self, kernel: Kernel, at: Mapping[int, SSAValue], row: int) -> tuple[SSAValue, SSAValue]:
        """The buffer, and the index of the first element: of the row that is read next, or of the one written now."""
        place, code = kernel.place(self.stage, self.op), kernel.code
        further = place.base if isinstance(self.op, StoreOp) else place.base + place.strides[row]
        return kernel.memory(self.op), code.linear(further, [(index, place.strides[n]) for n, index in at.items()])


def accesses_ahead(kernel: Kernel, sweeps: Sequence[Sequence[Stage]], depth: int) -> Mapping[Stage, Sequence[Ahead]]:
    """What the pass that computes most asks for, by its first stage: what the first reads and the last one writes."""
    heavy = [number for number, stages in enumerate(sweeps) if any(is_heavy(op) for s in stages for op in s.needed)]
    if not heavy or len(sweeps) < 2:
        return {}
    found: list[Ahead] = []
    for number, kind in ((0, False), (len(sweeps) - 1, True)):
        if number != heavy[0]:
            stages = sweeps[number]
            found += [Ahead(s, op) for s in stages for op in s.places if isinstance(op, StoreOp) == kind]
    return {sweeps[heavy[0]][0]: [each for each in found if _is_row(kernel, each, depth)]}


def _is_row(kernel: Kernel, ahead: Ahead, depth: int) -> bool:
    """Whether an access goes along a row of memory that is not the row's own, and every row has another."""
    place = kernel.place(ahead.stage, ahead.op)
    along = len(ahead.stage.axes) == depth + 1 and place.strides[depth].constant_value == 1
    return along and ahead.op.buffer not in kernel.rows and bool(place.strides[depth - 1].terms) and not place.computed
