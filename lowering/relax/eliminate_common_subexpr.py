"""`eliminate-common-subexpr`: equal computations are done once."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable, MutableMapping
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator

from relax_dialect.ops.call_tir import CallTIRInplaceOp
from relax_dialect.ops.dataflow import DataflowOp, OutputOp
from relax_dialect.ops.structure import ClosureOp, FuncOp
from relax_dialect.scope import symbols_witnessed
from relax_dialect.traits import AliasesOperand, MayBeImpure, impurity_of

_Known: TypeAlias = "MutableMapping[Hashable, Operation]"
"""The ops whose results may be used here, by what they compute."""


class EliminateCommonSubexprPass(ModulePass):
    """Replaces an op by an equal one that comes before it.

    Before:

    ```mlir
    %0 = relax.exp %x
    %1 = relax.exp %x
    %2 = relax.add %0, %1
    ```

    After:

    ```mlir
    %0 = relax.exp %x
    %2 = relax.add %0, %0
    ```

    Ops are equal that have the same name, operands, properties, attributes and result types. The one that stays is in
    the same block or around it, so that it has run. Only ops without effects and regions are looked at; these are left
    alone:

    * an op that binds symbols;
    * an op whose result somebody may write into, as `relax.call_tir_inplace` does: the other use would see it (`cse`
      of xDSL does not know that);
    * in a closure, an op that is equal to one outside: it would have to be captured.

    One walk. Idempotent; refuses nothing; what is kept keeps its location.
    """

    name = "eliminate-common-subexpr"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Function by function."""
        for func in op.ops:
            if isinstance(func, FuncOp):
                _visit(func.body.block, {})


def _visit(block: Block, known: _Known) -> None:
    for op in block.ops:
        if op.regions:
            around = (known,) if not isinstance(op, ClosureOp) else ()
            for region in op.regions:
                for inner in region.blocks:
                    _visit(inner, ChainMap[Hashable, Operation]({}, *around))
        elif _is_candidate(op):
            first = known.setdefault(_key(op), op)
            if first is not op:
                for result, other in zip(op.results, first.results, strict=True):
                    other.name_hint = other.name_hint or result.name_hint
                Rewriter.replace_op(op, [], first.results)


def _is_candidate(op: Operation) -> bool:
    if op.has_trait(IsTerminator) or symbols_witnessed(op) or isinstance(op, CallTIRInplaceOp):
        return False
    return impurity_of(op) is None and not any(_may_be_written(result) for result in op.results)


def _key(op: Operation) -> Hashable:
    """What an op computes. Attributes are compared by value, operands by identity."""
    properties = frozenset(op.properties.items())
    return op.name, op.operands, tuple(op.result_types), properties, frozenset(op.attributes.items())


def _may_be_written(value: SSAValue) -> bool:
    """Whether some use of the value, under other types and outside of a region too, may write into its memory."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, CallTIRInplaceOp) or (isinstance(op, MayBeImpure) and op.impurity is not None):
            return True
        if isinstance(op, OutputOp) and isinstance(dataflow := op.parent_op(), DataflowOp):
            if _may_be_written(dataflow.results[use.index]):
                return True
        elif op.has_trait(AliasesOperand) and use.index == 0 and _may_be_written(op.results[0]):
            return True
    return False
