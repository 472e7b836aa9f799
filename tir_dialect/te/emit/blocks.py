"""Emission of computes: a perfect nest of loops around one block named after the compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation

from tir_dialect.ops.annotations import annotations_attr
from tir_dialect.ops.blocks import InitOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.te import nodes
from tir_dialect.te.compute import Nest
from tir_dialect.te.emit.nests import ExtentOf, NestBuilder
from tir_dialect.te.emit.scalar import Names, ScalarEmitter
from tir_dialect.te.expr import Expr
from tir_dialect.te.signs import Signs
from tir_dialect.te.tree import free_variables, substitute


def emit_compute(
    nest: Nest, names: Names, extent_of: ExtentOf, unique: Callable[[str], str], builder: NestBuilder | None = None
) -> list[Operation]:
    """The loops and the block of a compute, with what their extents need; `builder` may have loops already."""
    outer = builder or NestBuilder(names, extent_of)
    name = unique(nest.name)
    reduction = nest.reduction
    ops: list[Operation] = []
    if reduction is not None and _depends_on_itself(reduction):
        ops = _emit_init(unique(f"{name}_init"), nest, reduction, outer.copy())
    for axis in nest.axes[outer.rank :]:
        outer.loop(axis, axis.extent)
    shifted = {} if reduction is None else _reduction_loops(reduction, outer)
    block = outer.block(name)
    block.annotations = annotations_attr(nest.annotations)
    emitter = ScalarEmitter(block.body.block, names, Signs(nest.all_axes))
    if reduction is None:
        _store(emitter, nest, nest.bodies, names)
    else:
        if not ops:
            init = InitOp()
            emitter.block.add_op(init)
            _store(emitter.inside(init.body.block), nest, reduction.starts, names)
        accumulators = tuple(tensor[nest.places] for tensor in nest.outputs)
        combined = reduction.reducer.combined(accumulators, substitute(reduction.sources, shifted))
        _store(emitter, nest, combined, names)
    return [*ops, *outer.finish()]


def _depends_on_itself(reduction: nodes.Reduce) -> bool:
    """Whether the extent of an axis depends on another: no first instance starts the reduction then."""
    own = set(reduction.axes)
    return not own.isdisjoint(free_variables(extent for _, extent in reduction.domains))


def _emit_init(name: str, nest: Nest, reduction: nodes.Reduce, builder: NestBuilder) -> list[Operation]:
    """The start of a reduction as a nest of its own."""
    for axis in nest.axes[builder.rank :]:
        builder.loop(axis, axis.extent)
    block = builder.block(name)
    _store(ScalarEmitter(block.body.block, builder.names, Signs(nest.axes)), nest, reduction.starts, builder.names)
    return builder.finish()


def _reduction_loops(reduction: nodes.Reduce, builder: NestBuilder) -> dict[Expr, Expr]:
    """Adds the loops of a reduction, which count from 0; what axes are that start elsewhere."""
    own = set(reduction.axes)
    extents = [extent for _, extent in reduction.domains]
    # a reduction that may be empty starts where all of its extents are known
    builder.evaluate([extent for extent in extents if own.isdisjoint(free_variables((extent,)))])
    shifted: dict[Expr, Expr] = {}
    for axis, (lo, extent) in zip(reduction.axes, reduction.domains, strict=True):
        first, length = substitute((lo, extent), shifted)
        builder.loop(axis, length)
        if not _is_zero(first):
            shifted[axis] = axis + first
    return shifted


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, nodes.Size) and not expr.dim.terms


def _store(emitter: ScalarEmitter, nest: Nest, values: Sequence[Expr], names: Names) -> None:
    emitted = emitter.emit(*values)
    indices = emitter.emit(*nest.places)
    for tensor, value in zip(nest.outputs, emitted, strict=True):
        emitter.block.add_op(StoreOp(value, names.buffers[tensor], indices))
