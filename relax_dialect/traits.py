"""Purity: which relax ops have effects, why, what a dataflow region or a pure function may hold, and how it is
verified; and the verification of recursion.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.ir import Block, Operation, Region
from xdsl.traits import (
    AlwaysSpeculatable,
    ConditionallySpeculatable,
    EffectInstance,
    MemoryEffect,
    MemoryEffectKind,
    OpTrait,
    get_effects,
)
from xdsl.utils.exceptions import VerifyException

from relax_dialect.external import EFFECTS
from relax_dialect.scope import CheckedWitness, called_functions, find_function
from relax_dialect.struct_info.match import Mismatch, entry_match
from relax_dialect.struct_info.types import FuncType

_ANY_EFFECT = frozenset((EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)))
_NO_EFFECT: frozenset[EffectInstance] = frozenset()


class MayBeImpure(Operation, ABC):
    """An op that has effects, always or under a condition, and can say why."""

    @property
    @abstractmethod
    def impurity(self) -> str | None:
        """Why the op may have a visible effect ("calls a packed function, ..."), or `None` if it has none."""


class EffectsOfImpurity(MemoryEffect):
    """Effects of a `MayBeImpure` op: it may read and write anything, unless it says that it is pure."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        return _ANY_EFFECT if isinstance(op, MayBeImpure) and op.impurity is not None else _NO_EFFECT


class ControlFlow(OpTrait):
    """The op runs one of its regions, or one several times; dataflow regions have none of these."""


class ReadsTensors(MemoryEffect):
    """The op reads its operands when it is executed and makes its results, so that somebody may write into them.

    While nobody does, that is no effect (`relax_dialect/analysis/effects.py`).
    """

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        return EFFECTS.of("ReadsTensors")(op)


class Evaluated(ReadsTensors, AlwaysSpeculatable):
    """`ReadsTensors` for an op that never fails, such as a constant."""


class Checked(ReadsTensors, ConditionallySpeculatable):
    """`ReadsTensors`, but the op may fail at run time.

    It may be removed, moved down or merged with an equal one, but not executed where the program did not: a failure
    is a divergence, which a rewrite must not introduce (specification, "Purity and Dataflow Blocks").
    """

    @classmethod
    def is_speculatable(cls, op: Operation) -> bool:
        return False


def impurity_of(op: Operation) -> str | None:
    """Why `op` itself, apart from the ops in its regions, may have a visible effect; `None` if it has none."""
    if isinstance(op, MayBeImpure):
        return op.impurity
    if op.regions:
        return None if op.get_traits_of_type(MemoryEffect) else "has effects that are not known"
    if op.get_traits_of_type(CheckedWitness):
        return None
    if op.get_traits_of_type(ReadsTensors):
        return None
    effects = get_effects(op)
    if effects is None:
        return "has effects that are not known"
    return "reads or writes memory" if effects else None


def visible_impurity(op: Operation) -> str | None:
    """`impurity_of`, but for ops that only make new memory: nobody else sees it, though each run makes another one."""
    if isinstance(op, MayBeImpure) or op.regions or op.get_traits_of_type(ReadsTensors):
        return impurity_of(op)
    effects = get_effects(op)
    if effects and all(each.kind is MemoryEffectKind.ALLOC for each in effects):
        return None
    return impurity_of(op)


class AliasesOperand(OpTrait):
    """The first result is the first operand under another type: the same memory."""


class Unpacks(OpTrait):
    """The result is the operand in a form that takes several times the memory: a constant operand stays as it is."""


class OnlyReadsTensors(OpTrait):
    """The op looks at its tensor operands while it runs and does not keep them."""


class RunsWhenCalled(OpTrait):
    """The region of the op runs when its result is called, not where it stands: a closure."""


class HoldsDataflow(OpTrait):
    """The region of the op holds nothing but ops without effects, apart from control flow."""


class EndsInYield(OpTrait):
    """The regions of the op end in `relax.yield`, though it is no control flow."""


class Loop(OpTrait):
    """The op runs a region several times."""


@dataclass(frozen=True)
class Violation:
    """A rule that is broken, and the op that breaks it."""

    op: Operation
    message: str


