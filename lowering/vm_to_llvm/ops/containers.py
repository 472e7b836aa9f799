"""Tuples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation

from lowering.vm_to_llvm.abi import I32
from lowering.vm_to_llvm.state import FunctionState
from lowering.vm_to_llvm.values import Boxed
from vm_dialect.ops.tuples import MakeTupleOp, TupleGetOp


def lower_make_tuple(state: FunctionState, op: MakeTupleOp) -> None:
    """A new array object, which holds references to its fields."""
    slot = state.result_slot(op.result)
    fields = state.cell_array(op.fields)
    state.call("vmrt_make_tuple", [slot, fields, state.emit.integer(len(op.fields), I32)])
    state.values[op.result] = Boxed(slot, owned=True)


def lower_tuple_get(state: FunctionState, op: TupleGetOp) -> None:
    """A copy of the field."""
    slot = state.result_slot(op.result)
    index = state.emit.integer(op.index.value.data)
    state.call("vmrt_tuple_get", [slot, state.any_at(op.tuple, 0), index])
    state.values[op.result] = Boxed(slot, owned=True)


LOWERINGS: dict[type[Operation], Callable[[FunctionState, Any], None]] = {
    MakeTupleOp: lower_make_tuple,
    TupleGetOp: lower_tuple_get,
}
"""Of the ops on tuples."""
