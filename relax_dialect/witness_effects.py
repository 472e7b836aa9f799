"""Why an op that binds symbols may not be removed although nothing uses its results: a type names what it binds."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.traits import ConditionallySpeculatable, EffectInstance, MemoryEffect, MemoryEffectKind, Resource

from relax_dialect.scope import block_symbols_used, symbols_used, symbols_witnessed

_NO_EFFECT: frozenset[EffectInstance] = frozenset()


@dataclass(frozen=True)
class SymbolScope(Resource):
    """The symbols that are in scope. No value changes with it: effects on it do not make an op impure."""

    def name(self) -> str:
        return "<symbols>"


class CheckedWitness(MemoryEffect, ConditionallySpeculatable):
    """Like `Checked`, for an op that may bind symbols.

    A use of a symbol in a type or property is no use of a value, so passes that only see values would drop the witness.
    While there is such a use, the op makes something that belongs to a value of the user: an op that holds both may be
    removed, the witness alone may not.
    """

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        bound = symbols_witnessed(op).keys()
        user = next(_values_with(bound, op), None) if bound else None
        if user is None:
            return _NO_EFFECT
        return frozenset((EffectInstance(MemoryEffectKind.ALLOC, user, SymbolScope()),))

    @classmethod
    def is_speculatable(cls, op: Operation) -> bool:
        return False


def _values_with(symbols: Collection[str], op: Operation) -> Iterator[SSAValue]:
    """Values of ops that use one of the symbols otherwise than through a result of `op`, the outermost scope first."""
    parent = op.parent_op()
    if parent is not None and (passed_on := symbols & symbols_witnessed(parent).keys()):
        yield from _values_with(passed_on, parent)
    own = set(op.results)
    following = op.next_op
    while following is not None:
        for inner in following.walk():
            if _uses(inner, symbols):
                yield from (value for value in (*inner.results, *inner.operands) if value not in own)
        following = following.next_op


def _uses(op: Operation, symbols: Collection[str]) -> bool:
    return not symbols_used(op).isdisjoint(symbols) or any(
        not block_symbols_used(block).isdisjoint(symbols) for region in op.regions for block in region.blocks
    )
