"""Operands in panels: `B[r, j]` at `[j floordiv w, r, j mod w]`, as `pack-weights` arranges constants.

A panel has `w` columns, those of a register tile, one step of the reduction after the other. Within a panel addresses
are as linear as without panels; from panel to panel they jump.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.kernels.cpu.structure.accesses import Index
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.analysis.dims import dim_of
from tir_dialect.dims import constant
from tir_dialect.ops.memory import LoadOp


@dataclass(frozen=True)
class Panels:
    """The one load of a stage that is from panels, as if all columns were in the first of them."""

    stage: Stage
    load: LoadOp
    column: int
    """The axis of the columns."""
    reduced: int
    """The axis along the sum."""
    width: int
    """Columns in a panel."""


def find_panels(stage: Stage) -> Panels | None:
    """The load of a stage from panels; `None` if there is none, or more than one."""
    found = [panels for load in stage.loads if (panels := _panels(stage, load)) is not None]
    return found[0] if len(found) == 1 else None


def _panels(stage: Stage, load: LoadOp) -> Panels | None:
    shape, indices = load.buffer_type.shape, stage.accesses[load]
    if not reads_panels(load) or any(index.value is not None for index in (*indices[:-3], indices[-2])):
        return None
    axes = range(len(stage.axes))
    column = next((axis for axis in axes if stage.axes[axis].value is _column(load)), None)
    reduced = next((axis for axis in axes if indices[-2].is_axis(axis)), None)
    width = shape[-1].constant_value
    if column is None or reduced is None or width is None or stage.extents[reduced] is not shape[-2]:
        return None
    zeros = (constant(0),) * len(axes)
    last = tuple(constant(int(axis == column)) for axis in axes)
    near = (*indices[:-3], Index(constant(0), zeros), indices[-2], Index(constant(0), last))
    return Panels(replace(stage, accesses={**stage.accesses, load: near}), load, column, reduced, width)


def reads_panels(load: LoadOp) -> bool:
    """Whether a load is at `[.., j floordiv w, r, j mod w]` of a buffer whose last dimension is `w`."""
    if len(load.indices) < 3:
        return False
    width, within = load.buffer_type.shape[-1], load.indices[-1].owner
    quotient, column = load.indices[-3].owner, _column(load)
    if column is None or not isinstance(within, arith.RemUIOp) or not isinstance(quotient, _QUOTIENTS):
        return False
    return quotient.lhs is column and dim_of(quotient.rhs) is width and dim_of(within.rhs) is width


_QUOTIENTS = (arith.DivUIOp, arith.FloorDivSIOp)


def _column(load: LoadOp) -> SSAValue | None:
    """What the last index of a load is a remainder of."""
    within = load.indices[-1].owner
    return within.lhs if isinstance(within, arith.RemUIOp) else None
