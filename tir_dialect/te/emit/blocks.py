"""Emission of computes: a perfect nest of loops around one block named after the compute."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tir_dialect.ops.annotations import annotations_attr
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.te import nodes
from tir_dialect.te.compute import Compute
from tir_dialect.te.emit.scalar import Names, ScalarEmitter
from tir_dialect.te.emit.signs import Signs
from tir_dialect.te.expr import Expr
from tir_dialect.te.nodes import IterVar
from tir_dialect.te.tree import substitute
from tir_dialect.types import IteratorKind


def nest_of(name: str, axes: Sequence[IterVar], extents: Sequence[SSAValue]) -> tuple[ForOp | BlockOp, BlockOp]:
    """A loop per axis around an empty block with an iterator per axis: the outermost op, and the block."""
    loops = [ForOp(extent, name_hint=axis.name) for axis, extent in zip(axes, extents, strict=True)]
    bindings = [loop.induction_var for loop in loops]
    kinds = [IteratorKind(axis.kind) for axis in axes]
    iterators = list(zip(kinds, bindings, extents, strict=True))
    block = BlockOp(name, iterators, name_hints=[f"v{axis.name}" for axis in axes])
    inner: ForOp | BlockOp = block
    for loop in reversed(loops):
        loop.body.block.add_op(inner)
        inner = loop
    return inner, block


def emit_compute(name: str, compute: Compute, extents: Sequence[SSAValue], names: Names) -> ForOp | BlockOp:
    """The nest of a compute; `extents` are those of the spatial axes, then those of the reduction axes."""
    reduction = compute.reduction
    outer, block = nest_of(name, compute.all_axes, extents)
    block.annotations = annotations_attr(compute.annotations)
    names.variables.update(zip(compute.all_axes, block.body.block.args, strict=True))
    emitter = ScalarEmitter(block.body.block, names, Signs(compute.all_axes))
    if reduction is None:
        _store(emitter, compute, emitter.emit(*compute.bodies), names)
    else:
        _emit_reduction(emitter, compute, reduction, names)
    return outer


def _store(emitter: ScalarEmitter, compute: Compute, values: Sequence[SSAValue], names: Names) -> None:
    indices = [names.variables[axis] for axis in compute.axes]
    for tensor, value in zip(compute.outputs, values, strict=True):
        emitter.block.add_op(StoreOp(value, names.buffers[tensor], indices))


def _emit_reduction(emitter: ScalarEmitter, compute: Compute, reduction: nodes.Reduce, names: Names) -> None:
    init = InitOp()
    emitter.block.add_op(init)
    at_start = emitter.inside(init.body.block)
    identities = reduction.reducer.identities([source.dtype for source in reduction.operands])
    _store(at_start, compute, at_start.emit(*identities), names)
    # an axis that starts elsewhere than at 0 is counted from 0
    shifted: dict[Expr, Expr] = {axis: axis + axis.lo for axis in reduction.axes if axis.lo.terms}
    sources = substitute(reduction.operands, shifted)
    accumulators = tuple(tensor[compute.axes] for tensor in compute.outputs)
    combined = reduction.reducer.combined(accumulators, sources)
    _store(emitter, compute, emitter.emit(*combined), names)
