"""Whether a copy may be left out: nobody may write into it, or into what it was copied from."""

from __future__ import annotations

from xdsl.ir import Operation, OpResult, SSAValue, Use

from relax_dialect.ops.call_packed import CallDPSPackedOp
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.ops.dataflow import DataflowOp, OutputOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.structure import ReturnOp
from relax_dialect.traits import AliasesOperand


def is_only_read(value: SSAValue) -> bool:
    """Whether every use of `value`, under other types and outside of a region too, only looks at its elements."""
    return all(_only_reads(use) for use in value.uses)


def _only_reads(use: Use) -> bool:
    op = use.operation
    if isinstance(op, OutputOp):
        dataflow = op.parent_op()
        return isinstance(dataflow, DataflowOp) and is_only_read(dataflow.results[use.index])
    if op.has_trait(AliasesOperand) and use.index == 0:
        return is_only_read(op.results[0])
    return isinstance(op, Operator | CallTIROp | CallDPSPackedOp | ReturnOp)


def is_never_written(value: SSAValue) -> bool:
    """Whether `value` may be read later than the program does: nobody writes into its memory, under any type."""
    owner = value.owner
    while isinstance(owner, Operation):
        if owner.has_trait(AliasesOperand) and owner.results[0] is value:
            value = owner.operands[0]
        elif isinstance(owner, DataflowOp) and isinstance(value, OpResult) and owner.body.block.last_op is not None:
            value = owner.body.block.last_op.operands[value.index]
        else:
            break
        owner = value.owner
    return is_only_read(value)
