"""Inlines elementwise stages into their readers, so that a chain of them is one stage."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.kernels.structure.stages import Stage, is_heavy
from tir_dialect.analysis.dependence import Dependence
from tir_dialect.analysis.dims import dim_of
from tir_dialect.dims import product
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import IteratorKind

CHEAP_OPS = 8


def inline_producers(stages: Sequence[Stage]) -> bool:
    """Inlines producers; returns whether anything changed.

    An expensive producer, or one whose reader has more elements, is inlined only if it is computed no more often than
    before; copies of whole rows are inlined anywhere.
    """
    changed = False
    current = list(stages)
    for position, stage in enumerate(current):
        later = current[position + 1 :]
        if _is_plain_elementwise(stage) and _is_worthwhile(stage, later):
            _inline(stage)
            changed = True
            # The indices of the other stages have changed: they are analysed again.
            from lowering.kernels.structure.stages import find_stage

            rest = [stage for stage in stages if stage.block.parent is not None]
            found = [find_stage(stage.nest, stage.block) for stage in rest]
            inline_producers([stage for stage in found if stage is not None])
            return True
    return changed


def inline_operands(stages: Sequence[Stage]) -> bool:
    """The same for cheap producers of operands of contractions, which are packed anyway."""
    for position, stage in enumerate(stages):
        cheap = len(stage.needed) <= CHEAP_OPS and not any(op.regions or is_heavy(op) for op in stage.needed)
        if cheap and _is_plain_elementwise(stage) and _is_read_by_reductions(stage, stages[position + 1 :]):
            _inline(stage)
            return True
    return False


def _is_read_by_reductions(stage: Stage, later: Sequence[Stage]) -> bool:
    buffer = stage.stores[0].buffer
    readers = [other for other in later if any(load.buffer is buffer for load in other.loads)]
    written = {store.buffer for other in later for store in other.stores}
    unchanged = not any(load.buffer in written for load in stage.loads)
    return bool(readers) and unchanged and all(other.of_kind(IteratorKind.REDUCE) for other in readers)


def _is_plain_elementwise(stage: Stage) -> bool:
    """Whether the stage stores once, to a buffer of the function, at its own index, for all elements."""
    if len(stage.stores) != 1 or stage.init or stage.of_kind(IteratorKind.REDUCE, IteratorKind.SCAN):
        return False
    store = stage.stores[0]
    indices = stage.accesses[store]
    if not isinstance(store.buffer.owner, AllocBufferOp) or len(indices) != len(stage.axes):
        return False
    whole = all(index.is_axis(number) for number, index in enumerate(indices))
    same = tuple(store.buffer_type.shape) == stage.extents
    uses = [use.operation for use in store.buffer.uses]
    return whole and same and all(op is store or (isinstance(op, LoadOp) and op.lanes is None) for op in uses)


def _is_worthwhile(stage: Stage, later: Sequence[Stage]) -> bool:
    buffer = stage.stores[0].buffer
    readers = [(other, load) for other in later for load in other.loads if load.buffer is buffer]
    everywhere = len(readers) == sum(isinstance(use.operation, LoadOp) for use in buffer.uses)
    written = {store.buffer for other in later for store in other.stores}
    if not everywhere or not readers or any(load.buffer in written for load in stage.loads):
        return False
    size = product(stage.extents)
    if any(len(other.axes) < len(stage.axes) for other, _ in readers):
        return False
    if _copies_rows(stage):
        return True
    same = all(product(other.extents) is size for other, _ in readers)
    heavy = any(is_heavy(op) for op in stage.needed)
    cheap = not heavy and len(stage.needed) <= CHEAP_OPS
    return same and (cheap or len(readers) == 1)


def _copies_rows(stage: Stage) -> bool:
    """Whether a stage only copies, and elements of a row come from adjacent elements or the same one."""
    load, last = stage.stores[0].value.owner, len(stage.axes) - 1
    if not isinstance(load, LoadOp) or [*stage.loads] != [load]:
        return False
    if not stage.accesses[load] or not stage.axes:
        return True  # the same element everywhere
    *outer, inner = stage.accesses[load]
    alone = not any(index.strides[last].terms or _uses(index.value, stage.axes[last].value) for index in outer)
    return alone and (inner.follows(last) or _is_quotient(inner.value, stage.axes[last].value))


def _uses(value: SSAValue | None, axis: SSAValue) -> bool:
    return value is not None and bool(Dependence(lambda argument: argument is axis).of(value))


def _is_quotient(value: SSAValue | None, axis: SSAValue) -> bool:
    op = None if value is None else value.owner
    if not isinstance(op, arith.DivUIOp | arith.FloorDivSIOp) or op.lhs is not axis:
        return False
    divisor = dim_of(op.rhs)
    return divisor is not None and divisor.constant_value is not None


def _inline(stage: Stage) -> None:
    store = stage.stores[0]
    for use in list(store.buffer.uses):
        load = use.operation
        if isinstance(load, LoadOp):
            values: dict[SSAValue, SSAValue] = {
                axis.value: index for axis, index in zip(stage.axes, load.indices, strict=True)
            }
            copies: list[Operation] = []
            for op in stage.block.body.block.ops:
                if not isinstance(op, StoreOp):
                    copies.append(op.clone(value_mapper=values))
            Rewriter.insert_op(copies, InsertPoint.before(load))
            load.result.replace_all_uses_with(values.get(store.value, store.value))
            Rewriter.erase_op(load)
    alloc = store.buffer.owner
    Rewriter.erase_op(stage.nest)
    if isinstance(alloc, AllocBufferOp):
        Rewriter.erase_op(alloc)
