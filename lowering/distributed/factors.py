"""What an operator lets workers share: its *factors*, the loops that it has, and the dimensions that they run over.

`matmul` has the factors `i`, `j` and `k`: `x[i, k]`, `y[k, j]`, `result[i, j]`. Workers can share the work along one
factor. Then each has the tiles of the dimensions that the factor runs over. A factor that no result has is reduced:
each worker gets a term of the result. A dimension without a factor is needed as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import TypeAlias, TypeVar, cast

from xdsl.ir import Operation, SSAValue

from lowering.distributed.local_shapes import LocalShapes
from relax_dialect.inference import ONE
from relax_dialect.loading import FamilyRules
from relax_dialect.struct_info.sharding import REPLICATE, MeshAxis, Partial, Placement, Shard
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant, floordiv

OpT = TypeVar("OpT", bound=Operation)
Labels: TypeAlias = tuple[str | None, ...]
"""The factor of each dimension of a value."""

LocalOp: TypeAlias = "Callable[[Sequence[SSAValue], MeshAxis, LocalShapes], SSAValue]"
"""The ops of a worker along an axis of the mesh, for its operands: they are inserted, and give its result."""

OpOnTiles: TypeAlias = "Callable[[Sequence[SSAValue], Collection[str], LocalShapes], Sequence[SSAValue]]"
"""The ops of a worker, for its operands and the factors that are shared: they are inserted, and give its results."""

FILES = {
    "contraction": "linear_algebra reduction normalization recurrent convolution pooling image vision",
    "functions": "binding call_tir",
    "indices": "gather indexing sorting",
    "shapes": "unary binary activation datatype creation manipulation rearranging joining",
}
"""The files of rules, with the families of ops that they are about. Ops of others are computed by all workers alike."""


@dataclass(frozen=True)
class Factors:
    """The factors of an op, by the dimensions of its operands and results."""

    operands: Sequence[Labels]
    """No labels for an operand that is no tensor."""
    results: Sequence[Labels]
    reduced: Mapping[str, str] = field(default_factory=dict[str, str])
    """How the terms along factors that no result has are combined."""
    even: frozenset[str] = frozenset()
    """Factors that run over dimensions of different sizes, which the number of workers has to divide."""
    units: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    """How many elements of the dimension of each operand and result belong to one step of a factor, as the features of
    a head: they stay on one worker.
    """
    local: Mapping[str, LocalOp] = field(default_factory=dict[str, LocalOp])
    """Factors along which a worker has to know which tile it has: the op on its tiles is not the op alone. No tile may
    be empty.
    """
    brought: Mapping[str, Dim] = field(default_factory=dict[str, Dim])
    """Bytes that a worker gives all others along a factor, where the op on tiles has exchanges of its own."""
    equal: frozenset[str] = frozenset()
    """Factors that run over dimensions which are written differently, and are equal, as the op checks."""
    on_tiles: OpOnTiles | None = None
    """What an op is on tiles that is no operator, whatever is shared of it."""

    @property
    def names(self) -> list[str]:
        """All factors, in the order of the dimensions that they run over."""
        found = [label for labels in (*self.operands, *self.results) for label in labels if label is not None]
        return list(dict.fromkeys(found))

    def step(self, factor: str, index: int) -> int:
        """How many elements of operand or result `index` belong to one step of a factor."""
        return self.units[factor][index] if factor in self.units else 1

    def unit(self, factor: str, index: int, placement: Shard) -> int:
        """How many steps of a factor stay on one worker, if operand or result `index` is placed so."""
        return placement.unit // gcd(placement.unit, self.step(factor, index))


@dataclass(frozen=True)
class Choice:
    """The placements of an op's operands and results along one axis of the mesh."""

    factor: str | None
    operands: tuple[Placement, ...]
    results: tuple[Placement, ...]


NO_UNITS: Mapping[str, Collection[int]] = {}
"""No factor of which several steps stay on one worker."""

Rule: TypeAlias = "Callable[[OpT], Factors | None]"

RULES: FamilyRules[Rule[Operation]] = FamilyRules("lowering.distributed.rules", (), FILES)
"""The factors of ops."""


def shards(*op_types: type[OpT]) -> Callable[[Rule[OpT]], Rule[OpT]]:
    """Registers the factors of ops of some classes; `None` for an op that cannot be shared."""

    def register(rule: Rule[OpT]) -> Rule[OpT]:
        RULES.update(dict.fromkeys(op_types, cast("Rule[Operation]", rule)))
        return rule

    return register


def factors_of(op: Operation) -> Factors | None:
    """The factors of an op; `None` if nothing is known about it, or the rank of one of its tensors is not."""
    rule = RULES[type(op)]
    if rule is None or any(isinstance(v.type, TensorType) and v.type.rank is None for v in (*op.operands, *op.results)):
        return None
    return rule(op)


def choice(op: Operation, factors: Factors, factor: str | None, axis: MeshAxis, unit: int = 1) -> Choice:
    """What operands and results are, if workers along an axis share an op along a factor, so many steps of which stay
    on one worker; without one, all do everything.
    """
    values, labels = (*op.operands, *op.results), (*factors.operands, *factors.results)
    placed: list[Placement] = [REPLICATE] * len(values)
    for index, own in enumerate(labels if factor is not None else ()):
        if factor is not None and factor in own:
            along = own.index(factor)
            placed[index] = tiles_of(values[index], along, unit * factors.step(factor, index), axis)
    if factor is not None and factor in factors.reduced:
        placed[len(op.operands) :] = [Partial(factors.reduced[factor])] * len(op.results)
    return Choice(factor, tuple(placed[: len(op.operands)]), tuple(placed[len(op.operands) :]))


