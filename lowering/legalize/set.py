"""Operators whose results have shapes that depend on data: calls of the run-time library, which makes the results."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.legalize.context import rewrites
from lowering.locations import inherit_location
from relax_dialect.ops.call_packed import CallPurePackedOp
from relax_dialect.ops.set import NonzeroOp, UniqueOp
from relax_dialect.ops.shapes import TupleGetOp
from relax_dialect.ops.values import NullOp, PrimOp
from relax_dialect.struct_info.base import as_struct_infos
from relax_dialect.struct_info.types import TupleType


def _before(op: Operation, new: Operation) -> SSAValue:
    inherit_location(op, new)
    Rewriter.insert_op(new, InsertPoint.before(op))
    return new.results[0]


@rewrites(UniqueOp)
def unique(op: UniqueOp) -> Sequence[SSAValue]:
    """`vm.builtin.unique`, which gives a tuple if there are several results."""
    axis = _before(op, NullOp() if op.axis is None else PrimOp(op.axis.value.data))
    flags = [flag is not None for flag in (op.return_index, op.return_inverse, op.return_counts)]
    arguments = [op.x, axis, *(_before(op, PrimOp(IntegerAttr(int(flag), i1))) for flag in flags)]
    infos = as_struct_infos(op.res.types)
    if len(infos) == 1:
        return [_before(op, CallPurePackedOp("vm.builtin.unique", arguments, infos[0]))]
    parts = _before(op, CallPurePackedOp("vm.builtin.unique", arguments, TupleType(infos)))
    return [_before(op, TupleGetOp(parts, index)) for index in range(len(infos))]


@rewrites(NonzeroOp)
def nonzero(op: NonzeroOp) -> Sequence[SSAValue]:
    """`vm.builtin.nonzero`."""
    return [_before(op, CallPurePackedOp("vm.builtin.nonzero", [op.x], op.result.type))]
