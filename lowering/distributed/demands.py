"""Which placements are wanted of values that nobody has annotated: what follows from annotations, in both directions.

An operator of which one operand or result is sharded along a factor wants the others to be; where they want different
ones, parameters and constants decide. The first demand of a value counts; another one is a conflict, which a
redistribution resolves where it is cheaper than doing without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import lcm
from typing import NamedTuple

from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from lowering.diagnostics import Finding
from lowering.distributed.factors import Factors, admits, choice, factors_of, has_pieces, sizes_of, tiles_of
from lowering.locations import source_position
from relax_dialect.ops.call_tir import CallTIRInplaceOp
from relax_dialect.ops.callees import find_relax_function
from relax_dialect.ops.calls import CallOp
from relax_dialect.ops.control_flow import IfOp, yielded
from relax_dialect.ops.distributed import AnnotateShardingOp, LocalViewOp, PlacementOp
from relax_dialect.ops.shapes import TupleGetOp, TupleOp
from relax_dialect.ops.signature import LoopOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.sharding import Placement, Shard, ShardingAttr
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import constant, floordiv


@dataclass(frozen=True)
class Demand:
    """A placement along one axis, and who wants it first: a parameter or an annotation."""

    placement: Placement
    origin: str


class Asked(NamedTuple):
    """A factor along which a demand wants an op to be shared, and how many steps of it stay on one worker."""

    demand: Demand
    factor: str
    unit: int
    is_stored: bool
    """Whether it is a parameter or constant that is to be shared so."""


@dataclass
class Demands:
    """The demands of one function."""

    func: FuncOp
    mesh: ShardingAttr
    fixed: dict[SSAValue, tuple[ShardingAttr, str]] = field(default_factory=dict[SSAValue, tuple[ShardingAttr, str]])
    """Values that are annotated, with the annotation's origin."""
    wanted: dict[tuple[SSAValue, int], Demand] = field(default_factory=dict[tuple[SSAValue, int], Demand])
    """Demands by value and axis."""
    findings: list[Finding] = field(default_factory=list[Finding])

    def __post_init__(self) -> None:
        for param in self.func.params:
            if isinstance(param.type, TensorType) and param.type.sharding is not None:
                self._fix(param, param.type.sharding, describe(param))
        ops = list(_ops(self.func.body.block))
        for op in ops:
            if isinstance(op, PlacementOp):
                self._annotate(op)
        self._whole = {op.operands[index] for op in ops for index in written_in_place(op)} - self.fixed.keys()
        self.rules: dict[Operation, Factors] = {op: found for op in ops if (found := _rule(op)) is not None}
        while self._sweep(ops) or self._sweep(ops[::-1]):
            pass
        while self._align(ops) or self._align(ops[::-1]):
            pass

    def _annotate(self, op: PlacementOp) -> None:
        origin = describe(op.result)
        if isinstance(op, LocalViewOp):  # what it gives is a worker's own
            for at, placement in enumerate(op.sharding.placements):
                self.wanted.setdefault((op.x, at), Demand(placement, origin))
            return
        self._fix(op.result, op.sharding, origin)
        if not isinstance(op, AnnotateShardingOp):
            return
        known = self.fixed.get(op.x)
        if known is not None and known[0] != op.sharding:
            message = f"says {op.sharding.text} of a tensor that is shared as {known[0].text} by {known[1]}"
            self.findings.append(Finding.at(op, message, "use relax.dist.redistribute to move it"))
        elif known is None:
            self._fix(op.x, op.sharding, origin)

    def _fix(self, value: SSAValue, sharding: ShardingAttr, origin: str) -> None:
        self.fixed[value] = (sharding, origin)
        for at, placement in enumerate(sharding.placements):
            self.wanted[value, at] = Demand(placement, origin)

    def _sweep(self, ops: Sequence[Operation]) -> bool:
        """Passes demands on through each op; whether there were new ones."""
        count = len(self.wanted)
        for op in ops:
            for at in range(len(self.mesh.mesh)):
                if op in self.rules:
                    self._through(op, self.rules[op], at)
                elif isinstance(op, TupleGetOp) and isinstance(op.operands[0].owner, TupleOp):
                    pair = (op.operands[0].owner.operands[op.index.value.data], op.results[0])
                    self._share(pair, at)
                elif isinstance(op, IfOp | LoopOp):
                    for values in _same(op):
                        self._share(values, at)
        return len(self.wanted) > count

    def _align(self, ops: Sequence[Operation]) -> bool:
        """Gives values of which workers do not have equally large tiles the units of what is made of them; whether
        there were larger ones.
        """
        return any([self._align_op(op, at) for op in ops for at in range(len(self.mesh.mesh))])

    def _align_op(self, op: Operation, at: int) -> bool:
        if op in self.rules:
            factors = self.rules[op]
            asked = {each.factor for each in self.factors_in(op, factors, at)}
            return any([self._align_factor(op, factors, factor, at) for factor in sorted(asked)])
        if isinstance(op, TupleGetOp) and isinstance(op.operands[0].owner, TupleOp):
            return self._unite((op.operands[0].owner.operands[op.index.value.data], op.results[0]), at)
        if isinstance(op, IfOp | LoopOp):
            return any([self._unite(values, at) for values in _same(op)])
        if isinstance(op, AnnotateShardingOp):
            return self._unite((op.x, op.result), at)
        if isinstance(op, CallOp) and (callee := find_relax_function(op, op.callee)) is not None:
            pairs = zip(op.arguments, callee.function_type.params, strict=True)
            return any([self._unite((value,), at, _placement_in(info, at)) for value, info in pairs])
        return False

    def _align_factor(self, op: Operation, factors: Factors, factor: str, at: int) -> bool:
        """Gives the values of an op whose tiles are along a factor tiles of equally many steps."""
        values, labels = (*op.operands, *op.results), (*factors.operands, *factors.results)
        found = [(index, value, self._tiles(value, at)) for index, value in enumerate(values)]
        tiles = [
            (index, value, shard)
            for index, value, shard in found
            if shard is not None and shard.dim < len(labels[index]) and labels[index][shard.dim] == factor
        ]
        unit = lcm(*(factors.unit(factor, index, shard) for index, _, shard in tiles))
        axis = self.mesh.mesh[at]
        counts = [size and floordiv(size, constant(step * unit)) for size, step in sizes_of(op, factors, factor)]
        workers = axis.size.constant_value or 1
        enough = all(count is not None and has_pieces(workers, count) for count in counts)
        if not enough or not admits(op, factors, factor, axis, unit):
            return False
        return any(
            [
                self._raise(value, at, tiles_of(value, shard.dim, unit * factors.step(factor, index), axis))
                for index, value, shard in tiles
            ]
        )

    def _tiles(self, value: SSAValue, at: int) -> Shard | None:
        demand = self.wanted.get((value, at))
        return demand.placement if demand is not None and isinstance(demand.placement, Shard) else None

    def _unite(self, values: Sequence[SSAValue], at: int, other: Placement | None = None) -> bool:
        """Gives values with tiles of one dimension the same units."""
        found = [shard for value in values if (shard := self._tiles(value, at)) is not None]
        shards = [*found, other] if isinstance(other, Shard) else found
        if not found or len({shard.dim for shard in shards}) != 1:
            return False
        unit = Shard(shards[0].dim, lcm(*(shard.unit for shard in shards)))
        return any([self._raise(value, at, unit) for value in values if self._tiles(value, at) is not None])

    def _raise(self, value: SSAValue, at: int, placement: Shard) -> bool:
        """Gives a value larger units, unless a redistribution says what it is; whether they are larger."""
        demand = self.wanted[value, at]
        is_moved = isinstance(value.owner, PlacementOp) and not isinstance(value.owner, AnnotateShardingOp)
        if demand.placement == placement or is_moved or not isinstance(demand.placement, Shard):
            return False
        if placement.unit <= demand.placement.unit:
            return False
        self.wanted[value, at] = Demand(placement, demand.origin)
        return True

    def _share(self, values: Sequence[SSAValue], at: int) -> None:
        demand = next((self.wanted[value, at] for value in values if (value, at) in self.wanted), None)
        for value in values:
            if demand is not None:
                self.wanted.setdefault((value, at), demand)

    def _through(self, op: Operation, factors: Factors, at: int) -> None:
        found = sorted(self.factors_in(op, factors, at), key=lambda each: not each.is_stored)
        for demand, factor, unit, _ in found[:1]:
            chosen = choice(op, factors, factor, self.mesh.mesh[at], unit)
            values = zip((*op.operands, *op.results), (*chosen.operands, *chosen.results), strict=True)
            for value, placement in values:
                is_free = value not in self._whole and not self._is_taken(value, at, placement)
                if isinstance(placement, Shard) and is_free:
                    self.wanted.setdefault((value, at), Demand(placement, demand.origin))

    def _is_taken(self, value: SSAValue, at: int, placement: Placement) -> bool:
        """Whether another axis is wanted for the dimension already."""
        others = (self.wanted.get((value, other)) for other in range(len(self.mesh.mesh)) if other != at)
        return any(demand is not None and along(demand.placement) == along(placement) for demand in others)

    def factors_in(self, op: Operation, factors: Factors, at: int) -> Iterator[Asked]:
        """The factors along which demands of operands and results want an op to be shared along an axis."""
        labels = (*factors.operands, *factors.results)
        for index, (value, own) in enumerate(zip((*op.operands, *op.results), labels, strict=True)):
            demand = self.wanted.get((value, at))
            dim = None if demand is None else along(demand.placement)
            factor = None if dim is None or dim >= len(own) else own[dim]
            if demand is None or factor is None or not isinstance(demand.placement, Shard):
                continue
            for unit in {factors.unit(factor, index, demand.placement), 1}:
                if admits(op, factors, factor, self.mesh.mesh[at], unit):
                    yield Asked(demand, factor, unit, is_stored(value))
                    break


