"""The epilogue of a contraction: elementwise stages that are computed on its register tile before it is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.ir import Operation, SSAValue

from lowering.kernels.cpu.structure.accesses import AffineAccess
from lowering.kernels.cpu.structure.contraction import Contraction, access_of, is_chain
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.dims import constant
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import IteratorKind


@dataclass(frozen=True)
class Step:
    """A stage of an epilogue, with its axes as axes of the contraction."""

    stage: Stage
    axes: Mapping[int, int]
    """The axis of the contraction for each of the stage, except those of extent 1."""

    def access(self, op: LoadOp | StoreOp, count: int) -> AffineAccess:
        """The address of an access, by the `count` axes of the contraction."""
        own = access_of(self.stage, op)
        strides = [constant(0)] * count
        for axis, target in self.axes.items():
            strides[target] = own.strides[axis]
        return AffineAccess(own.base, tuple(strides), own.computed)


@dataclass(frozen=True)
class Epilogue:
    """The stages that are computed with a contraction, in order."""

    steps: tuple[Step, ...] = ()
    unread: frozenset[SSAValue] = frozenset()
    """Buffers that need no memory: their values stay in registers."""

    @cached_property
    def accesses(self) -> tuple[tuple[Step, LoadOp | StoreOp], ...]:
        """All accesses."""
        return tuple((step, op) for step in self.steps for op in step.stage.accesses)


def find_epilogue(contraction: Contraction, following: Sequence[Stage], own: frozenset[SSAValue]) -> Epilogue:
    """As many of the following stages as can be fused; `own` are the buffers of the function."""
    produced: dict[SSAValue, AffineAccess] = {contraction.store.buffer: _moving(contraction.output, contraction.stage)}
    steps: list[Step] = []
    for stage in following:
        step = _step(contraction, stage, produced)
        if step is None:
            break
        steps.append(step)
        produced |= {store.buffer: step.access(store, len(contraction.stage.axes)) for store in stage.stores}
    later = {inner.buffer for stage in following[len(steps) :] for inner in stage.loads}
    unread = own.intersection(produced) - later
    return Epilogue(tuple(steps), unread if steps else frozenset())


def _moving(output: AffineAccess, stage: Stage) -> AffineAccess:
    """An access without strides along axes of extent 1, which epilogue accesses do not have either."""
    pairs = zip(output.strides, stage.extents, strict=True)
    return replace(output, strides=tuple(constant(0) if extent.constant_value == 1 else each for each, extent in pairs))


def _step(contraction: Contraction, stage: Stage, produced: Mapping[SSAValue, AffineAccess]) -> Step | None:
    """A stage as a step; `None` if it reads other elements than its own, or is not vectorisable along the output."""
    if any(axis.kind is not IteratorKind.SPATIAL for axis in stage.axes) or stage.pinned or not contraction.along:
        return None
    axes = _axes(contraction, stage, produced)
    if axes is None or any(isinstance(op, IfOp) for op in stage.body) or not _has_plain_code(stage):
        return None
    step = Step(stage, axes)
    count, extents = len(contraction.stage.axes), contraction.stage.extents
    accesses = {op: step.access(op, count) for op in stage.accesses}
    joined = all(produced[op.buffer] == each for op, each in accesses.items() if _is_read(op, produced))
    suited = is_chain(accesses.values(), extents, contraction.along) and not any(
        each.computed for each in accesses.values()
    )
    written = all(op.buffer not in produced for op in accesses if isinstance(op, StoreOp))
    return step if joined and suited and written else None


def _is_read(op: Operation, produced: Mapping[SSAValue, AffineAccess]) -> bool:
    return isinstance(op, LoadOp) and op.buffer in produced


def _has_plain_code(stage: Stage) -> bool:
    return all(not op.regions for op in stage.body)


def _axes(contraction: Contraction, stage: Stage, produced: Mapping[SSAValue, AffineAccess]) -> dict[int, int] | None:
    """The axes of the contraction for those of a stage: each moves the input of the stage in the same way."""
    load = next((op for op in stage.loads if op.buffer in produced), None)
    if load is None or access_of(stage, load).base.terms:
        return None
    own, target = access_of(stage, load), produced[load.buffer]
    spatial = [axis for axis in (*contraction.batch, *contraction.row, *contraction.outer, *contraction.column)]
    found: dict[int, int] = {}
    for number, extent in enumerate(stage.extents):
        if extent.constant_value == 1:
            continue
        same = [
            a for a in spatial if target.strides[a] is own.strides[number] and contraction.stage.extents[a] is extent
        ]
        same = [a for a in same if a not in found.values()]
        if len(same) != 1:
            return None
        found[number] = same[0]
    return found if len(found) == len(spatial) else None
