"""Memory-bound kernels: elementwise stages, reductions, scans, and chains that share rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from xdsl.ir import Block, Region, SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.rewrites.axis_splitting import split_quotients
from lowering.kernels.cpu.rewrites.inlining import inline_producers
from lowering.kernels.cpu.rewrites.softmax import simplify_exponentials
from lowering.kernels.cpu.row.chain import find_row
from lowering.kernels.cpu.row.rows import RowKernel, values_of_reductions
from lowering.kernels.cpu.single_stage import emit_alone, is_understood, scan_of
from lowering.kernels.cpu.structure.reduction import reduction_of
from lowering.kernels.cpu.structure.stages import Program, Stage, find_program, find_stages, rewritten
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

if TYPE_CHECKING:
    from lowering.kernels.cpu.scan.scan import Scan


def schedule_memory_bound(func: PrimFuncOp, target: Target) -> bool:
    """Schedules a function of elementwise stages, reductions or scans; returns whether it is one."""
    if func.may_alias is None:
        split_quotients(func)
    program = None if func.may_alias is not None else find_program(func)
    stages = None if program is None else find_stages(program)
    if program is None or stages is None or not is_understood(stages):
        return False
    for rewrite in (inline_producers, partial(simplify_exponentials, target=target)):
        if rewrite(stages):
            program, stages = rewritten(func)
    _Emitter(func, program, stages, target).emit()
    return True


class _Emitter:
    """Generates the code of one function."""

    def __init__(self, func: PrimFuncOp, program: Program, stages: Sequence[Stage], target: Target):
        self.func, self.program, self.stages = func, program, stages
        self.body = Block(arg_types=func.body.block.arg_types)
        values: dict[SSAValue, SSAValue] = {}
        for old, new in zip(func.body.block.args, self.body.args, strict=True):
            values[old] = new
            new.name_hint = old.name_hint
        self.kernel = Kernel(Code(self.body, func.location), target, values)
        self.reductions = {stage: found for stage in stages if (found := reduction_of(stage)) is not None}

    def emit(self) -> None:
        """Replaces the body of the function."""
        kernel = self.kernel
        kernel.clone_ops(self.program.header)
        touched = {op.buffer for stage in self.stages for op in stage.accesses}
        own = [alloc.buffer for alloc in self.program.buffers]
        scan = scan_of(self.stages)
        row = find_row(kernel, self.stages, self.reductions, own) if scan is None else None
        kernel.divisors = values_of_reductions(self.stages, self.reductions, self.program)
        for parameter in self.func.params:
            if parameter in touched:
                kernel.make_flat(parameter)
        for alloc in self.program.buffers:
            if alloc.buffer in touched and scan is None and (row is None or alloc.buffer not in row.buffers):
                kernel.allocate(alloc)
        kernel.results = self._results(scan)
        if scan is not None:
            self._emit_scan(scan)
        elif row is None:
            for stage in self.stages:
                emit_alone(self.kernel, stage, self.reductions.get(stage))
        else:
            RowKernel(kernel, self.func, self.program, self.stages, self.reductions).emit(row)
        self.func.detach_region(self.func.body)
        self.func.add_region(Region(self.body))

    def _results(self, scan: Scan | None) -> frozenset[SSAValue]:
        """Parameters that are written and never read; a scan has the previous sum in registers."""
        loads = (load for stage in self.stages for load in stage.loads if scan is None or load is not scan.previous)
        read = {load.buffer for load in loads}
        written = {store.buffer for stage in self.stages for store in stage.stores}
        return frozenset(param for param in self.func.params if param in written and param not in read)

    def _emit_scan(self, scan: Scan) -> None:
        from lowering.kernels.cpu.scan.scan_columns import emit_scan_columns
        from lowering.kernels.cpu.scan.scan_rows import emit_scan_rows

        (emit_scan_rows if scan.is_along_rows else emit_scan_columns)(self.kernel, scan)