class Violations(VerifyException):
    """All that is wrong with an op and what it holds; as text, the first of it."""

    def __init__(self, violations: Sequence[Violation]):
        super().__init__(violations[0].message)
        self.violations = tuple(violations)

    @staticmethod
    def check(violations: Iterable[Violation]) -> None:
        """Raises `Violations` if there are any."""
        if found := list(violations):
            raise Violations(found)


def walk_body(region: Region) -> Iterator[Operation]:
    """The ops in `region`, those of nested regions too, but not the bodies of closures: these run when called."""
    for op in region.ops:
        yield op
        if not op.has_trait(RunsWhenCalled):
            for nested in op.regions:
                yield from walk_body(nested)


def unsolvable(func: FuncType) -> str | None:
    """Why the parameters of `func` do not tell all its symbols; `None` if they do."""
    try:
        entry_match(func)
    except Mismatch as mismatch:
        return f"cannot be entered: {mismatch.reason}"
    return None


def purity_violations(region: Region, subject: str) -> Iterator[Violation]:
    """The impure ops of a pure function, which the messages call `subject`; dataflow regions look after their own."""
    for op in walk_body(region):
        parent = op.parent_op()
        inside = parent is not None and parent.has_trait(HoldsDataflow)
        if not inside and (message := purity_violation(op, subject)) is not None:
            yield Violation(op, message)


def purity_violation(op: Operation, subject: str) -> str | None:
    """Why an op must not stand in a pure function; `None` if it may."""
    reason = visible_impurity(op)
    if reason is None:
        return None
    return f"{subject} is pure, but holds '{op.name}', which is impure: it {reason}; write 'impure' before the body"


def dataflow_violations(body: Block) -> Iterator[Violation]:
    """What the block of a dataflow region must not hold."""
    for op in body.ops:
        if (message := dataflow_violation(op)) is not None:
            yield Violation(op, message)


def dataflow_violation(op: Operation) -> str | None:
    """Why an op must not stand where it stands in the block of a dataflow region; `None` if it may."""
    if op.has_trait(ControlFlow):
        return f"'relax.dataflow' op holds '{op.name}', which is control flow"  # C2
    if op.has_trait(HoldsDataflow):
        return "'relax.dataflow' op holds another 'relax.dataflow'"  # C2
    if (reason := visible_impurity(op)) is not None:
        return f"'relax.dataflow' op holds '{op.name}', which is impure: it {reason}; put it outside"  # C1
    if op.has_trait(RunsWhenCalled) and _captures_of_block(op):
        return "'relax.dataflow' op holds a closure that captures a value of the region"  # C3
    return None


def _captures_of_block(closure: Operation) -> bool:
    """Whether a closure uses a value of the block it stands in (specification, well-formedness 11)."""
    owners = (operand.owner for op in closure.walk() if op is not closure for operand in op.operands)
    return any(isinstance(owner, Operation) and owner.parent is closure.parent for owner in owners)


def recursion_violations(func: Operation, func_name: str) -> Iterator[Violation]:
    """The calls in dataflow regions of a function of functions from which it is reached."""
    elsewhere: set[str] = set()
    for dataflow in walk_body(func.regions[0]):
        for op in dataflow.regions[0].ops if dataflow.has_trait(HoldsDataflow) else ():
            for name in called_functions(op):
                if _reaches(name, func, func_name, elsewhere):
                    message = f"'relax.dataflow' op calls @{name} recursively"
                    yield Violation(op, f"{message}; recursion is control flow, call outside the region")


def _reaches(name: str, func: Operation, func_name: str, elsewhere: set[str]) -> bool:
    """Whether a function has that name or is called from there; `elsewhere` collects names from which it is not."""
    pending, seen = [name], set[str]()
    while pending:
        name = pending.pop()
        if name == func_name:
            return True
        if name not in seen and name not in elsewhere:
            seen.add(name)
            callee = find_function(func, name)
            pending += [] if callee is None else [each for op in callee.walk() for each in called_functions(op)]
    elsewhere |= seen
    return False
