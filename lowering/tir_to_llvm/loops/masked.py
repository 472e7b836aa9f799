"""Regions for some of the lanes of a vectorised loop."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from lowering.tir_to_llvm.emitter import Emitter
from tir_dialect.ops.control_flow import YieldOp
from tir_dialect.ops.memory import LoadOp

SHORT = 20
"""So many ops take less time for no lane than it takes to ask whether there is one."""

_SIMPLE = (
    *(LoadOp, YieldOp),
    *(arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.MaxSIOp, arith.MinSIOp, arith.CmpiOp, arith.ConstantOp),
    *(arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.MaximumfOp, arith.MinimumfOp, arith.CmpfOp, arith.SelectOp),
    *(arith.ShRSIOp, arith.AndIOp, arith.XOrIOp, arith.BitcastOp, arith.ExtFOp),
)


def runs_for_no_lane(e: Emitter, block: Block) -> bool:
    """Whether a region had better run than be skipped if its mask is off in all lanes: AVX-512 loads nothing then.

    It has some loads, each of different elements in different lanes, and simple arithmetic.
    """
    if not e.b.module.avx512 or len(block.ops) > SHORT:
        return False
    lanes: set[SSAValue] = set()
    for op in block.ops:
        if not isinstance(op, _SIMPLE):
            return False
        vary = [operand in lanes or (operand in e.values and e.varies(operand)) for operand in op.operands]
        if isinstance(op, LoadOp) and not any(vary):
            return False
        if _differs(op, vary):
            lanes.update(op.results)
    return True


def _differs(op: Operation, vary: list[bool]) -> bool:
    """Whether the result differs between lanes for sure if some operands do: not so a difference of two of them."""
    return sum(vary) == 1 and isinstance(op, arith.AddiOp | arith.SubiOp)
