"""Reductions to a single result: threads reduce parts, which are then combined in order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import Kernel, work_of
from lowering.kernels.cpu.emit.widths import masks_are_cheap
from lowering.kernels.cpu.reduce.arg_reduction import has_lanes, order_of_all
from lowering.kernels.cpu.reduce.arg_rows import ArgReduction
from lowering.kernels.cpu.reduce.column_reduction import one_by_one, reduce_rows
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage
from lowering.kernels.cpu.traversal.accumulators import Accumulators
from lowering.kernels.cpu.traversal.sweep import Sweep
from tir_dialect.dims import ceildiv, constant, maximum
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.types import BufferType, LoopKind


def emit_shared_reduction(kernel: Kernel, stage: Stage, reduction: Reduction) -> None:
    """The code of a stage without axes that stay."""
    order = order_of_all(kernel, stage, reduction) if has_lanes(kernel) else None
    if order is not None:
        _emit_shared_search(kernel, stage, reduction, ArgReduction(kernel, stage, reduction, order))
        return
    sweep = Sweep(kernel, [stage], range(len(stage.axes)), {0: reduction}, asks=True)
    tasks = kernel.tasks(work_of(stage))
    outermost = sweep.outermost
    if tasks.constant_value == 1 or not reduction.combine or outermost is None:
        reduce_rows(kernel, stage, reduction, {})
        return
    code, parts = kernel.code, _parts(kernel, reduction)
    step = sweep.lanes * sweep.unroll
    height = step * maximum(ceildiv(outermost.extent, step * tasks), constant(1))
    # A thread without a part still has a result: the first value.
    with code.loop(code.dim(tasks), "task", kind=LoopKind.PARALLEL) as task:
        low = code.minimum(code.mul(task, code.dim(height)), code.dim(outermost.extent))
        high = code.minimum(code.add(low, code.dim(height)), code.dim(outermost.extent))
        accumulators = sweep.emit({}, (low, high))
        assert accumulators is not None
        for part, value in zip(parts, accumulators.finish()[0], strict=True):
            code.store(value, part, [task])
    _combine(kernel, stage, reduction, parts, code.dim(tasks))


def _emit_shared_search(kernel: Kernel, stage: Stage, reduction: Reduction, search: ArgReduction) -> None:
    """The best of all elements, as if they were one row: each thread has an iteration of it at least."""
    code, tasks = kernel.code, kernel.tasks(work_of(stage))
    short = None if masks_are_cheap(kernel, [stage]) else partial(one_by_one, kernel, stage, reduction, {})
    if tasks.constant_value == 1:
        search.emit({}, short)
        return
    length = search.length
    with code.when(search.is_long) as is_long:
        count = code.minimum(code.dim(tasks), code.divide(length, search.width))
        parts = _parts(kernel, reduction)
        with code.loop(count, "task", kind=LoopKind.PARALLEL) as task:
            low, high = (code.divide(code.mul(each, length), count) for each in (task, code.add(task, 1)))
            for part, value in zip(parts, search.part({}, low, code.sub(high, low)), strict=True):
                code.store(value, part, [task])
        _combine(kernel, stage, reduction, parts, count)
    with code.otherwise(is_long):
        search.emit_short({}, short)


def _parts(kernel: Kernel, reduction: Reduction) -> Sequence[SSAValue]:
    """Memory for the result of each thread."""
    types = [BufferType([kernel.target.cores], load.buffer_type.dtype, align=64) for load in reduction.accumulators]
    return [kernel.code.value(AllocBufferOp(each), "parts") for each in types]


def _combine(kernel: Kernel, stage: Stage, reduction: Reduction, parts: Sequence[SSAValue], tasks: SSAValue) -> None:
    code, zero = kernel.code, kernel.code.index(0)
    with code.loop(tasks, "part", lower=code.index(1), vectorize=False) as part:
        left = [code.load(buffer, [zero]) for buffer in parts]
        right = [code.load(buffer, [part]) for buffer in parts]
        for value, buffer in zip(reduction.combined(kernel, left, right), parts, strict=True):
            code.store(value, buffer, [zero])
    results = [code.load(buffer, [zero]) for buffer in parts]
    Accumulators(kernel, [stage], {0: reduction}, 1, {}).write({0: results})
