"""Memory-bound kernels: elementwise stages, reductions, scans, and chains that share rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from xdsl.ir import Block, Region, SSAValue

from lowering.kernels.elementwise.broadcasting import emit_broadcasts, find_broadcasts
from lowering.kernels.elementwise.padding import emit_padding
from lowering.kernels.elementwise.transposition import (
    Interleaving,
    emit_interleaving,
    emit_transposition,
    find_interleavings,
    find_transposition,
    when_components_have_code,
)
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.emit.loop_nest import LoopNest
from lowering.kernels.row.rewrites import simplify_exponentials
from lowering.kernels.row.row_blocks import find_row
from lowering.kernels.row.rows import RowKernel, values_of_reductions
from lowering.kernels.stage_rewrites import inline_producers, split_quotients
from lowering.kernels.structure.padding import find_padding
from lowering.kernels.structure.reduction import Reduction, find_reduction, reduction_of
from lowering.kernels.structure.stages import Program, Stage, find_program, find_stages, rewritten, work_of
from lowering.kernels.structure.winograd import is_transform
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from tir_dialect.types import IteratorKind

if TYPE_CHECKING:
    from lowering.kernels.scan import Scan


def is_understood(stages: Sequence[Stage]) -> bool:
    """Whether stages are elementwise stages and reductions on contiguous buffers, or a scan."""
    accesses = (op.buffer_type for stage in stages for op in stage.accesses)
    if any(not kind.has_default_strides or kind.offset.terms for kind in accesses):
        return False
    return scan_of(stages) is not None or all(map(_is_elementwise_or_reduction, stages))


def _is_elementwise_or_reduction(stage: Stage) -> bool:
    if stage.of_kind(IteratorKind.REDUCE):
        return not stage.of_kind(IteratorKind.SCAN) and find_reduction(stage) is not None
    return not stage.init and _is_elementwise(stage)


def scan_of(stages: Sequence[Stage]) -> Scan | None:
    """The scan that stages are; its modules are loaded only if there is a scan axis."""
    if not stages[0].of_kind(IteratorKind.SCAN):
        return None
    from lowering.kernels.scan import find_scan

    return find_scan(stages)


def _is_elementwise(stage: Stage) -> bool:
    """Whether the stage reads what it writes only at the same index."""
    written = {store.buffer: stage.accesses[store] for store in stage.stores}
    if stage.of_kind(IteratorKind.SCAN) or (len(written) != len(stage.stores) and not is_transform(stage)):
        return False
    return all(stage.accesses[load] == written.get(load.buffer, stage.accesses[load]) for load in stage.loads)


def emit_alone(kernel: Kernel, stage: Stage, reduction: Reduction | None) -> None:
    """Generates an elementwise stage or a reduction."""
    if reduction is None:
        # Generates an elementwise stage by the first form that fits.
        padding, interleavings = find_padding(stage), find_interleavings(kernel, stage)
        broadcasts = find_broadcasts(kernel, stage)
        if broadcasts is not None:
            emit_broadcasts(kernel, broadcasts)
        elif padding is not None:
            emit_padding(kernel, padding)
        else:
            _emit_interleavings(kernel, stage, interleavings)
        return
    # Not at the top: many programs reduce nothing but by contractions.
    from lowering.kernels.reduce.reductions import emit_full_reduction, emit_kept_axes_reduction

    if not stage.of_kind(IteratorKind.SPATIAL):
        emit_full_reduction(kernel, stage, reduction)
    else:
        emit_kept_axes_reduction(kernel, stage, reduction)


def _emit_interleavings(kernel: Kernel, stage: Stage, interleavings: Sequence[Interleaving]) -> None:
    """Generates the interleavings that a call may have, and otherwise the general form."""
    if not interleavings:
        transposition = find_transposition(kernel, stage)
        if transposition is not None:
            emit_transposition(kernel, transposition)
            return
        nest = LoopNest(kernel, [stage], range(len(stage.axes)))
        outermost, lanes = nest.outermost, nest.width if nest.outermost is nest.lane else 1
        if outermost is None:
            nest.emit({})
            return
        if len(nest.outer) < 2:
            with kernel.partition(outermost.extent, work_of(stage), lanes) as chunk:
                nest.emit({}, chunk)
            return
        # The outermost axis may have fewer values than there are threads, as one image with many channels.
        with kernel.partition_2d(outermost.extent, nest.outer[1].extent, work_of(stage), 1) as chunks:
            nest.emit({}, *chunks)
    elif interleavings[0].is_known:
        emit_interleaving(kernel, interleavings[0])
    else:
        with when_components_have_code(kernel, interleavings[0]) as have_code:
            emit_interleaving(kernel, interleavings[0])
        with kernel.code.otherwise(have_code):
            _emit_interleavings(kernel, stage, interleavings[1:])


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
        row = None if scan is not None or self._transposes() else find_row(kernel, self.stages, self.reductions, own)
        kernel.divisors = values_of_reductions(self.stages, self.reductions, self.program)
        for parameter in self.func.params:
            if parameter in touched:
                kernel.make_flat(parameter)
        for alloc in self.program.buffers:
            if alloc.buffer in touched and scan is None and (row is None or alloc.buffer not in row.buffers):
                kernel.allocate(alloc)
        # Parameters that are written and never read; a scan has the previous sum in registers.
        loads = (load for stage in self.stages for load in stage.loads if scan is None or load is not scan.previous)
        read = {load.buffer for load in loads}
        written = {store.buffer for stage in self.stages for store in stage.stores}
        kernel.results = frozenset(param for param in self.func.params if param in written and param not in read)
        if scan is not None:
            from lowering.kernels.scan import emit_scan_columns, emit_scan_rows

            (emit_scan_rows if scan.is_along_rows else emit_scan_columns)(self.kernel, scan)
        elif row is None:
            for stage in self.stages:
                emit_alone(self.kernel, stage, self.reductions.get(stage))
        else:
            RowKernel(kernel, self.func, self.program, self.stages, self.reductions).emit(row)
        self.func.detach_region(self.func.body)
        self.func.add_region(Region(self.body))

    def _transposes(self) -> bool:
        """Whether one of several elementwise stages is a transposition: tiles gain more than rows in cache."""
        is_elementwise = len(self.stages) > 1 and not self.reductions
        return is_elementwise and any(find_transposition(self.kernel, stage) is not None for stage in self.stages)
