"""Purity: which relax ops have effects, why, and what a dataflow region or a pure function may hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Set as AbstractSet

from xdsl.ir import Operation
from xdsl.traits import (
    AlwaysSpeculatable,
    ConditionallySpeculatable,
    EffectInstance,
    MemoryEffect,
    MemoryEffectKind,
    OpTrait,
    get_effects,
)

from relax_dialect.external import EFFECTS
from relax_dialect.scope import CheckedWitness

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
