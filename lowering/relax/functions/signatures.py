"""Edits that every change of a signature needs: of calls, and of tuples taken apart and rebuilt."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.relax.call_graph import CallSite
from relax_dialect.ops.calls import CallOp, MakeClosureOp
from relax_dialect.ops.shapes import TupleGetOp, TupleOp
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.types import TupleType


def given_values(site: CallSite) -> Sequence[SSAValue]:
    """What a call or a function value gives to the first parameters: all of them, or those that it captures."""
    return site.arguments if isinstance(site, CallOp) else site.captured


def replace_values(site: CallSite, values: Sequence[SSAValue]) -> None:
    """Puts an op that gives the function other values, and has a result of the same type, instead of `site`."""
    if isinstance(site, CallOp):
        new = CallOp(site.callee, values, site.result.type, pure=site.impure is None)
    else:
        new = MakeClosureOp(site.callee, values, site.result.type)
    _replace(site, new)


def replace_result(call: CallOp, result_type: StructInfo) -> CallOp:
    """Puts a call with another result type instead of `call`; the uses move to the new result as they are."""
    new = CallOp(call.callee, call.arguments, result_type, pure=call.impure is None)
    _replace(call, new)
    return new


def _replace(old: CallSite, new: CallSite) -> None:
    new.attributes |= old.attributes
    new.result.name_hint = old.result.name_hint
    inherit_location(old, new)
    Rewriter.replace_op(old, new)


def field_of(value: SSAValue, index: int, user: Operation) -> SSAValue:
    """Field `index` of a tuple: the value that it was made of, or a `relax.tuple_get` before `user`."""
    if isinstance(value.owner, TupleOp) and value.owner.fields[index].type == _field_types(value)[index]:
        return value.owner.fields[index]
    op = TupleGetOp(value, index)
    op.result.name_hint = value.name_hint
    inherit_location(user, op)
    Rewriter.insert_op(op, InsertPoint.before(user))
    return op.result


def tuple_of(fields: Sequence[SSAValue], user: Operation) -> SSAValue:
    """A tuple of the fields, made before `user`."""
    op = TupleOp(*fields)
    inherit_location(user, op)
    Rewriter.insert_op(op, InsertPoint.before(user))
    return op.result


def _field_types(value: SSAValue) -> tuple[StructInfo, ...]:
    return value.type.fields if isinstance(value.type, TupleType) else ()
