"""Elementwise stages whose operands may be broadcast, which only the call knows: their strides are flags, 0 or 1.

What follows from the flags is decided before all loops. Inner axes that are contiguous in this call are collapsed. The
innermost loop is versioned on how its operands advance, with constant strides in each version.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from xdsl.dialects import arith
from xdsl.dialects.builtin import BoolAttr, i1
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import BROADCAST_MAX_FLAGS, LONG_BODY_OPS
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.emit.loop_nest import LoopNest
from lowering.kernels.emit.vectorization import AxisGroup, accesses_of, choose_lane_axes, collapse_axes
from lowering.kernels.structure.stages import AffineAccess, Stage, work_of
from tir_dialect.dims import Bounds, Dim, constant, product
from tir_dialect.dims.bounds import Ranges
from tir_dialect.dims.division import MinAtom
from tir_dialect.dims.expr import from_atom
from tir_dialect.types import LoopKind


@lru_cache(maxsize=4096)
def is_flag(dim: Dim) -> bool:
    """Whether a stride is 0 or 1, depending on the call."""
    return isinstance(dim.as_atom, MinAtom) and Ranges(Bounds()).of(dim) == (0, 1)


def has_flag(dim: Dim) -> bool:
    """Whether a flag is among the factors of a stride."""
    return any(is_flag(from_atom(atom)) for _, monomial in dim.terms for atom, _ in monomial)


@dataclass(frozen=True)
class Broadcasts:
    """An elementwise stage whose last group of axes has the lanes, and some of whose strides are flags."""

    stage: Stage
    groups: tuple[AxisGroup, ...]
    flags: tuple[Dim, ...]
    """Strides along the lanes that are flags."""

    @property
    def lane(self) -> AxisGroup:
        """The innermost group."""
        return self.groups[-1]


def find_broadcasts(kernel: Kernel, stage: Stage) -> Broadcasts | None:
    """The operands that may be broadcast; `None` if there are none, or the lanes lie along another group."""
    accesses = list(accesses_of(kernel, stage))
    if not any(has_flag(stride) for access in accesses for stride in access.strides):
        return None
    groups = tuple(collapse_axes(kernel, [stage], range(len(stage.axes))))
    flags = dict.fromkeys(stride for access in accesses if is_flag(stride := access.strides[groups[-1].last]))
    with settled(kernel, dict.fromkeys(flags, 1)):
        lane = choose_lane_axes(kernel, [stage], groups)
    return Broadcasts(stage, groups, tuple(flags)) if lane is groups[-1] else None


@contextmanager
def settled(kernel: Kernel, flags: Mapping[Dim, int]) -> Generator[None]:
    """Code in which the values of some flags are known."""
    outer = kernel.known_strides
    kernel.known_strides = {**outer, **{flag: constant(value) for flag, value in flags.items()}}
    yield
    kernel.known_strides = outer


def emit_broadcasts(kernel: Kernel, broadcasts: Broadcasts) -> None:
    """Generates the stage. Threads have ranges of the outermost axis, or of the innermost if there is no other."""
    _Emitter(kernel, broadcasts).emit()


@dataclass
class _Run:
    """The range of the innermost loop in a call, which may have axes collapsed into it."""

    length: SSAValue
    counts: list[SSAValue]
    """The trip counts of the loops around; 1 where an axis is collapsed into the run."""
    is_all: SSAValue | None
    """Whether all axes are collapsed into the run; `None` if they never are."""


class _Emitter:
    """Generates one elementwise stage."""

    def __init__(self, kernel: Kernel, broadcasts: Broadcasts):
        self.kernel, self.code, self.broadcasts = kernel, kernel.code, broadcasts

    def emit(self) -> None:
        """Decides what is collapsed, partitions the work, and generates the loops."""
        run, groups = self._run(), self.broadcasts.groups
        with self._part(run) as (low, high):
            outer = [(self.code.index(0), count) for count in run.counts]
            inner = (self.code.index(0), run.length)
            if not outer:
                inner = (low, high)
            elif run.is_all is None:
                outer[0] = (low, high)
            else:
                outer[0] = self._either(run.is_all, (self.code.index(0), self.code.index(1)), (low, high))
                inner = self._either(run.is_all, (low, high), inner)
            for known in self._versions(self.broadcasts.flags):
                with settled(self.kernel, known):
                    self._loops(list(zip(groups[:-1], outer, strict=True)), {}, inner)

    def _run(self) -> _Run:
        """Collapses axes from the innermost on."""
        code, groups, accesses = (
            self.code,
            self.broadcasts.groups,
            list(accesses_of(self.kernel, self.broadcasts.stage)),
        )
        lane, pinned = self.broadcasts.lane, self.broadcasts.stage.pinned
        length, joined = code.dim(lane.extent), None
        counts: list[SSAValue] = []
        can_join = lane.last not in pinned
        for number in reversed(range(len(groups) - 1)):
            group = groups[number]
            can_join = can_join and group.last not in pinned
            extent = code.dim(group.extent)
            if not can_join:
                counts.insert(0, extent)
                continue
            joined = self._are_joined(accesses, group.last, [each.extent for each in groups[number + 1 :]], joined)
            counts.insert(0, code.select(joined, code.index(1), extent))
            length = code.select(joined, code.mul(length, extent), length)
        return _Run(length, counts, joined if can_join else None)

    def _are_joined(
        self, accesses: Sequence[AffineAccess], axis: int, inner: Sequence[Dim], joined: SSAValue | None
    ) -> SSAValue:
        """Whether an axis can be collapsed with those inside of it, which are collapsed already."""
        code, size = self.code, product(inner)
        pairs = {(access.strides[axis], access.strides[self.broadcasts.lane.last] * size): None for access in accesses}
        for step, wanted in pairs:
            if step is not wanted:
                same = code.compare("eq", code.dim(step), code.dim(wanted))
                joined = same if joined is None else code.value(arith.AndIOp(joined, same))
        return code.value(arith.ConstantOp(BoolAttr.from_bool(True), i1)) if joined is None else joined

    def _either(
        self, condition: SSAValue, yes: tuple[SSAValue, SSAValue], no: tuple[SSAValue, SSAValue]
    ) -> tuple[SSAValue, SSAValue]:
        low, high = (self.code.select(condition, a, b) for a, b in zip(yes, no, strict=True))
        return low, high

    @contextmanager
    def _part(self, run: _Run) -> Generator[tuple[SSAValue, SSAValue]]:
        """A thread's range of the outermost loop, or of the run if it is everything."""
        code, tasks = self.code, self.kernel.tasks(work_of(self.broadcasts.stage))
        extent, step = (run.counts[0], code.index(1)) if run.counts else (run.length, self._lanes())
        if run.counts and run.is_all is not None:
            extent, step = code.select(run.is_all, run.length, extent), code.select(run.is_all, self._lanes(), step)
        if tasks.constant_value == 1:
            yield code.index(0), extent
            return
        per_task = code.divide(code.add(extent, code.sub(code.dim(tasks), 1)), code.dim(tasks))
        chunk = code.mul(code.divide(code.add(per_task, code.sub(step, 1)), step), step)
        chunk = code.maximum(chunk, 1)
        count = code.divide(code.add(extent, code.sub(chunk, 1)), chunk)
        with code.loop(count, "task", kind=LoopKind.PARALLEL) as task:
            low = code.mul(task, chunk)
            yield low, code.minimum(extent, code.add(low, chunk))

    def _lanes(self) -> SSAValue:
        return self.code.index(self._sweep().width)

    def _sweep(self) -> LoopNest:
        return LoopNest(self.kernel, [self.broadcasts.stage], self.broadcasts.lane.axes)

    def _versions(self, flags: Sequence[Dim]) -> Generator[Mapping[Dim, int]]:
        """The values of flags for which there is a version, each inside of its condition."""
        if len(flags) > BROADCAST_MAX_FLAGS or (flags and len(self.broadcasts.stage.needed) > LONG_BODY_OPS):
            ones: SSAValue | None = None
            for flag in flags:
                one = self.code.compare("eq", self.code.dim(flag), 1)
                ones = one if ones is None else self.code.value(arith.AndIOp(ones, one))
            assert ones is not None  # there are flags
            with self.code.when(ones) as branch:
                yield dict.fromkeys(flags, 1)
            with self.code.otherwise(branch):
                yield {}
        elif not flags:
            yield {}
        else:
            with self.code.when(self.code.compare("eq", self.code.dim(flags[0]), 1)) as branch:
                for known in self._versions(flags[1:]):
                    yield {flags[0]: 1, **known}
            with self.code.otherwise(branch):
                for known in self._versions(flags[1:]):
                    yield {flags[0]: 0, **known}

    def _loops(
        self,
        rest: Sequence[tuple[AxisGroup, tuple[SSAValue, SSAValue]]],
        at: Mapping[int, SSAValue],
        run: tuple[SSAValue, SSAValue],
    ) -> None:
        if not rest:
            self._sweep().emit(at, run)
            return
        (group, (low, high)), *others = rest
        with self.code.loop(high, self.broadcasts.stage.axes[group.last].value.name_hint or "i", lower=low) as index:
            self._loops(others, {**at, group.last: index}, run)
