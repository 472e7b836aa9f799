"""Facts about indices that follow from a condition or its negation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from tir_dialect.dims import Dim, DimLike

_NAMES = list(arith.CMPI_COMPARISON_OPERATIONS)
_PAIRS = (("eq", "ne"), ("slt", "sge"), ("sle", "sgt"), ("ult", "uge"), ("ule", "ugt"))
_OPPOSITES = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
_TURNED = {"sgt": "slt", "sge": "sle", "ugt": "ult", "uge": "ule"}


class Numbers(Protocol):
    """The interface of `DataSpace`."""

    def number(self, value: SSAValue) -> Dim | None: ...

    def less_equal(self, lhs: DimLike, rhs: DimLike) -> bool | None: ...


def facts(space: Numbers, condition: SSAValue, holds: bool = True) -> Iterator[Dim]:
    """Expressions that are <= 0 where a condition holds, or where it does not hold."""
    match condition.owner:
        case arith.CmpiOp() as op:
            name = _NAMES[op.predicate.value.data]
            sides = space.number(op.lhs), space.number(op.rhs)
            if sides[0] is not None and sides[1] is not None:
                yield from _compared(space, name if holds else _OPPOSITES[name], sides[0], sides[1])
        case arith.AndIOp() | arith.OrIOp() as op if isinstance(op, arith.AndIOp) == holds:
            yield from facts(space, op.lhs, holds)
            yield from facts(space, op.rhs, holds)
        case arith.XOrIOp() as op if _is_true(op.rhs):
            yield from facts(space, op.lhs, not holds)
        case _:
            return


def _compared(space: Numbers, name: str, lhs: Dim, rhs: Dim) -> Iterator[Dim]:
    if name in _TURNED:
        name, lhs, rhs = _TURNED[name], rhs, lhs
    match name:
        case "eq":
            yield from (lhs - rhs, rhs - lhs)
        case "slt":
            yield lhs - rhs + 1
        case "sle":
            yield lhs - rhs
        case "ult" | "ule" if space.less_equal(0, rhs):  # a negative number is a large unsigned one
            yield from (-lhs, lhs - rhs + (name == "ult"))
        case _:
            return


def _is_true(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr) and owner.value.value.data != 0