def _ops(block: Block) -> Iterator[Operation]:
    """The ops of a block, those of branches and loops included."""
    for op in block.ops:
        yield op
        if isinstance(op, IfOp | LoopOp):
            for region in op.regions:
                yield from _ops(region.block)


def _same(op: IfOp | LoopOp) -> Iterator[Sequence[SSAValue]]:
    """The values of a branch or loop that are shared in the same way: a result, and what it may come from."""
    for at, result in enumerate(op.res):
        if isinstance(op, IfOp):
            yield (result, yielded(op.then_region)[at], yielded(op.else_region)[at])
        else:
            arguments = [op.carried(region.block)[at] for region in op.regions]
            yield (result, op.inits[at], *arguments, yielded(op.regions[-1])[at])


def _placement_in(info: Attribute, at: int) -> Placement | None:
    sharding = info.sharding if isinstance(info, TensorType) else None
    return None if sharding is None else sharding.placements[at]


def written_in_place(op: Operation) -> list[int]:
    """The operands that an op writes in place where others see it: what is written into a copy would be lost."""
    if not isinstance(op, CallTIRInplaceOp) or op.impurity is None:
        return []
    return [target for target in op.targets if target >= 0]


def along(placement: Placement) -> int | None:
    """The dimension of which workers have tiles."""
    return placement.dim if isinstance(placement, Shard) else None


def is_stored(value: SSAValue) -> bool:
    """Whether a value is a parameter or a constant, perhaps under an annotation: workers have tiles to save memory."""
    while isinstance(value.owner, AnnotateShardingOp):
        value = value.owner.x
    if isinstance(value, BlockArgument):
        return isinstance(value.owner.parent_op(), FuncOp)
    return isinstance(value.owner, ConstantOp)


def _rule(op: Operation) -> Factors | None:
    return None if isinstance(op, PlacementOp) else factors_of(op)


def describe(value: SSAValue) -> str:
    """What an error calls a value: `parameter x`, `'relax.dist.annotate_sharding' at model.mlir:3:5`."""
    if isinstance(value, BlockArgument):
        return f"parameter {value.name_hint or value.index}"
    op = value.owner
    position = str(source_position(op.location)) if isinstance(op, Operation) else ""
    name = op.name if isinstance(op, Operation) else "a block"
    return f"'{name}'{f' at {position}' if position else ''}"
