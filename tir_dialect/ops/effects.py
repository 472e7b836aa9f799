"""Memory effects of the ops, so that xDSL's own `cse`, `dce` and `licm` are right; and verifiers that need an
analysis of the function.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.ir import Operation
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, Resource

from tir_dialect.extensions import ExternalModels


@dataclass(frozen=True)
class Errors(Resource):
    """The resource that assertions write: whether execution continues."""

    def name(self) -> str:
        """As effects print it."""
        return "tir.errors"


@dataclass(frozen=True)
class Declarations(Resource):
    """The resource that the declarations of a block write: they generate no code, but have to be kept."""

    def name(self) -> str:
        """As effects print it."""
        return "tir.declarations"


_UNKNOWN = frozenset(EffectInstance(kind) for kind in MemoryEffectKind)
_MAY_RAISE = frozenset((EffectInstance(MemoryEffectKind.WRITE, resource=Errors()),))
_DECLARES = frozenset((EffectInstance(MemoryEffectKind.WRITE, resource=Declarations()),))


class MayRaise(MemoryEffect):
    """The trait of an assertion: it accesses no memory, but must be executed, in order."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """A write of the resource `tir.errors`."""
        return _MAY_RAISE


class Declares(MemoryEffect):
    """The trait of a declaration: it accesses no memory, but must be kept."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """A write of the resource `tir.declarations`."""
        return _DECLARES


class UnknownEffects(MemoryEffect):
    """The trait of a call of unknown code: it may read, write, allocate and free any memory."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """Every kind of effect; none if the op carries the property `pure`."""
        return frozenset() if "pure" in op.properties else _UNKNOWN


class AllocatesResults(MemoryEffect):
    """The trait of an op whose results are newly allocated memory."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """An allocation for each result."""
        return frozenset(EffectInstance(MemoryEffectKind.ALLOC, value=result) for result in op.results)


@dataclass(frozen=True)
class Caches(Resource):
    """The resource that prefetches write: the state of the caches."""

    def name(self) -> str:
        """As effects print it."""
        return "tir.caches"


_FILLS_CACHES = frozenset((EffectInstance(MemoryEffectKind.WRITE, resource=Caches()),))


class FillsCaches(MemoryEffect):
    """The trait of a prefetch: it accesses no visible memory, but must stay where it is."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """A write of the resource `tir.caches`."""
        return _FILLS_CACHES


Verifier: TypeAlias = Callable[[Any], None]
"""Raises `VerifyException` for an op that breaks a constraint."""

VERIFIERS: ExternalModels[Verifier] = ExternalModels(
    {
        "tir.block": "tir_dialect.analysis.functions",
        "tir.call": "tir_dialect.analysis.functions",
        "tir.match_buffer": "tir_dialect.analysis.functions",
        "tir.prim_func": "tir_dialect.analysis.functions",
    }
)
"""What the ops call at the end of `verify_`."""
