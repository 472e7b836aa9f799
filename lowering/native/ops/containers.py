"""Tuples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation

from lowering.native.abi import I32
from lowering.native.function import FunctionLowering
from lowering.native.values import Boxed
from vm_dialect.ops.tuples import MakeTupleOp, TupleGetOp


def lower_make_tuple(lowering: FunctionLowering, op: MakeTupleOp) -> None:
    """A new array object, which holds references to its fields."""
    slot = lowering.result_slot(op.result)
    fields = lowering.cell_array(op.fields)
    lowering.call("vmrt_make_tuple", [slot, fields, lowering.emit.integer(len(op.fields), I32)])
    lowering.values[op.result] = Boxed(slot, owned=True)


def lower_tuple_get(lowering: FunctionLowering, op: TupleGetOp) -> None:
    """A copy of the field."""
    slot = lowering.result_slot(op.result)
    index = lowering.emit.integer(op.index.value.data)
    lowering.call("vmrt_tuple_get", [slot, lowering.any_at(op.tuple, 0), index])
    lowering.values[op.result] = Boxed(slot, owned=True)


LOWERINGS: dict[type[Operation], Callable[[FunctionLowering, Any], None]] = {
    MakeTupleOp: lower_make_tuple,
    TupleGetOp: lower_tuple_get,
}
"""Of the ops on tuples."""
