"""Finding loops and blocks; and random decisions, which are recorded in the trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, prod

from tir_dialect.analysis.regions import read_buffers, written_buffers
from tir_dialect.analysis.structure import child_blocks, enclosing_loops
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.schedule.edits import blocks_in, scope_of
from tir_dialect.schedule.handles import Block, Drawn, Loop
from tir_dialect.schedule.state import ScheduleState, primitive, query


@query
def work_on(self: ScheduleState, function: str) -> None:
    """Selects the function that names refer to; the default is `@main`, or the only function of the module.

    Refuses:
    1. a name that no function of the module has.
    """
    func = self.functions.named.get(function)
    if func is None:
        raise self.error(f"expected the name of a function, got @{function}; {self.functions.names}")
    self.functions.current = func


@primitive
def enter_postproc(self: ScheduleState) -> None:
    """Marks the start of postprocessing: `Trace.simplified` and `apply_to_schedule` may drop what follows."""


@query
def get_block(self: ScheduleState, name: str) -> Block:
    """The block called `name`.

    "root" is the function itself, as an argument of `get_child_blocks` and `get_output_blocks`.

    Refuses:
    1. a name that no block has.
    """
    return self.block_named(name)


@query
def get_blocks(self: ScheduleState) -> tuple[Block, ...]:
    """All blocks, in program order, outer ones first."""
    return tuple(self.block(op) for op in blocks_in(self.func))


@query
def get_loops(self: ScheduleState, block: Block) -> tuple[Loop, ...]:
    """The loops around a block, up to the next block or the function, outermost first."""
    return tuple(self.loop(op) for op in enclosing_loops(block.op))


@query
def get_producers(self: ScheduleState, block: Block) -> tuple[Block, ...]:
    """The sibling blocks that write what a block reads, in program order."""
    reads = read_buffers(block.op)
    return _beside(self, block.op, lambda other: not reads.isdisjoint(written_buffers(other)))


@query
def get_consumers(self: ScheduleState, block: Block) -> tuple[Block, ...]:
    """The sibling blocks that read what a block writes, in program order."""
    writes = written_buffers(block.op)
    return _beside(self, block.op, lambda other: not writes.isdisjoint(read_buffers(other)))


def _beside(self: ScheduleState, block: BlockOp, wanted: Callable[[BlockOp], bool]) -> tuple[Block, ...]:
    scope = scope_of(block)
    others = (op for op in blocks_in(scope) if op is not block and scope_of(op) is scope)
    return tuple(self.block(op) for op in others if wanted(op))


@query
def get_output_blocks(self: ScheduleState, block: Block | None = None) -> tuple[Block, ...]:
    """The blocks of the function, or inside a block, that write parameters or buffers allocated outside it."""
    scope = self.func if block is None else block.op
    own = {op.buffer for op in scope.walk() if isinstance(op, AllocBufferOp)}
    return tuple(self.block(op) for op in blocks_in(scope) if written_buffers(op) - own)


@query
def get_child_blocks(self: ScheduleState, block_or_loop: Block | Loop | None = None) -> tuple[Block, ...]:
    """The blocks immediately inside a block, a loop or the function, in program order."""
    return tuple(self.block(op) for op in child_blocks(self.func if block_or_loop is None else block_or_loop.op))


@query
def sample_categorical(
    self: ScheduleState, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
) -> int:
    """One of the candidates, drawn with the given probabilities, or the one at index `decision`.

    Refuses:
    1. other than one probability for each candidate, and probabilities below 0, or of 0 only;
    2. a decision that is no index of a candidate.
    """
    if len(candidates) != len(probs) or not candidates:
        raise self.error(f"expected a probability for each candidate, got {len(probs)} for {len(candidates)}")
    if not all(0 <= probability < inf for probability in probs) or not sum(probs):
        raise self.error(f"expected probabilities of at least 0, and not of 0 only, got {list(probs)}")
    if decision is None:
        (decision,) = self.random.choices(range(len(candidates)), probs)
    if not 0 <= decision < len(candidates):
        raise self.error(f"expected a decision of 0 to {len(candidates) - 1}, got {decision}")
    self.record_with(decision=int(decision))
    return Drawn(candidates[decision])


@query
def sample_perfect_tile(
    self: ScheduleState,
    loop: Loop,
    n: int,
    max_innermost_factor: int = 16,
    decision: Sequence[int | None] | None = None,
) -> list[int | None]:
    """`n` factors whose product is the extent of a loop, the last one at most `max_innermost_factor`.

    Of an extent that is not constant, the first factor is `None`, what is left, and the others are 1.

    Refuses:
    1. fewer than one factor, a loop of extent 0, and a `max_innermost_factor` below 1;
    2. a decision that is no such list.
    """
    if n >= 1 and self.extent(loop.op).constant_value is None:
        whole = [None, *[1] * (n - 1)]
        if decision is not None and list(decision) != whole:
            raise self.error(f"expected {whole} for a loop whose extent is not constant, got {list(decision)}")
        self.record_with(decision=whole)
        return [None, *(Drawn(1) for _ in whole[1:])]
    extent = _extent(self, loop, n)
    if max_innermost_factor < 1:
        raise self.error(f"expected a max_innermost_factor of at least 1, got {max_innermost_factor}")
    if decision is None:
        last = self.random.choice([d for d in _divisors(extent) if d <= max_innermost_factor]) if n > 1 else extent
        decision = [*_factors(self, extent // last, n - 1), last]
    return [*_decided(self, extent, n, decision)]


@query
def sample_partitioned_tile(
    self: ScheduleState,
    loop: Loop,
    n: int,
    partition_pos: int = 0,
    innerpart_factor: int = 1,
    decision: Sequence[int] | None = None,
) -> list[int]:
    """`n` factors of the extent of a loop, those from `partition_pos` on a multiple of `innerpart_factor`.

    The product of these factors is the multiple, for instance of a vector's lanes.

    Refuses:
    1. fewer than one factor, and a loop of no constant extent, or of extent 0;
    2. a position that is none of a factor, and an extent that is no multiple of `innerpart_factor`;
    3. a decision that is no such list.
    """
    extent = _extent(self, loop, n)
    if not 0 <= partition_pos < n or innerpart_factor < 1 or extent % innerpart_factor:
        raise self.error(
            f"expected a partition position of 0 to {n - 1} and a divisor of {extent}, "
            f"got {partition_pos} and {innerpart_factor}"
        )
    if decision is None:
        rest = extent // innerpart_factor
        outer = self.random.choice(_divisors(rest)) if partition_pos else 1
        inner = _factors(self, rest // outer, n - partition_pos)
        inner[0] *= innerpart_factor
        decision = [*_factors(self, outer, partition_pos), *inner]
    if prod(decision[partition_pos:]) % innerpart_factor:
        raise self.error(f"expected inner factors with a multiple of {innerpart_factor}, got {list(decision)}")
    return _decided(self, extent, n, decision)


def _extent(self: ScheduleState, loop: Loop, n: int) -> int:
    extent = self.extent(loop.op).constant_value
    if extent is None or extent < 1 or n < 1:
        raise self.error(f'expected a loop of constant extent and at least one factor, got "{loop.name}" and {n}')
    return extent


def _factors(self: ScheduleState, number: int, count: int) -> list[int]:
    """So many factors of a number at random; none of the number 1."""
    factors: list[int] = []
    for _ in range(count - 1):
        factors.insert(0, self.random.choice(_divisors(number)))
        number //= factors[0]
    return [number, *factors] if count else []


def _decided(self: ScheduleState, extent: int, n: int, decision: Sequence[int | None]) -> list[int]:
    factors = [int(factor) for factor in decision if factor is not None]
    if len(factors) != n or len(decision) != n or prod(factors) != extent or min(factors) < 1:
        raise self.error(f"expected {n} factors of {extent}, got {list(decision)}")
    self.record_with(decision=factors)
    return [Drawn(factor) for factor in factors]


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


@query
def sample_compute_location(self: ScheduleState, block: Block, decision: int | None = None) -> Loop:
    """A random loop of the first consumer of a block, for `compute_at`, or the one at index `decision`.

    Whether the block may be computed there is for `compute_at` to say.

    Refuses:
    1. a block that no block in loops reads the results of;
    2. a decision that is no index of such a loop.
    """
    consumers = get_consumers(self, block)
    loops = get_loops(self, consumers[0]) if consumers else ()
    if not loops:
        raise self.error(f'no block in loops reads what block "{block.name}" writes')
    if decision is None:
        decision = self.random.randrange(len(loops))
    if not 0 <= decision < len(loops):
        raise self.error(f"expected a decision of 0 to {len(loops) - 1}, got {decision}")
    self.record_with(decision=int(decision))
    return loops[decision]
