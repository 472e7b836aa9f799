"""Dependence of values on loop variables and block iterators, and which variables are known where several
expressions of them are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import product as pairs
from typing import TypeAlias

from xdsl.ir import BlockArgument, Operation, SSAValue

from tir_dialect.analysis.digits import ONE, Digit, Ranges, Sum, Term, as_sum, covers, digit_range, grows
from tir_dialect.analysis.structure import block_of, loop_of
from tir_dialect.dims import Dim, SymbolAtom
from tir_dialect.dims.division import DivisionAtom
from tir_dialect.ops.memory import LoadOp

NOTHING: frozenset[BlockArgument] = frozenset()


class Dependence:
    """Which of some variables a value is computed from; each value is looked at once.

    An op counts as computing its results from its operands and those of the ops in its regions, a loop variable as
    computed from the bounds of its loop, a loaded value from what `loads` says, and a block iterator from its binding,
    or, without `through_bindings`, from nothing.
    """

    def __init__(
        self,
        is_variable: Callable[[BlockArgument], bool],
        *,
        loads: Callable[[LoadOp], Iterable[SSAValue]] = lambda load: load.operands,
        through_bindings: bool = True,
    ):
        """`is_variable` tells what to look for."""
        self._is_variable = is_variable
        self._loads = loads
        self._through_bindings = through_bindings
        self._known: dict[SSAValue, frozenset[BlockArgument]] = {}

    def of(self, value: SSAValue) -> frozenset[BlockArgument]:
        """The variables that `value` is computed from."""
        pending = [value]
        while pending:
            current = pending[-1]
            if current in self._known:
                pending.pop()
                continue
            if isinstance(current, BlockArgument) and self._is_variable(current):
                self._known[current] = frozenset((current,))
                continue
            sources = list(self._sources(current))
            missing = [source for source in sources if source not in self._known]
            if missing:
                pending += missing
            else:
                self._known[current] = NOTHING.union(*(self._known[source] for source in sources))
        return self._known[value]

    def of_all(self, values: Iterable[SSAValue]) -> frozenset[BlockArgument]:
        """The variables that any of `values` is computed from."""
        return NOTHING.union(*map(self.of, values))

    def _sources(self, value: SSAValue) -> Iterable[SSAValue]:
        if isinstance(value, BlockArgument):
            loop, block = loop_of(value), block_of(value)
            if loop is not None:
                return loop.operands
            return (block.bindings[value.index],) if block is not None and self._through_bindings else ()
        op = value.owner
        if not isinstance(op, Operation):
            return ()
        if isinstance(op, LoadOp):
            return self._loads(op)
        return op.operands if not op.regions else _operands_from_outside(op)


def _operands_from_outside(op: Operation) -> Iterator[SSAValue]:
    """The operands of `op` and the ops in its regions that are defined outside of it."""
    inner = set(op.walk())
    for user in inner:
        for operand in user.operands:
            owner = operand.owner
            definer = owner if isinstance(owner, Operation) else owner.parent_op()
            if definer not in inner or definer is op:
                yield operand


def is_loop_variable(argument: BlockArgument) -> bool:
    """Whether the argument is the induction variable of a loop."""
    return loop_of(argument) is not None


def is_variable(argument: BlockArgument) -> bool:
    """Whether the argument is the induction variable of a loop or an iterator of a block."""
    return loop_of(argument) is not None or block_of(argument) is not None


@dataclass(frozen=True)
class Axis:
    """The indices `low <= index < low + width` of one dimension; without `low` any index."""

    low: Dim | None
    width: Dim = ONE


Row: TypeAlias = "tuple[Axis, ...]"
"""One index of the same element in several positions, one entry per position."""


def determine(space: Ranges, rows: Sequence[Row], variable: Dim, names: AbstractSet[str]) -> bool:
    """Whether two positions that agree in all rows have the same value of `variable`; `names` may differ
    between them.
    """
    pending, digits = list(rows), list[tuple[Digit, ...]]()
    while pending:
        digits += _common_digits(space, pending.pop(), variable, names)
        for sources in dict.fromkeys(tuple(digit.source for digit in column) for column in digits):
            if sources[0] is variable or not _all_cover(space, sources, digits):
                continue
            # all digits of an expression of several variables are known, so the expression is
            digits = [column for column in digits if tuple(digit.source for digit in column) != sources]
            pending.append(tuple(Axis(source) for source in sources))
    width = len(rows[0]) if rows else 0
    return width > 0 and _all_cover(space, (variable,) * width, digits)


def _all_cover(space: Ranges, sources: tuple[Dim, ...], digits: Sequence[tuple[Digit, ...]]) -> bool:
    own = [column for column in digits if tuple(digit.source for digit in column) == sources]
    return all(covers(space, source, [column[index] for column in own]) for index, source in enumerate(sources))


@dataclass(frozen=True)
class _View:
    """An index as `base + r + upper` with `0 <= r < span`; `upper` are the terms from the variable's first one on.

    In `upper` the digits of other variables are `None`.
    """

    base: Dim
    span: Dim
    upper: tuple[tuple[Term, Digit | None], ...]

    @property
    def shape(self) -> list[tuple[object, ...]]:
        """What has to be the same in two positions."""
        return [(term.factor, term.mirrored, digit and (digit.low, digit.high)) for term, digit in self.upper]


def _common_digits(space: Ranges, row: Row, variable: Dim, names: AbstractSet[str]) -> list[tuple[Digit, ...]]:
    """The digits that involve the variable, per position, if the same value means the same digits in all positions."""
    views: list[_View] = []
    for axis in row:
        found = None if axis.low is None else as_sum(space, axis.low, names)
        view = None if found is None else _view(space, found, axis.width, variable)
        if view is None or view.shape != (views or [view])[0].shape:
            return []
        views.append(view)
    factor = views[0].upper[0][0].factor
    for one, other in pairs(views, views):
        if space.less_equal(one.base + one.span - other.base, factor) is not True:
            return []
    columns = zip(*(view.upper for view in views), strict=True)
    return [tuple(d for _, d in column if d is not None) for column in columns if column[0][1] is not None]


def _view(space: Ranges, index: Sum, width: Dim, variable: Dim) -> _View | None:
    name = variable.as_symbol or ""
    first = next((position for position, term in enumerate(index.terms) if name in term.digit.source.symbols), None)
    if first is None or not grows(space, index.terms[first:]):
        return None
    span = width
    for term in index.terms[:first]:
        values = digit_range(space, term.digit)
        if values is None:
            return None
        span = span + term.factor * (values - ONE)
    upper = tuple((t, t.digit if name in t.digit.source.symbols else None) for t in index.terms[first:])
    return _View(index.base, span, upper)


def has_constant_factors(dim: Dim, names: AbstractSet[str]) -> bool:
    """Whether the variables of these names occur with constant factors, also in what is divided by constants."""
    for _, monomial in dim.terms:
        moving = [atom for atom, _ in monomial if not names.isdisjoint(atom.symbols)]
        if not moving:
            continue
        if sum(power for _, power in monomial) > 1:
            return False
        (atom,) = moving
        if isinstance(atom, DivisionAtom) and atom.denominator.is_constant:
            if not has_constant_factors(atom.numerator, names):
                return False
        elif not isinstance(atom, SymbolAtom):
            return False
    return True
