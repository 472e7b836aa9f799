"""Assertions that accesses are in bounds."""

from __future__ import annotations

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, IntegerAttr, VectorType, i1
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from tir_dialect.analysis.structure import ancestors
from tir_dialect.analysis.unproven_accesses import UnprovenAccess
from tir_dialect.dims import Dim, maximum
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import lanes_of, vector_of
from tir_dialect.ops.scalars import AssertOp, DimOp, RampOp
from tir_dialect.ops.vectors import CompareOp, FirstLaneOp, SelectOp

_ULT = 6
"""The number of the predicate `ult` of `arith.cmpi`."""


def valid_starts(access: UnprovenAccess) -> Dim:
    """The number of valid values of an index: an access at the last one still ends inside the buffer."""
    width, end = access.reach.width, access.reach.end
    return end if width.constant_value == 1 else maximum(end - width + 1, 0)


def assert_in_bounds(access: UnprovenAccess, before: Operation) -> None:
    """Asserts before an op that an access is in bounds, unless the same index has been asserted already."""
    if access.mask is None and _is_asserted(access, before):
        return
    ops: list[Operation] = []
    inside = _Tests(ops).of(access)
    what = "is data" if access.is_data else "may be outside"
    message = f"{access.subject} {what}, expected at least 0 and less than {_limit(access, before)}"
    ops.append(AssertOp(inside, message, "IndexError"))
    inherit_location(before, ops)
    Rewriter.insert_op(ops, InsertPoint.before(before))


def _is_asserted(access: UnprovenAccess, before: Operation) -> bool:
    compared = [use.operation for use in access.reach.start.uses]
    same = [op for op in compared if isinstance(op, arith.CmpiOp) and _is_below(op, access)]
    asserted = [use.operation for op in same for use in op.result.uses]
    return any(
        isinstance(op, AssertOp) and op.parent is before.parent and op.is_before_in_block(before) for op in asserted
    )


def _is_below(op: arith.CmpiOp, access: UnprovenAccess) -> bool:
    if op.predicate.value.data != _ULT:
        return False
    if access.reach.limit is not None:
        return op.rhs is access.reach.limit
    count = op.rhs.owner
    return isinstance(count, DimOp) and count.dim is _bound(access)


def _limit(access: UnprovenAccess, op: Operation) -> str:
    """What an index has to be less than, in symbols that the caller knows."""
    function = next(each for each in ancestors(op) if isinstance(each, PrimFuncOp))
    bound = _bound(access)
    return str(bound) if bound.symbols.issubset(function.symbol_names) else "its extent"


def _bound(access: UnprovenAccess) -> Dim:
    return access.reach.end if access.mask is not None else valid_starts(access)


class _Tests:
    """Emits the ops that test whether accesses are in bounds; masked-off lanes count as in bounds."""

    def __init__(self, ops: list[Operation]):
        self._ops = ops

    def of(self, access: UnprovenAccess) -> SSAValue:
        """Whether an access is in bounds, as an `i1`."""
        start, width = access.reach.start, access.reach.width
        lanes = lanes_of(start.type)
        in_order = access.mask is not None and width.constant_value != 1
        if in_order and access.mask is not None:
            lanes = lanes_of(access.mask.type)
            one = self._add(arith.ConstantOp(IntegerAttr(1, IndexType())))
            start = self._add(RampOp(start, one, lanes or 1))
        limit = access.reach.limit
        count = self._add(DimOp(_bound(access))) if limit is None else limit
        if lanes is not None:
            ends = self._add(vector.BroadcastOp(count, vector_of(count.type, lanes)))
            outside = self._add(CompareOp("uge", start, ends))
            if access.mask is not None:
                type = VectorType(i1, [lanes])
                outside = self._add(
                    SelectOp(
                        access.mask,
                        outside,
                        self._add(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(type, [0] * lanes))),
                    )
                )
            return self._none(outside, lanes)
        # A negative index is a large unsigned number.
        inside = self._add(arith.CmpiOp(start, count, "ult"))
        if access.mask is None:
            return inside
        return self._add(arith.OrIOp(inside, self._none(access.mask, lanes_of(access.mask.type) or 1)))

    def _none(self, mask: SSAValue, lanes: int) -> SSAValue:
        """Whether no lane is set."""
        number = self._add(arith.ConstantOp(IntegerAttr(lanes, IndexType())))
        return self._add(arith.CmpiOp(self._add(FirstLaneOp(mask)), number, "eq"))

    def _add(self, op: Operation) -> SSAValue:
        self._ops.append(op)
        return op.results[0]
