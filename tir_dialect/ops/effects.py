"""Memory effects of the ops, so that xDSL's own `cse`, `dce` and `licm` are right."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.ir import Operation
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, Resource


@dataclass(frozen=True)
class Errors(Resource):
    """The fact that a program goes on: an assertion may change it."""

    def name(self) -> str:
        """As effects print it."""
        return "tir.errors"


@dataclass(frozen=True)
class Declarations(Resource):
    """What a block says about itself, which has to stay although nothing runs."""

    def name(self) -> str:
        """As effects print it."""
        return "tir.declarations"


_UNKNOWN = frozenset(EffectInstance(kind) for kind in MemoryEffectKind)
_MAY_RAISE = frozenset((EffectInstance(MemoryEffectKind.WRITE, resource=Errors()),))
_DECLARES = frozenset((EffectInstance(MemoryEffectKind.WRITE, resource=Declarations()),))


class MayRaise(MemoryEffect):
    """An assertion: it touches no memory, but it must run, in order."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """A write of the resource `tir.errors`."""
        return _MAY_RAISE


class Declares(MemoryEffect):
    """A declaration: it touches no memory, but it must stay."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """A write of the resource `tir.declarations`."""
        return _DECLARES


class UnknownEffects(MemoryEffect):
    """A call of code that is not known: it may read, write, allocate and free anything."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """Every kind of effect; none if the op carries the property `pure`."""
        return frozenset() if "pure" in op.properties else _UNKNOWN


class AllocatesResults(MemoryEffect):
    """The results are memory that nobody else has."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """An allocation for each result."""
        return frozenset(EffectInstance(MemoryEffectKind.ALLOC, value=result) for result in op.results)


@dataclass(frozen=True)
class Caches(Resource):
    """What is near: it changes how long things take, and nothing else."""

    def name(self) -> str:
        """As effects print it."""
        return "tir.caches"


_FILLS_CACHES = frozenset((EffectInstance(MemoryEffectKind.WRITE, resource=Caches()),))


class FillsCaches(MemoryEffect):
    """A hint: it touches no memory that anybody sees, but it must stay where it is."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """A write of the resource `tir.caches`."""
        return _FILLS_CACHES
