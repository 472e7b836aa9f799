"""Emission of scans: the first slices, and a loop over the others around the nests of a step."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation

from tir_dialect.ops.loops import ForOp
from tir_dialect.te.emit.blocks import emit_compute
from tir_dialect.te.emit.nests import ExtentOf, NestBuilder
from tir_dialect.te.emit.scalar import Names
from tir_dialect.te.scan_steps import Scan


def emit_scan(scan: Scan, names: Names, extent_of: ExtentOf, unique: Callable[[str], str]) -> list[Operation]:
    """The nests of a scan."""
    ops = [op for start in scan.starts for op in emit_compute(start, names, extent_of, unique)]
    length = extent_of(scan.length)
    loop = ForOp(length, name_hint=scan.steps[0].axes[0].name)
    for step in scan.steps:
        builder = NestBuilder(names, extent_of)
        builder.bind(step.axes[0], loop.induction_var, length)
        loop.body.block.add_ops(emit_compute(step, names, extent_of, unique, builder))
    return [*ops, loop]
