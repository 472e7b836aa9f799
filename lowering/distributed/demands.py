"""Which placements are wanted of values that nobody has annotated: what follows from annotations, in both directions.

An operator of which one operand or result is sharded along a factor wants the others to be; where they want different
ones, parameters and constants decide. The first demand of a value counts; another one is a conflict, which a
redistribution resolves where it is cheaper than doing without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from lowering.diagnostics import Finding
from lowering.distributed.factors import Factors, admits, factors_of
from lowering.locations import source_position
from relax_dialect.ops.call_tir import CallTIRInplaceOp
from relax_dialect.ops.control_flow import IfOp, yielded
from relax_dialect.ops.distributed import AnnotateShardingOp, LocalViewOp, PlacementOp
from relax_dialect.ops.shapes import TupleGetOp, TupleOp
from relax_dialect.ops.signature import LoopOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.sharding import Placement, Shard, ShardingAttr
from relax_dialect.struct_info.types import TensorType


@dataclass(frozen=True)
class Demand:
    """A placement along one axis, and who wants it first: a parameter or an annotation."""

    placement: Placement
    origin: str


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

    def _share(self, values: Sequence[SSAValue], at: int) -> None:
        demand = next((self.wanted[value, at] for value in values if (value, at) in self.wanted), None)
        for value in values:
            if demand is not None:
                self.wanted.setdefault((value, at), demand)

    def _through(self, op: Operation, factors: Factors, at: int) -> None:
        found = sorted(self.factors_in(op, factors, at), key=lambda each: not each[2])
        for demand, factor, _ in found[:1]:
            choice = factors.placements(factor)
            values = zip((*op.operands, *op.results), (*choice.operands, *choice.results), strict=True)
            for value, placement in values:
                is_free = value not in self._whole and not self._is_taken(value, at, placement)
                if isinstance(placement, Shard) and is_free:
                    self.wanted.setdefault((value, at), Demand(placement, demand.origin))

    def _is_taken(self, value: SSAValue, at: int, placement: Placement) -> bool:
        """Whether another axis is wanted for the dimension already."""
        others = (self.wanted.get((value, other)) for other in range(len(self.mesh.mesh)) if other != at)
        return any(demand is not None and demand.placement == placement for demand in others)

    def factors_in(self, op: Operation, factors: Factors, at: int) -> Iterator[tuple[Demand, str, bool]]:
        """The factors along which demands of operands and results want an op to be shared along an axis, and whether
        it is a parameter or constant that does.
        """
        labels = (*factors.operands, *factors.results)
        for value, own in zip((*op.operands, *op.results), labels, strict=True):
            demand = self.wanted.get((value, at))
            if demand is None or not isinstance(demand.placement, Shard) or demand.placement.dim >= len(own):
                continue
            factor = own[demand.placement.dim]
            if factor is not None and admits(op, factors, factor, self.mesh.mesh[at]):
                yield demand, factor, is_stored(value)


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


def written_in_place(op: Operation) -> list[int]:
    """The operands that an op writes in place where others see it: what is written into a copy would be lost."""
    if not isinstance(op, CallTIRInplaceOp) or op.impurity is None:
        return []
    return [target for target in op.targets if target >= 0]


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
