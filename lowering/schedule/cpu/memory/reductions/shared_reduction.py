"""Reductions to a single result: threads reduce parts, which are then combined in order."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.kernel import Kernel, work_of
from lowering.schedule.cpu.memory.reduction import Reduction
from lowering.schedule.cpu.memory.reductions.column_reduction import reduce_rows
from lowering.schedule.cpu.memory.sweep.sweep import Sweep
from lowering.schedule.cpu.structure.stages import Stage
from tir_dialect.dims import ceildiv, constant, maximum
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.types import BufferType, LoopKind


def emit_shared_reduction(kernel: Kernel, stage: Stage, reduction: Reduction) -> None:
    """The code of a stage without axes that stay."""
    sweep = Sweep(kernel, [stage], range(len(stage.axes)), {0: reduction}, asks=True)
    tasks = kernel.tasks(work_of(stage))
    outermost = sweep.outermost
    if tasks.constant_value == 1 or not reduction.combine or outermost is None:
        reduce_rows(kernel, stage, reduction, {})
        return
    code = kernel.code
    parts = [
        code.value(AllocBufferOp(BufferType([kernel.target.cores], load.buffer_type.dtype, align=64)), "parts")
        for load in reduction.accumulators
    ]
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
    _combine(kernel, sweep, reduction, parts, code.dim(tasks))


def _combine(kernel: Kernel, sweep: Sweep, reduction: Reduction, parts: Sequence[SSAValue], tasks: SSAValue) -> None:
    code, zero = kernel.code, kernel.code.index(0)
    with code.loop(tasks, "part", lower=code.index(1), vectorize=False) as part:
        left = [code.load(buffer, [zero]) for buffer in parts]
        right = [code.load(buffer, [part]) for buffer in parts]
        for value, buffer in zip(reduction.combined(kernel, left, right), parts, strict=True):
            code.store(value, buffer, [zero])
    results = [code.load(buffer, [zero]) for buffer in parts]
    sweep.accumulators({}).write({0: results})
