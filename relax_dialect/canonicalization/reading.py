"""Whether a copy may be left out: nobody may write into it, or into what it was copied from."""

from __future__ import annotations

from xdsl.ir import Operation, OpResult, SSAValue, Use

from relax_dialect.ops.call_packed import CallDPSPackedOp
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.ops.dataflow import DataflowOp, OutputOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.structure import ReturnOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.traits import AliasesOperand

_READERS = Operator | CallTIROp | CallDPSPackedOp
"""Ops that read their operands and make new memory for their results."""


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
    return isinstance(op, _READERS | ReturnOp)


def is_never_written(value: SSAValue) -> bool:
    """Whether `value` may be read later than the program does: nobody writes into its memory, under any type."""
    return is_only_read(_origin(value))


def may_be_view(copy: SSAValue, source: SSAValue) -> bool:
    """Whether a copy may share the memory of its source.

    Nobody writes into either of them in the function, and its caller, who may write into what it gets, does not get
    memory that somebody else has too, such as an argument. Constants are copied where they leave (`copy-constants`).
    """
    if not (is_only_read(copy) and is_never_written(source)):
        return False
    return isinstance(_origin(source).owner, _READERS | ConstantOp) or not _is_returned(copy)


def _is_returned(value: SSAValue) -> bool:
    """Whether the function returns `value`, under any type."""
    for use in value.uses:
        op, results = use.operation, use.operation.results
        if isinstance(op, ReturnOp):
            return True
        if isinstance(op, OutputOp):
            dataflow = op.parent_op()
            results = () if dataflow is None else (dataflow.results[use.index],)
        elif not op.has_trait(AliasesOperand):
            continue
        if any(map(_is_returned, results[:1])):
            return True
    return False


def _origin(value: SSAValue) -> SSAValue:
    """The value as which the memory was made or got into the function, in front of types and regions that it passed."""
    owner = value.owner
    while isinstance(owner, Operation):
        if owner.has_trait(AliasesOperand) and owner.results[0] is value:
            value = owner.operands[0]
        elif isinstance(owner, DataflowOp) and isinstance(value, OpResult) and owner.body.block.last_op is not None:
            value = owner.body.block.last_op.operands[value.index]
        else:
            break
        owner = value.owner
    return value
