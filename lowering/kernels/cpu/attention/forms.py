"""Addresses in attention as linear forms of the axes of its first product, and the maps computed on its output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.structure.accesses import Index
from lowering.kernels.cpu.structure.contraction import Contraction
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.dims import Dim
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.types import IteratorKind


@dataclass(frozen=True)
class Form:
    """A value that is linear in the axes of the first product."""

    base: Dim
    terms: frozenset[tuple[int, Dim]]


COLUMN = -1
"""Stands for the column of the second product among the axes of the first."""


@dataclass(frozen=True)
class Step:
    """A map that is computed from a vector at hand; for each axis, the value that it has."""

    stage: Stage
    axes: tuple[Form, ...]


def forms(indices: Iterable[Index], axes: Mapping[int, int]) -> tuple[Form, ...]:
    """Indices as forms, with other numbers for their axes; axes without a number have one value, which is 0."""
    return tuple(
        Form(
            index.base,
            frozenset((axes[axis], step) for axis, step in enumerate(index.strides) if axis in axes and step.terms),
        )
        for index in indices
    )


def row_forms(scores: Contraction) -> tuple[Form, ...]:
    """The leading dimensions of the scores, which choose a row."""
    return forms(scores.stage.accesses[scores.store][:-1], {axis: axis for axis in (*scores.batch, *scores.row)})


def is_vector_map(stage: Stage, axis: int) -> bool:
    """Whether a stage can be computed for a vector of values of an axis."""
    if any(each.kind is not IteratorKind.SPATIAL for each in stage.axes) or axis in stage.pinned or stage.init:
        return False
    plain = all(index.value is None for indices in stage.accesses.values() for index in indices)
    return plain and not any(isinstance(op, IfOp) for op in stage.body)


class Following:
    """Finds what is computed of the totals."""

    def __init__(self, scores: Contraction, totals: Contraction, axes: Mapping[int, int], narrow: frozenset[SSAValue]):
        known = {**axes, totals.column[0]: COLUMN}
        self.known = {totals.store.buffer: forms(totals.stage.accesses[totals.store], known)}
        self.known |= dict.fromkeys(narrow, row_forms(scores))

    def steps(self, stages: Sequence[Stage]) -> list[Step]:
        """As many of the stages as can be computed where a vector of totals is."""
        found: list[Step] = []
        for stage in stages:
            step = self._step(stage)
            if step is None:
                break
            found.append(step)
            for store in stage.stores:
                self.known[store.buffer] = tuple(_form_at(index, step.axes) for index in stage.accesses[store])
        return found

    def _step(self, stage: Stage) -> Step | None:
        axes: dict[int, Form] = {}
        for load in stage.loads:
            known = self.known.get(load.buffer)
            for number, index in enumerate(stage.accesses[load] if known is not None else ()):
                axis = next((axis for axis in range(len(stage.axes)) if index.is_axis(axis)), None)
                if axis is None or known is None or axes.setdefault(axis, known[number]) != known[number]:
                    return None
        if set(axes) != set(range(len(stage.axes))) or any(store.buffer in self.known for store in stage.stores):
            return None
        column = next((axis for axis, form in axes.items() if _has_column(form)), None)
        plain = all(_is_permutation(stage, store) for store in stage.stores)
        if column is None or not plain or not is_vector_map(stage, column):
            return None
        return Step(stage, tuple(axes[axis] for axis in range(len(stage.axes))))


def _has_column(form: Form) -> bool:
    return any(axis == COLUMN for axis, _ in form.terms)


def _is_permutation(stage: Stage, store: StoreOp) -> bool:
    return all(any(index.is_axis(axis) for axis in range(len(stage.axes))) for index in stage.accesses[store])


def _form_at(index: Index, axes: Sequence[Form]) -> Form:
    return next(axes[axis] for axis in range(len(axes)) if index.is_axis(axis))
