"""Conditions on sizes under which the accesses of a function are in bounds, and facts about indices that follow from a
condition or its negation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.accesses import Reach, reaches, runs_over, unconditional
from tir_dialect.analysis.index_space import IndexSpace, Variable, extremes
from tir_dialect.analysis.structure import has_no_effects
from tir_dialect.dims import Dim, DimLike
from tir_dialect.ops.arithmetic import AssertOp
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import IteratorKind


@dataclass(frozen=True)
class SizeCondition:
    """`smaller <= larger`, unless one of `lengths`, those of loops around the access, is not positive.

    All are expressions over the symbols of the function. `message` says which access leaves its range otherwise.
    """

    smaller: Dim
    larger: Dim
    lengths: tuple[Dim, ...]
    message: str = field(compare=False)


@dataclass(frozen=True)
class _Access:
    """What an op touches, and the loops around it, outermost first; whether those in `ignored` run is of no account."""

    reach: Reach
    loops: Sequence[Variable]
    ignored: frozenset[str]

    def lengths(self, space: IndexSpace, smaller: Dim, larger: Dim) -> tuple[Dim, ...] | None:
        """How often loops run that may be empty although not `smaller <= larger`; `None` if that is no expression."""
        found: dict[Dim, None] = {}
        for loop in self.loops:
            if loop.dim.symbols <= self.ignored:
                continue
            if loop.lower is None or loop.upper is None:
                return None
            length = loop.upper - loop.lower
            if not length.symbols.isdisjoint(space.variables):
                return None
            if not space.less_equal(1, length) and not _follows(space, length, smaller, larger):
                found.setdefault(length)
        return tuple(found)


def size_conditions(func: PrimFuncOp) -> tuple[SizeCondition, ...]:
    """The conditions that can be neither proved nor refuted for all sizes, in program order, without repetitions.

    Of the accesses, views and iterators that `wrong_access` looks at: those that run unconditionally. Where a condition
    fails, one of these leaves its range. Where all hold, none does whose index is an expression of loop variables with
    least and greatest values that are attained; of other indices, such as data, and of buffers that both ways of a
    branch access, it is known that there is a valid one. The function has to be verified.
    """
    space = IndexSpace(func)
    found: dict[SizeCondition, None] = {}
    for op, loops in unconditional(space, func, ()):
        for one, holds in ((op, _open), *((each, _open_if_data) for each in _on_both_ways(op))):
            for what, reach in reaches(space, one):
                if isinstance(reach.start.type, IndexType):
                    variables = [space.variable(loop.induction_var) for loop in loops]
                    access = _Access(reach, variables, _reduced(space, op))
                    found |= dict.fromkeys(holds(space, f"{func.sym_name.data}: {what}", access))
    return tuple(found)


def _on_both_ways(op: Operation) -> list[LoadOp | StoreOp]:
    """The accesses on the ways of a branch to buffers that are accessed on both."""
    if not isinstance(op, IfOp):
        return []
    one, other = (
        [each for each in region.block.ops if isinstance(each, LoadOp | StoreOp) and each.mask is None]
        for region in (op.then_body, op.else_body)
    )
    buffers = {each.buffer for each in one} & {each.buffer for each in other}
    return [each for each in (*one, *other) if each.buffer in buffers]


def first_effect(func: PrimFuncOp) -> Operation | None:
    """The op before which conditions are checked: the first one with effects other than assertions."""
    return next((op for op in func.body.block.ops if not (has_no_effects(op) or isinstance(op, AssertOp))), None)


def _open(space: IndexSpace, subject: str, access: _Access) -> Iterator[SizeCondition]:
    """The lower and the upper end of what is touched, as far as they are not known to be in range."""
    reach = access.reach
    if runs_over(space, reach):
        return
    dim = space.dim_of(reach.start)
    found = None if dim is None else extremes(dim, access.loops, space.prover)
    if dim is None or found is None or not found.exact or not dim.symbols.isdisjoint(access.ignored):
        if not access.ignored:
            yield from _somewhere(space, subject, access)
        return
    high = found.high + reach.width - 1
    low_end = f"{subject} reaches {found.low}, expected at least {reach.first}"
    high_end = f"{subject} reaches {high}, expected less than {reach.end}"
    for smaller, larger, message in ((reach.first, found.low, low_end), (high + 1, reach.end, high_end)):
        lengths = None if space.less_equal(smaller, larger) else access.lengths(space, smaller, larger)
        if lengths is not None:
            yield SizeCondition(smaller, larger, lengths, message)


def _open_if_data(space: IndexSpace, subject: str, access: _Access) -> Iterator[SizeCondition]:
    """The same of an access on both ways of a branch: which numbers its index has may depend on the way."""
    dim = space.dim_of(access.reach.start)
    if dim is None and not access.ignored:
        yield from _somewhere(space, subject, access)


def _somewhere(space: IndexSpace, subject: str, access: _Access) -> Iterator[SizeCondition]:
    """That there is a valid index at all, where it is data or otherwise no expression of loop variables."""
    least, end = access.reach.first + access.reach.width, access.reach.end
    lengths = None if space.less_equal(least, end) else access.lengths(space, least, end)
    if lengths is not None:
        message = f"{subject} reaches at least {least - 1}, expected less than {end}"
        yield SizeCondition(least, end, lengths, message)


def _follows(space: IndexSpace, length: Dim, smaller: Dim, larger: Dim) -> bool:
    """Whether `smaller <= larger` is known where a loop of this length is empty."""
    name = length.as_symbol
    if name is None:
        return False
    try:
        least, greatest = smaller.substitute({name: 0}), larger.substitute({name: 0})
    except ZeroDivisionError:  # they have no value there
        return False
    return space.less_equal(least, greatest) is True


def _reduced(space: IndexSpace, op: Operation) -> frozenset[str]:
    """For an op of an init, the variables of its reduction: it runs once for all of their values, or for none."""
    init = op.parent_op()
    block = None if init is None else init.parent_op()
    if not isinstance(init, InitOp) or not isinstance(block, BlockOp):
        return frozenset()
    bindings = [space.dim_of(each.binding) for each in block.iterators if each.kind is not IteratorKind.SPATIAL]
    return frozenset[str]().union(*(binding.symbols for binding in bindings if binding is not None))


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
