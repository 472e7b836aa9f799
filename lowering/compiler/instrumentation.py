"""What an executable that is built to be watched says of its kernels: how much they compute."""

from __future__ import annotations

import json

from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Operation

from lowering.compiler.signatures import packed_note
from tir_dialect.analysis.dims import DimEvaluator
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.blocks import InitOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp
from vm_dialect.executable.model import OBSERVE, OBSERVED_NOTE, PACKED_NOTE

_TWO = frozenset({"math.fma", "tir.ewise_fma"})
"""Ops that count as two."""


def instrument_notes(module: ModuleOp, mode: str) -> dict[str, str]:
    """The notes of the metadata: for each kernel the names of its sizes and its work, as an expression of these."""
    work = {
        op.sym_name.data: [list(op.symbol_names), str(flops)]
        for op in module.ops
        if isinstance(op, PrimFuncOp) and not op.is_private and (flops := work_of(op)) is not None
    }
    notes = {OBSERVED_NOTE: json.dumps(work)}
    if mode == "native":
        packed = json.loads(packed_note(module).get(PACKED_NOTE, "[]"))
        notes[PACKED_NOTE] = json.dumps([*packed, OBSERVE])
    return notes


def work_of(function: PrimFuncOp) -> Dim | None:
    """Floating-point operations of a call, as the loops of the function say before it is scheduled.

    A function of `math` is one, initial values of reductions are none. `None` where a loop runs as often as data says.
    """
    evaluator, total = DimEvaluator(), constant(0)
    pending: list[tuple[Operation, Dim]] = [(op, constant(1)) for op in function.body.block.ops]
    while pending:
        op, times = pending.pop()
        if isinstance(op, InitOp):
            continue
        total += times * _count(op)
        if isinstance(op, ForOp):
            lower, upper = (constant(0) if each is None else evaluator.dim_of(each) for each in (op.lower, op.upper))
            if lower is None or upper is None:
                return None
            times *= upper - lower
        pending += ((inner, times) for region in op.regions for block in region.blocks for inner in block.ops)
    return total


def _count(op: Operation) -> int:
    is_arithmetic = op.name.startswith(("arith.", "math.", "tir.ewise_", "tir.fma")) and not op.name.startswith(
        ("arith.constant", "arith.cmp", "arith.select", "arith.ext", "arith.trunc", "arith.sitofp", "arith.uitofp")
    )
    if not is_arithmetic or not op.results or not isinstance(op.results[0].type, AnyFloat):
        return 0
    return 2 if op.name in _TWO else 1