def tiles_of(value: SSAValue, dim: int, unit: int, axis: MeshAxis) -> Shard:
    """Tiles of a dimension in units, which are not mentioned where tiles are equally large anyway."""
    size, workers = dims(value)[dim], axis.size.constant_value
    even = size is not None and workers is not None and divides(workers * unit, size)
    return Shard(dim) if even else Shard(dim, unit)


def choices(
    op: Operation, factors: Factors, axis: MeshAxis, units: Mapping[str, Collection[int]] = NO_UNITS
) -> Iterator[Choice]:
    """How workers along an axis can share an op: in any case all do everything. Of some factors, so many steps may have
    to stay on one worker.
    """
    yield choice(op, factors, None, axis)
    for factor in factors.names:
        for unit in sorted({1, *units.get(factor, ())}):
            if admits(op, factors, factor, axis, unit):
                yield choice(op, factors, factor, axis, unit)


def units_of(factors: Factors, placements: Sequence[Placement]) -> dict[str, set[int]]:
    """How many steps of each factor stay on one worker, where operands and results are placed so."""
    found: dict[str, set[int]] = {}
    for index, (labels, placement) in enumerate(zip((*factors.operands, *factors.results), placements, strict=True)):
        factor = labels[placement.dim] if isinstance(placement, Shard) and placement.dim < len(labels) else None
        if factor is not None and isinstance(placement, Shard):
            found.setdefault(factor, set()).add(factors.unit(factor, index, placement))
    return found


def admits(op: Operation, factors: Factors, factor: str, axis: MeshAxis, unit: int = 1) -> bool:
    """Whether tiles along a factor fit each other: each dimension has a size, and they have equally many steps, or
    workers divide them.

    A greatest or least element, and one that is taken, needs a tile that is not empty. Where elements stay together,
    there has to be a piece for each worker: else some would have nothing to do.
    """
    sizes, workers = list(sizes_of(op, factors, factor)), axis.size.constant_value
    known = [(size, step * unit) for size, step in sizes if size is not None]
    if len(known) < len(sizes) or workers is None:
        return False
    if factor in factors.even:
        return unit == 1 and all(divides(workers, size) for size, _ in known)
    if not all(divides(step, size) for size, step in known):
        return False
    counts = [floordiv(size, constant(step)) for size, step in known]
    if len(set(counts)) != 1 and factor not in factors.equal:
        return False
    if factor in factors.units and not all(has_pieces(workers, count) for count in counts):
        return False
    if factor in factors.local or factors.reduced.get(factor) in ("min", "max"):
        return unit == 1 and fills(workers, counts[0])
    return True


def sizes_of(op: Operation, factors: Factors, factor: str) -> Iterator[tuple[Dim | None, int]]:
    """The dimensions that a factor runs over, each with how many elements belong to a step."""
    for index, (value, labels) in enumerate(
        zip((*op.operands, *op.results), (*factors.operands, *factors.results), strict=True)
    ):
        if factor in labels and isinstance(value.type, TensorType) and value.type.dims is not None:
            yield value.type.dims[labels.index(factor)], factors.step(factor, index)


def divides(workers: int, size: Dim) -> bool:
    """Whether a number of workers provably divides a dimension."""
    return floordiv(size, constant(workers)) * workers == size


def has_pieces(workers: int, count: Dim) -> bool:
    """Whether each worker may have one of so many pieces."""
    return count.constant_value is None or count.constant_value >= workers


def fills(workers: int, size: Dim) -> bool:
    """Whether each of so many workers provably has elements of a dimension, if there are any."""
    number = size.constant_value
    return divides(workers, size) or (number is not None and -(-number // workers) * (workers - 1) < number)


def dims_of(op: Operation, factors: Factors, factor: str) -> Iterator[tuple[SSAValue, Dim | None]]:
    """The dimensions that a factor runs over, with the values that have them."""
    values = (*op.operands, *op.results)
    for value, labels in zip(values, (*factors.operands, *factors.results), strict=True):
        if factor in labels and isinstance(value.type, TensorType) and value.type.dims is not None:
            yield value, value.type.dims[labels.index(factor)]


def dims(value: SSAValue) -> tuple[Dim | None, ...]:
    """The dimensions of a tensor, whose rank is known; none for another value."""
    return (value.type.dims or ()) if isinstance(value.type, TensorType) else ()


def named(prefix: str, count: int, without: Sequence[int] = ()) -> Labels:
    """A factor for each of some dimensions, but for those that are needed as a whole."""
    return tuple(None if at in without else f"{prefix}{at}" for at in range(count))


def broadcast(
    shapes: Sequence[Sequence[Dim | None]], shape: Sequence[Dim | None], prefix: str = "d"
) -> tuple[list[Labels], Labels]:
    """The factors of operands that are broadcast to a shape, and of that shape.

    An operand is needed as a whole along a dimension where it has one element. Where it may have one, or as many as the
    shape, as only the run time knows, nobody shares the dimension.
    """
    labels: list[str | None] = [f"{prefix}{at}" for at in range(len(shape))]
    for own in shapes:
        for at, dim in enumerate(own, len(shape) - len(own)):
            if dim is None or dim not in (shape[at], ONE):
                labels[at] = None
    operands: list[Labels] = [
        tuple(labels[at] if dim == shape[at] else None for at, dim in enumerate(own, len(shape) - len(own)))
        for own in shapes
    ]
    return operands, tuple(labels)
