"""What a pattern has found: values by pattern, the ops inside, and what goes in and out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from xdsl.ir import Block, Operation, OpResult, SSAValue

from relax_dialect.analysis.effects import may_write, unchanged_between


class Pattern(Protocol):
    """What a match has to know about a pattern."""

    is_inner: bool
    """Whether the op that makes the value belongs to what is matched."""

    used_outside: bool
    """Whether ops that are not matched may use the value too."""


@dataclass(frozen=True)
class Bindings:
    """Values by pattern, as a list that grows at its head: alternatives share what they have in common."""

    pattern: Pattern | None = None
    value: SSAValue | None = None
    rest: Bindings | None = None

    def __iter__(self) -> Iterator[tuple[Pattern, SSAValue]]:
        here: Bindings | None = self
        while here is not None:
            if here.pattern is not None and here.value is not None:
                yield here.pattern, here.value
            here = here.rest

    def extend(self, pattern: Pattern, value: SSAValue) -> Bindings | None:
        """With `pattern` bound to `value`; `None` if it is bound to another one."""
        for known, bound in self:
            if known is pattern:
                return self if bound is value else None
        return Bindings(pattern, value, self)


@dataclass(frozen=True)
class Match:
    """A way in which a pattern fits a value.

    `ops` are in program order, all in one block, without effects. `inputs` are the values that they use and do not
    make, in the order of use. `outputs` are the values that others use: the matched value, and those of patterns that
    `may_be_used_outside`.
    """

    value: SSAValue
    ops: tuple[Operation, ...]
    inputs: tuple[SSAValue, ...]
    outputs: tuple[SSAValue, ...]
    _bound: Bindings

    def __getitem__(self, pattern: Pattern) -> SSAValue:
        """The value of a pattern; `KeyError` if it is in an alternative that was not taken."""
        for known, value in self._bound:
            if known is pattern:
                return value
        raise KeyError("the pattern is not part of what was matched")

    def __contains__(self, pattern: Pattern) -> bool:
        return any(known is pattern for known, _ in self._bound)

    @staticmethod
    def of(value: SSAValue, bound: Bindings) -> Match | None:
        """The match, if its ops can be taken out of the program together."""
        inner = {each.op: None for pattern, each in bound if pattern.is_inner and isinstance(each, OpResult)}
        ops = _in_order(value, inner)
        if ops is None or any(map(may_write, ops)):
            return None
        shared = {each for pattern, each in bound if pattern.used_outside}
        outputs = _used_outside(ops, value)
        if any(output is not value and output not in shared for output in outputs):
            return None
        inputs = dict.fromkeys(operand for op in ops for operand in op.operands if operand.owner not in inner)
        if not _can_stand_at_the_end(ops, inner, outputs):
            return None
        if ops and not unchanged_between(inputs, ops[0], ops[-1]):
            return None
        return Match(value, ops, tuple(inputs), outputs, bound)


def _in_order(value: SSAValue, ops: dict[Operation, None]) -> tuple[Operation, ...] | None:
    """The ops in program order; `None` if they are in several blocks. All lead to `value`, so its op is the last."""
    if not ops:
        return ()
    last = value.owner
    if isinstance(last, Block) or any(op.parent is not last.parent for op in ops):
        return None
    found: list[Operation] = []
    here: Operation | None = last
    while here is not None and len(found) < len(ops):
        if here in ops:
            found.append(here)
        here = here.prev_op
    return tuple(reversed(found))


def _used_outside(ops: Sequence[Operation], value: SSAValue) -> tuple[SSAValue, ...]:
    inside = set(ops)
    results = [result for op in ops for result in op.results]
    used = [each for each in results if each is value or any(use.operation not in inside for use in each.uses)]
    return tuple(used)


def _can_stand_at_the_end(ops: Sequence[Operation], inner: dict[Operation, None], outputs: Sequence[SSAValue]) -> bool:
    """Whether all ops can move to where the last one is: nothing in between uses a value of theirs."""
    if not ops:
        return True
    early = {output for output in outputs if output.owner is not ops[-1]}
    between = ops[0].next_op
    while early and between is not None and between is not ops[-1]:
        if between not in inner and any(operand in early for each in between.walk() for operand in each.operands):
            return False
        between = between.next_op
    return True
