"""The end of a row of attention, where a causal mask removes the columns after some position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import SSAValue

from lowering.kernels.cpu.structure.accesses import Index, linear
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.ops.control_flow import IfOp, YieldOp

LESS_EQUAL = 3
"""The number of the signed predicate."""


def find_bound(
    stages: Sequence[Stage], reductions: Mapping[Stage, Reduction], wide: frozenset[SSAValue], depth: int
) -> Index | None:
    """The last column that counts, by the axes of a stage; `None` if all may.

    What a chain stores beyond it has to be 0, and what it reduces there neutral; `wide` are the buffers with columns.
    """
    found: list[Index] = []
    zeros: set[SSAValue] = set()
    for stage in stages:
        if not any(op.buffer in wide for op in stage.accesses):
            continue
        reduction = reductions.get(stage)
        if reduction is not None and _adds_only(stage, reduction, wide, zeros):
            continue
        condition = _stored_condition(stage) if reduction is None else _reduced_condition(reduction)
        bounds = [] if condition is None else list(_bounds(stage, condition, depth))
        if len(bounds) != 1:
            return None
        found += bounds
        zeros |= {store.buffer for store in stage.stores} if reduction is None else set()
    return found[0] if found and all(each == found[0] for each in found) else None


def _adds_only(stage: Stage, reduction: Reduction, wide: frozenset[SSAValue], zeros: set[SSAValue]) -> bool:
    """Whether a stage adds up a buffer that holds zeros beyond the bound."""
    read = {load.buffer for load in stage.loads} & wide
    added = len(reduction.combine) == 1 and isinstance(reduction.combine[0], arith.AddfOp)
    sources = {source.owner for source in reduction.sources}
    return added and read <= zeros and all(load in sources for load in stage.loads if load.buffer in wide)


def _stored_condition(stage: Stage) -> SSAValue | None:
    """The condition without which a stage stores 0."""
    op = stage.stores[0].value.owner if len(stage.stores) == 1 else None
    return op.cond if isinstance(op, arith.SelectOp) and _number(op.rhs) == 0 else None


def _reduced_condition(reduction: Reduction) -> SSAValue | None:
    """The condition without which a reduction gets the number with which it starts."""
    op = reduction.sources[0].owner if len(reduction.sources) == 1 else None
    if not isinstance(op, IfOp):
        return None
    last = op.else_body.block.last_op
    other = _number(last.values[0]) if isinstance(last, YieldOp) and len(last.values) == 1 else None
    return op.condition if other is not None and other == _number(reduction.first[0]) else None


def _number(value: SSAValue) -> float | None:
    op = value.owner
    constant = op.value if isinstance(op, arith.ConstantOp) else None
    return constant.value.data if isinstance(constant, FloatAttr) else None


def _bounds(stage: Stage, condition: SSAValue, depth: int) -> Iterator[Index]:
    """The bounds up to which the column has to be for a condition, or one of its parts, to hold."""
    op = condition.owner
    if isinstance(op, arith.AndIOp):
        yield from _bounds(stage, op.lhs, depth)
        yield from _bounds(stage, op.rhs, depth)
    elif isinstance(op, arith.CmpiOp) and op.predicate.value.data == LESS_EQUAL and _is_column(stage, op.lhs, depth):
        index = _index_of(stage, op.rhs)
        if index.value is None and not any(stride.terms for stride in index.strides[depth:]):
            yield Index(index.base, index.strides[:depth])


def _is_column(stage: Stage, value: SSAValue, depth: int) -> bool:
    return len(stage.axes) > depth and stage.axes[depth].value is value


def _index_of(stage: Stage, value: SSAValue) -> Index:
    space = IndexSpace(stage.block)
    names = [space.variable(axis.value).dim.as_symbol or "" for axis in stage.axes]
    return linear(space, names, value)
