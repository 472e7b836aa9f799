"""Dependence of values on loop variables and block iterators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from xdsl.ir import BlockArgument, Operation, SSAValue

from tir_dialect.analysis.structure import block_of, loop_of
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
            return self._sources_of_argument(value)
        op = value.owner
        if not isinstance(op, Operation):
            return ()
        if isinstance(op, LoadOp):
            return self._loads(op)
        return op.operands if not op.regions else _operands_from_outside(op)

    def _sources_of_argument(self, argument: BlockArgument) -> Iterable[SSAValue]:
        loop, block = loop_of(argument), block_of(argument)
        if loop is not None:
            return loop.operands
        return (block.bindings[argument.index],) if block is not None and self._through_bindings else ()


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
