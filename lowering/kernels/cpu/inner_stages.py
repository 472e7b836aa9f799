"""Stages inside of other loops, as the products of a recurrence with its state in each step.

The loops around them stay as they are: the code of a stage replaces its nest alone.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.kernels.cpu.compute_bound import emit_contraction, gemm_of
from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.kernel import Kernel, routines_for
from lowering.kernels.cpu.memory_bound import emit_alone, is_understood
from lowering.kernels.cpu.structure.contraction import find_contraction
from lowering.kernels.cpu.structure.reduction import find_reduction
from lowering.kernels.cpu.structure.stages import Stage, find_inner_stages, find_program
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from tir_dialect.types import IteratorKind


def schedule_inner_stages(func: PrimFuncOp, target: Target) -> str | None:
    """Rewrites reductions and elementwise stages inside of loops of a function; says which generators made the code of
    contractions, and why, if there are any. A function that is a list of stages is not concerned.
    """
    if func.may_alias is not None or find_program(func) is not None:
        return None
    routines, explained = routines_for(func), list[str]()
    for stage in find_inner_stages(func):
        if not is_understood([stage]) or stage.of_kind(IteratorKind.SCAN) or not _is_worth_compiling(stage):
            continue
        block = Block()
        values = {value: value for op in stage.nest.walk() for value in op.operands if _is_outside(value, stage.nest)}
        kernel = Kernel(Code(block, stage.nest.location), target, values, routines)
        explanation = _emit(kernel, stage)
        explained += [] if explanation is None else [explanation]
        Rewriter.inline_block(block, InsertPoint.before(stage.nest))
        Rewriter.erase_op(stage.nest)
    return "; ".join(explained) or None


def _is_worth_compiling(stage: Stage) -> bool:
    """Whether a stage is no contraction, or the matrix of its columns has known sizes, as weights have.

    The code for matrices of any size takes several times as long to compile.
    """
    contraction = find_contraction(stage)
    axes = () if contraction is None else (*contraction.column, *contraction.outer, *contraction.reduced)
    return all(stage.extents[axis].constant_value is not None for axis in axes)


def _emit(kernel: Kernel, stage: Stage) -> str | None:
    """The code of a stage; of a contraction says which generator made it, and why."""
    for buffer in dict.fromkeys(access.buffer for access in stage.accesses):
        kernel.make_flat(buffer)
    contraction = find_contraction(stage)
    if contraction is not None:
        return emit_contraction(gemm_of(kernel, contraction, (), frozenset()))
    emit_alone(kernel, stage, find_reduction(stage))
    return None


def _is_outside(value: SSAValue, nest: Operation) -> bool:
    owner = value.owner
    op = owner if isinstance(owner, Operation) else owner.parent_op()
    return op is None or not nest.is_ancestor(op)
