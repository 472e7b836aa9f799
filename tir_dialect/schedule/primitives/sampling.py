"""Choices at random, which the trace remembers."""

from __future__ import annotations

from collections.abc import Sequence

from tir_dialect.schedule.handles import Block, Loop
from tir_dialect.schedule.primitives.queries import get_consumers, get_loops
from tir_dialect.schedule.state import ScheduleState, query


@query
def sample_categorical(
    self: ScheduleState, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
) -> int:
    """One of some numbers, drawn with the given probabilities, or the one at place `decision`."""
    if len(candidates) != len(probs) or not candidates:
        raise self.error(f"expected a probability for each candidate, got {len(probs)} for {len(candidates)}")
    if decision is None:
        (decision,) = self.random.choices(range(len(candidates)), probs)
    if not 0 <= decision < len(candidates):
        raise self.error(f"expected a decision of 0 to {len(candidates) - 1}, got {decision}")
    self.record_with(decision=decision)
    return candidates[decision]


@query
def sample_perfect_tile(
    self: ScheduleState, loop: Loop, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None
) -> list[int]:
    """`n` factors whose product is the extent of a loop, the last one at most `max_innermost_factor`.

    Refuses a loop of no constant extent, and a decision that is no such list.
    """
    extent = self.extent(loop.op).constant_value
    if extent is None or extent < 1 or n < 1:
        raise self.error(f'expected a loop of constant extent and at least one factor, got "{loop.name}" and {n}')
    if decision is None:
        last = self.random.choice([d for d in _divisors(extent) if d <= max_innermost_factor]) if n > 1 else extent
        factors = [last]
        left = extent // last
        for _ in range(n - 2):
            factors.insert(0, self.random.choice(_divisors(left)))
            left //= factors[0]
        decision = [left, *factors] if n > 1 else factors
    total = 1
    for factor in decision:
        total *= factor
    if len(decision) != n or total != extent:
        raise self.error(f"expected {n} factors of {extent}, got {list(decision)}")
    self.record_with(decision=list(decision))
    return list(decision)


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


@query
def sample_compute_location(self: ScheduleState, block: Block, decision: int | None = None) -> Loop:
    """A loop of the first consumer of a block, for `compute_at`: one at random, or the one at place `decision`.

    Whether the block may be computed there is for `compute_at` to say. Refuses a block without consumers in loops.
    """
    consumers = get_consumers(self, block)
    loops = get_loops(self, consumers[0]) if consumers else ()
    if not loops:
        raise self.error(f'no block in loops reads what block "{block.name}" writes')
    if decision is None:
        decision = self.random.randrange(len(loops))
    if not 0 <= decision < len(loops):
        raise self.error(f"expected a decision of 0 to {len(loops) - 1}, got {decision}")
    self.record_with(decision=decision)
    return loops[decision]
