"""Tuples."""

from __future__ import annotations

from xdsl.pattern_rewriter import RewritePattern

from lowering.rewriting import op_rewrite_pattern
from lowering.vm_to_llvm.abi import I32
from lowering.vm_to_llvm.state import FunctionState
from lowering.vm_to_llvm.values import Boxed
from vm_dialect.ops.tuples import MakeTupleOp, TupleGetOp


class LowerMakeTuple(RewritePattern):
    """A new array object, which holds references to its fields."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MakeTupleOp, state: FunctionState) -> None:
        slot = state.result_slot(op.result)
        fields = state.cell_array(op.fields)
        state.call("vmrt_make_tuple", [slot, fields, state.emit.integer(len(op.fields), I32)])
        state.values[op.result] = Boxed(slot, owned=True)


class LowerTupleGet(RewritePattern):
    """A copy of the field."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: TupleGetOp, state: FunctionState) -> None:
        slot = state.result_slot(op.result)
        index = state.emit.integer(op.index.value.data)
        state.call("vmrt_tuple_get", [slot, state.any_at(op.tuple, 0), index])
        state.values[op.result] = Boxed(slot, owned=True)
