"""Edits that belong to every change of a signature: of calls, and of values taken apart and put together."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from relax_dialect.ops.calls import CallOp
from relax_dialect.ops.shapes import TupleGetOp, TupleOp
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.types import TupleType


def replace_call(call: CallOp, arguments: Sequence[SSAValue], result_type: StructInfo) -> CallOp:
    """Puts a call of the same function with other arguments or another result type in the place of `call`.

    The uses move to the new result as they are.
    """
    new = CallOp(call.callee, arguments, result_type, pure=call.impure is None)
    new.attributes |= call.attributes
    new.result.name_hint = call.result.name_hint
    inherit_location(call, new)
    Rewriter.replace_op(call, new)
    return new


def field_of(value: SSAValue, index: int, user: Operation) -> SSAValue:
    """Field `index` of a tuple: the value that it was made of, or a `relax.tuple_get` in front of `user`."""
    if isinstance(value.owner, TupleOp) and value.owner.fields[index].type == _field_types(value)[index]:
        return value.owner.fields[index]
    op = TupleGetOp(value, index)
    op.result.name_hint = value.name_hint
    inherit_location(user, op)
    Rewriter.insert_op(op, InsertPoint.before(user))
    return op.result


def tuple_of(fields: Sequence[SSAValue], user: Operation) -> SSAValue:
    """A tuple of the fields, made in front of `user`."""
    op = TupleOp(*fields)
    inherit_location(user, op)
    Rewriter.insert_op(op, InsertPoint.before(user))
    return op.result


def _field_types(value: SSAValue) -> tuple[StructInfo, ...]:
    return value.type.fields if isinstance(value.type, TupleType) else ()
