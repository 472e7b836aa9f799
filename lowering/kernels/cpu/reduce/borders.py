"""Windows that exceed the data: which part of a reduction counts, and for which results the condition always holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.guards import Bound, Guard, find_guards, range_of
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.ops.control_flow import YieldOp
from tir_dialect.types import IteratorKind

Ranges: TypeAlias = Mapping[int, tuple[SSAValue, SSAValue]]
"""The iterations of loops over axes that have not all of them: the first, and the one behind the last."""


def no_cuts() -> Ranges:
    """All iterations of all loops."""
    return {}


@dataclass(frozen=True)
class Border:
    """A reduction of elements that count only where bounds hold; elsewhere the neutral element replaces them."""

    guard: Guard
    cuts: Mapping[int, tuple[Bound, ...]]
    """The bounds that a reduced axis decides about for all lanes together."""
    lane: Mapping[int, tuple[Bound, ...]]
    """The bounds that differ between lanes, by the reduced axis that decides about them for one lane."""

    @property
    def edges(self) -> tuple[Bound, ...]:
        """The bounds that differ between lanes."""
        return tuple(bound for bounds in self.lane.values() for bound in bounds)

    def ranges(self, code: Code, stage: Stage, at: Mapping[int, SSAValue]) -> Ranges:
        """The parts of reduced axes that count for all lanes."""
        return {axis: range_of(code, bounds, axis, stage.axes[axis].extent, at) for axis, bounds in self.cuts.items()}


def find_border(stage: Stage, reduction: Reduction, lane: int) -> Border | None:
    """The border of a reduction with lanes along an axis; `None` if there is none, or another structure."""
    guards = find_guards(stage)
    if len(guards) != 1 or not _is_skippable(guards[0], reduction):
        return None
    reduced = stage.of_kind(IteratorKind.REDUCE)
    cuts: dict[int, tuple[Bound, ...]] = {}
    edges: dict[int, tuple[Bound, ...]] = {}
    for bound in guards[0].bounds:
        moved = [axis for axis in reduced if bound.moves_with(axis)]
        if len(moved) != 1 or any(bound.step(axis) is None for axis in (lane, *moved)):
            return None
        found = edges if bound.moves_with(lane) else cuts
        found[moved[0]] = (*found.get(moved[0], ()), bound)
    return Border(guards[0], cuts, edges)


def _is_skippable(guard: Guard, reduction: Reduction) -> bool:
    """Whether what the branch gives otherwise changes no result: it is the number with which the results begin."""
    if len(reduction.combine) != 1 or reduction.sources != tuple(guard.op.outputs):
        return False
    last = guard.op.else_body.block.last_op
    return isinstance(last, YieldOp) and _constant(last.values[0]) == _constant(reduction.first[0]) is not None


def _constant(value: SSAValue) -> object:
    owner = value.owner
    return owner.value if isinstance(owner, arith.ConstantOp) else None
