"""Recognises stages that pad data with a constant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from lowering.kernels.structure.stages import Stage, only_stage
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import blocks_in
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp

Comparison: TypeAlias = tuple[str, Dim | None, Dim | None]
"""A comparison of two indices."""


@dataclass(frozen=True)
class Padding:
    """`Y[i] = X[i - low]` where that is inside of `X`, else a constant."""

    stage: Stage
    load: LoadOp
    filler: arith.ConstantOp
    low: tuple[int, ...]
    """Padding elements before the data, by dimension."""

    @property
    def is_zero(self) -> bool:
        """Whether the constant is zero."""
        value = self.filler.value
        return isinstance(value, FloatAttr | IntegerAttr) and value.value.data == 0

    @property
    def row(self) -> int:
        """The last dimension that is padded: inner dimensions are copied with it."""
        changed = [axis for axis in range(len(self.low)) if self.is_padded(axis)]
        return changed[-1]

    def is_padded(self, axis: int) -> bool:
        """Whether a dimension is padded."""
        return bool(self.low[axis]) or self.data[axis] is not self.stage.extents[axis]

    @property
    def data(self) -> tuple[Dim, ...]:
        """The shape of the data."""
        return tuple(self.load.buffer_type.shape)


def find_padding(stage: Stage, *, any_end: bool = False) -> Padding | None:
    """The padding that a stage is; `None` if it is none. With `any_end` there may be any number of elements after the
    data, where else it has to be known.
    """
    store = stage.stores[0] if len(stage.stores) == 1 else None
    branch = None if store is None else store.value.owner
    if store is None or not isinstance(branch, IfOp) or len(branch.outputs) != 1:
        return None
    load, filler = _yielded(branch, True), _yielded(branch, False)
    if not isinstance(load, LoadOp) or not isinstance(filler, arith.ConstantOp):
        return None
    if not all(index.is_axis(axis) for axis, index in enumerate(stage.accesses[store])):
        return None
    found = _offsets(stage, load, branch.condition)
    if found is None or len(found) != len(stage.axes) or tuple(store.buffer_type.shape) != stage.extents:
        return None
    padding = Padding(stage, load, filler, found)
    if any_end:
        return padding if min(found) >= 0 else None
    ends = ((padding.stage.extents[axis] - padding.data[axis]).constant_value for axis in range(len(found)))
    known = all(end is not None and end >= low >= 0 for end, low in zip(ends, found, strict=True))
    return padding if known and any(map(padding.is_padded, range(len(found)))) else None


def pads_bytes(func: PrimFuncOp) -> bool:
    """Whether a function does nothing but put a constant around bytes."""
    blocks = blocks_in(func.body)
    if len(blocks) != 1 or not any(isinstance(op, IfOp) for op in blocks[0].body.block.ops):
        return False
    stage = only_stage(func)
    padding = None if stage is None else find_padding(stage)
    return padding is not None and byte_size(padding.load.buffer_type.dtype) == 1


def _yielded(branch: IfOp, taken: bool) -> Operation | None:
    block = (branch.then_body if taken else branch.else_body).block
    last = block.last_op
    owner = last.values[0].owner if isinstance(last, YieldOp) else None
    return owner if isinstance(owner, Operation) else None


def _offsets(stage: Stage, load: LoadOp, condition: SSAValue) -> tuple[int, ...] | None:
    """The offset of each index, if the condition says exactly that all indices are in bounds."""
    space = IndexSpace(stage.block)
    indices = [space.dim_of(index) for index in load.indices]
    axes = [space.variable(axis.value).dim for axis in stage.axes]
    if len(indices) != len(axes) or any(index is None for index in indices):
        return None
    shape = load.buffer_type.shape
    offsets = [axis - index for axis, index in zip(axes, indices, strict=True) if index is not None]
    bounds = [{("sge", index, constant(0)), ("slt", index, size)} for index, size in zip(indices, shape, strict=True)]
    moved = [d for d, low in enumerate(offsets) if low.terms or shape[d] is not stage.extents[d]]
    wanted = set[Comparison]().union(*(bounds[d] for d in moved))
    tested = {(kind, space.dim_of(a), space.dim_of(b)) for kind, a, b in _comparisons(condition)}
    known = set[Comparison]().union(*bounds)  # an axis that is not padded may be tested, too
    found = tuple(low.constant_value for low in offsets)
    return tuple(low for low in found if low is not None) if wanted <= tested <= known and None not in found else None


def _comparisons(condition: SSAValue) -> Iterator[tuple[str, SSAValue, SSAValue]]:
    """The conjuncts of a condition; `unknown` for anything but comparisons."""
    op = condition.owner
    if isinstance(op, arith.AndIOp):
        yield from _comparisons(op.lhs)
        yield from _comparisons(op.rhs)
    elif isinstance(op, arith.CmpiOp):
        yield arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data], op.lhs, op.rhs
    else:
        yield "unknown", condition, condition
