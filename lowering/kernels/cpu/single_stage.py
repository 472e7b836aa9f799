"""The code of a single stage, and which stages can be emitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lowering.kernels.cpu.elementwise.broadcasting import emit_broadcasts, find_broadcasts
from lowering.kernels.cpu.elementwise.interleaving import (
    Interleaving,
    emit_interleaving,
    find_interleavings,
    when_lines_have_code,
)
from lowering.kernels.cpu.elementwise.padding import emit_padding
from lowering.kernels.cpu.elementwise.transposition import emit_transposition, find_transposition
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.reduce.reductions import emit_shared_columns, emit_shared_reduction
from lowering.kernels.cpu.structure.padding import find_padding
from lowering.kernels.cpu.structure.reduction import Reduction, find_reduction
from lowering.kernels.cpu.structure.stages import Stage, work_of
from lowering.kernels.cpu.traversal.loop_nest import Sweep
from tir_dialect.types import IteratorKind

if TYPE_CHECKING:
    from lowering.kernels.cpu.scan.scan import Scan


def is_understood(stages: Sequence[Stage]) -> bool:
    """Whether stages are maps and reductions in memory without gaps, or running sums."""
    accesses = (op.buffer_type for stage in stages for op in stage.accesses)
    if any(not kind.has_default_strides or kind.offset.terms for kind in accesses):
        return False
    return scan_of(stages) is not None or all(map(_is_map_or_reduction, stages))


def _is_map_or_reduction(stage: Stage) -> bool:
    if stage.of_kind(IteratorKind.REDUCE):
        return not stage.of_kind(IteratorKind.SCAN) and find_reduction(stage) is not None
    return not stage.init and _maps_in_place(stage)


def scan_of(stages: Sequence[Stage]) -> Scan | None:
    """The running sums that stages are; few programs have some, or need the code for them."""
    if not stages[0].of_kind(IteratorKind.SCAN):
        return None
    from lowering.kernels.cpu.scan.scan import find_scan

    return find_scan(stages)


def _maps_in_place(stage: Stage) -> bool:
    """Whether the stage reads what it writes only where it writes it."""
    written = {store.buffer: stage.accesses[store] for store in stage.stores}
    if stage.of_kind(IteratorKind.SCAN) or len(written) != len(stage.stores):
        return False
    return all(stage.accesses[load] == written.get(load.buffer, stage.accesses[load]) for load in stage.loads)


def emit_alone(kernel: Kernel, stage: Stage, reduction: Reduction | None) -> None:
    """The code of a map, or of a reduction that is taken apart in this way."""
    if reduction is None:
        _emit_map(kernel, stage)
    elif not stage.of_kind(IteratorKind.SPATIAL):
        emit_shared_reduction(kernel, stage, reduction)
    else:
        emit_shared_columns(kernel, stage, reduction)


def _emit_map(kernel: Kernel, stage: Stage) -> None:
    """The code of a map."""
    padding, interleavings = find_padding(stage), find_interleavings(kernel, stage)
    broadcasts = find_broadcasts(kernel, stage)
    if broadcasts is not None:
        emit_broadcasts(kernel, broadcasts)
    elif padding is not None:
        emit_padding(kernel, padding)
    else:
        _emit_one_of(kernel, stage, interleavings)


def _emit_one_of(kernel: Kernel, stage: Stage, interleavings: Sequence[Interleaving]) -> None:
    """The code of the interleaving that a call is, or that for any map."""
    if not interleavings:
        _emit_transposition_or_sweep(kernel, stage)
    elif interleavings[0].is_known:
        emit_interleaving(kernel, interleavings[0])
    else:
        with when_lines_have_code(kernel, interleavings[0]) as have_code:
            emit_interleaving(kernel, interleavings[0])
        with kernel.code.otherwise(have_code):
            _emit_one_of(kernel, stage, interleavings[1:])


def _emit_transposition_or_sweep(kernel: Kernel, stage: Stage) -> None:
    transposition = find_transposition(kernel, stage)
    if transposition is not None:
        emit_transposition(kernel, transposition)
        return
    sweep = Sweep(kernel, [stage], range(len(stage.axes)))
    outermost, lanes = sweep.outermost, sweep.width if sweep.outermost is sweep.lane else 1
    if outermost is None:
        sweep.emit({})
        return
    if len(sweep.outer) < 2:
        with kernel.shared(outermost.extent, work_of(stage), lanes) as part:
            sweep.emit({}, part)
        return
    # There may be fewer values of the outermost axis than threads, as one picture of many channels.
    with kernel.shared_by_parts(outermost.extent, sweep.outer[1].extent, work_of(stage), 1) as parts:
        sweep.emit({}, *parts)
