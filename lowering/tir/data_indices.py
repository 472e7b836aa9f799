"""Assertions in front of accesses whose indices are data, such as `A[I[i]]`, unless these are made to be in range."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from tir_dialect.analysis.accesses import name_of, unconditional, widths
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim, constant, maximum
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.ops.scalars import AssertOp, DimOp

_ULT = 6
"""`arith.cmpi`'s number for "less than, both without sign"."""


def check_data_indices(func: PrimFuncOp) -> None:
    """Asserts of each index that is computed from memory that it is in range, where it is used.

    What a mask leaves out, and vectors of indices, are not looked at.
    """
    space = IndexSpace(func)
    # Of these it is asserted elsewhere that there is a place at all.
    always = {op for op, _ in unconditional(space, func, ())}
    accesses = [op for op in func.walk() if isinstance(op, LoadOp | StoreOp) and op.mask is None]
    for op in accesses:
        for axis, (index, width, extent) in enumerate(zip(op.indices, widths(op), op.buffer_type.shape, strict=True)):
            if not isinstance(index.type, IndexType) or space.dim_of(index) is not None:
                continue
            has_places = op in always or space.less_equal(width, extent) is True
            if not (has_places and _Clamp(space, extent - width).holds(index)):
                subject = f"{func.sym_name.data}: a '{op.name}' whose index {axis} of {name_of(op.buffer)}"
                # A vector begins so early that it ends in the buffer; one that is longer than that has no place.
                places = extent if width.constant_value == 1 else maximum(extent - width + 1, 0)
                message = f"{subject} is data, expected at least 0 and less than {places}"
                _assert_in_range(space, op, index, places, message)


def _assert_in_range(space: IndexSpace, access: Operation, index: SSAValue, places: Dim, message: str) -> None:
    """Says in front of an access that an index is one of so many places."""
    if _is_asserted(space, index, places, access):
        return
    count = DimOp(places)
    inside = arith.CmpiOp(index, count.result, "ult")  # what is below 0 is a great number
    ops = count, inside, AssertOp(inside.result, message, "IndexError")
    inherit_location(access, ops)
    Rewriter.insert_op(ops, InsertPoint.before(access))


def _is_asserted(space: IndexSpace, index: SSAValue, places: Dim, access: Operation) -> bool:
    """Whether this has been asked for in front of the access."""
    asked = (use.operation for use in index.uses)
    compared = (op for op in asked if isinstance(op, arith.CmpiOp) and op.predicate.value.data == _ULT)
    equal = (op for op in compared if op.lhs is index and space.dim_of(op.rhs) is places)
    asserted = (use.operation for op in equal for use in op.result.uses)
    return any(
        isinstance(op, AssertOp) and op.parent is access.parent and op.is_before_in_block(access) for op in asserted
    )


@dataclass(frozen=True)
class _Clamp:
    """Numbers from 0 to `last`, which is known to be one of them."""

    space: IndexSpace
    last: Dim

    def holds(self, value: SSAValue) -> bool:
        """Whether `min` and `max` make a value one of these numbers."""
        return self._keeps(value, low=True) and self._keeps(value, low=False)

    def _keeps(self, value: SSAValue, *, low: bool) -> bool:
        """Whether a value is 0 at least, or `last` at most."""
        match value.owner:
            case arith.IndexCastOp(input=number):
                return self._keeps(number, low=low)
            case arith.MaxSIOp(lhs=lhs, rhs=rhs):
                sides = (self._keeps(side, low=low) for side in (lhs, rhs))
                return any(sides) if low else all(sides)
            case arith.MinSIOp(lhs=lhs, rhs=rhs):
                sides = (self._keeps(side, low=low) for side in (lhs, rhs))
                return all(sides) if low else any(sides)
            case _:
                dim, ends = self.space.dim_of(value), (constant(0), self.last)
                pairs = () if dim is None else ((end, dim) if low else (dim, end) for end in ends)
                return any(self.space.less_equal(*pair) is True for pair in pairs)
