"""`propagate-sharding`: from a few annotations to a sharding of every tensor, with what moves between workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.diagnostics import refuse
from lowering.distributed.cost import FLOPS_PER_BYTE, estimate, redistribution, work
from lowering.distributed.demands import Demands, is_stored
from lowering.distributed.factors import Choice, Factors, choices
from lowering.distributed.mesh_pass import MeshPass
from lowering.locations import inherit_location
from relax_dialect.ops.distributed import LocalViewOp, PlacementOp, RedistributeOp
from relax_dialect.ops.shapes import ShapeOfOp, TupleGetOp, TupleOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.base import as_struct_infos
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.sharding import REPLICATE, Partial, Placement, Shard, ShardingAttr
from relax_dialect.struct_info.types import ObjectType, TensorType, TupleType


@dataclass(frozen=True)
class PropagateShardingPass(MeshPass):
    """Decides how workers share every tensor of a function, from the shardings of some parameters and annotations.

    Before:

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n, 8], f32>, %v: !relax.tensor<[8, 16], f32, sharding<x = 2: S[1]>>,
        %w: !relax.tensor<[16, 8], f32>) -> !relax.tensor<[n, 8], f32> {
      %0 = relax.matmul %x, %v
      %1 = relax.nn.relu %0
      %2 = relax.matmul %1, %w
      relax.return %2
    }
    ```

    After:

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n, 8], f32>, %v: !relax.tensor<[8, 16], f32, sharding<x = 2: S[1]>>,
        %w: !relax.tensor<[16, 8], f32, sharding<x = 2: S[0]>>) -> !relax.tensor<[n, 8], f32, sharding<x = 2: R>> {
      %0 = relax.matmul %x, %v : !relax.tensor<[n, 16], f32, sharding<x = 2: S[1]>>
      %1 = relax.nn.relu %0 : !relax.tensor<[n, 16], f32, sharding<x = 2: S[1]>>
      %2 = relax.matmul %1, %w : !relax.tensor<[n, 8], f32, sharding<x = 2: P>>
      %3 = relax.dist.redistribute %2 mesh = [2] placement = "R" axes = "x"
      relax.return %3
    }
    ```

    1. Annotations are passed on forwards and backwards, by the rules of operator families: a parameter or constant that
       nobody has annotated gets what its users want.
    2. Each operator, in program order, is shared along the factor that moves the fewest parameters and constants, and
       among these costs least: bytes that operands take to be there, what its result takes to be as its users want it,
       and operations per worker.
    3. A `relax.dist.redistribute` stands where an operand is shared otherwise; its attribute `conflict` says where both
       shardings come from.

    What has no rule is computed by all workers. Two annotations of one tensor that differ are refused, with both
    origins. Options give axes other sizes than the program says, and numbers for symbols: `propagate-sharding{x=4}`.
    """

    name = "propagate-sharding"

    @override
    def rewrite(self, func: FuncOp, mesh: ShardingAttr) -> None:
        demands = Demands(func, mesh)
        refuse(demands.findings)
        _Propagation(demands).run()


class _Propagation:
    """The placements of the values of one function, decided in program order."""

    def __init__(self, demands: Demands):
        self.demands = demands
        self.func = demands.func
        self.mesh = demands.mesh
        self.axes = range(len(self.mesh.mesh))
        self._moved: dict[tuple[SSAValue, tuple[Placement, ...]], SSAValue] = {}

    def run(self) -> None:
        for param in self.func.params:
            if isinstance(param.type, TensorType) and param.type.sharding is None:
                self._share(param, [self._wanted(param, at) for at in self.axes])
        for op in list(self.func.body.block.ops):
            if isinstance(op, ReturnOp):
                self._return(op)
            elif isinstance(op, ConstantOp):
                self._share(op.result, [self._wanted(op.result, at) for at in self.axes])
            elif isinstance(op, LocalViewOp):
                self._require(op, 0, op.sharding.placements, op.x)
            elif isinstance(op, PlacementOp | ShapeOfOp):
                continue  # they say what they give, or want no elements
            elif isinstance(op, TupleOp | TupleGetOp):
                self._pass_on(op)
            elif op in self.demands.rules:
                self._decide(op, self.demands.rules[op])
            else:
                for index, operand in enumerate(op.operands):
                    self._require(op, index, [REPLICATE] * len(self.axes), operand)
        old = self.func.function_type
        params = as_struct_infos(param.type for param in self.func.params)
        ret = as_struct_infos([self._returned.type])[0] if self._shares(self._returned) else old.ret
        ret = old.ret if isinstance(old.ret, ObjectType) else ret
        self.func.function_type = FuncType(params, ret, pure=old.pure, symbols=old.symbols)

    def _shares(self, value: SSAValue) -> bool:
        return isinstance(value.type, TensorType | TupleType)

    def _wanted(self, value: SSAValue, at: int) -> Placement:
        demand = self.demands.wanted.get((value, at))
        return REPLICATE if demand is None else demand.placement

    def _placements(self, value: SSAValue) -> tuple[Placement, ...]:
        info = value.type
        sharding = info.sharding if isinstance(info, TensorType) else None
        return (REPLICATE,) * len(self.axes) if sharding is None else sharding.placements

    def _share(self, value: SSAValue, placements: Sequence[Placement]) -> None:
        """Says in its type how a tensor is shared, unless all workers have all of it."""
        info = value.type
        if isinstance(info, TensorType) and any(placement != REPLICATE for placement in placements):
            shared = info.with_sharding(self.mesh.with_placements(placements))
            Rewriter.replace_value_with_new_type(value, shared)

    def _require(self, op: Operation, index: int, needed: Sequence[Placement], operand: SSAValue) -> None:
        """Gives an op an operand that is shared as it needs it."""
        placements = tuple(needed)
        if not isinstance(operand.type, TensorType) or self._placements(operand) == placements:
            return
        key = (operand, placements)
        if key not in self._moved:
            moved = RedistributeOp.of(operand, self.mesh.with_placements(placements))
            inherit_location(op, moved)
            if (conflict := self._conflict(op, operand, placements)) is not None:
                moved.attributes["conflict"] = StringAttr(conflict)
            moved.result.name_hint = operand.name_hint
            Rewriter.insert_op(moved, InsertPoint.before(op))
            self._moved[key] = moved.result
        op.operands[index] = self._moved[key]

    def _conflict(self, op: Operation, operand: SSAValue, needed: Sequence[Placement]) -> str | None:
        """Where both shardings come from, if different annotations want them."""
        for at in self.axes:
            given = self.demands.wanted.get((operand, at))
            others = [self.demands.wanted.get((value, at)) for value in (*op.operands, *op.results)]
            other = next((each for each in others if each is not None and given is not None and each != given), None)
            if (
                given is not None
                and other is not None
                and given.origin != other.origin
                and needed[at] != given.placement
            ):
                return f"{given.placement} by {given.origin}, {other.placement} by {other.origin}"
        return None

    def _pass_on(self, op: TupleOp | TupleGetOp) -> None:
        """A tuple has what its fields are; terms are added up first."""
        if isinstance(op, TupleOp):
            for index, operand in enumerate(op.operands):
                self._require(op, index, _without_terms(self._placements(operand)), operand)
            info = TupleType(as_struct_infos(operand.type for operand in op.operands))
        else:
            (whole,) = as_struct_infos([op.operands[0].type])
            info = whole.fields[op.index.value.data] if isinstance(whole, TupleType) else op.results[0].type
        Rewriter.replace_value_with_new_type(op.results[0], info)

    def _return(self, op: ReturnOp) -> None:
        declared = self.func.function_type.ret
        wanted = declared.sharding if isinstance(declared, TensorType) else None
        needed = _without_terms(self._placements(op.value)) if wanted is None else wanted.placements
        self._require(op, 0, needed, op.value)
        self._returned = op.operands[0]

    def _decide(self, op: Operation, factors: Factors) -> None:
        """Shares an op along each axis by what costs least."""
        chosen: list[Choice] = []
        for at in self.axes:
            asked = {factor for _, factor, _ in self.demands.factors_in(op, factors, at)} | self._present(
                op, factors, at
            )
            found = [
                choice
                for choice in choices(op, factors, self.mesh.mesh[at])
                if (choice.factor is None or choice.factor in asked) and _is_free(choice, chosen)
            ]
            chosen.append(min(found, key=lambda choice: self._cost(op, factors, choice, at)))
        for index, operand in enumerate(op.operands):
            self._require(op, index, [choice.operands[index] for choice in chosen], operand)
        for index, result in enumerate(op.results):
            self._share(result, [choice.results[index] for choice in chosen])

    def _present(self, op: Operation, factors: Factors, at: int) -> set[str]:
        """The factors along which operands are shared."""
        found = set[str]()
        for operand, labels in zip(op.operands, factors.operands, strict=True):
            placement = self._placements(operand)[at]
            if isinstance(placement, Shard) and placement.dim < len(labels):
                found |= {label for label in (labels[placement.dim],) if label is not None}
        return found

    def _cost(self, op: Operation, factors: Factors, choice: Choice, at: int) -> tuple[int, float]:
        """How many parameters and constants are gathered, whose tiles are there to save memory; and bytes that a
        worker sends for an op, with what its operations take in bytes.
        """
        gathered = [
            operand
            for operand, needed in zip(op.operands, choice.operands, strict=True)
            if is_stored(operand) and self._placements(operand)[at] not in (needed, REPLICATE)
        ]
        return len(gathered), self._seconds(op, factors, choice, at)

    def _seconds(self, op: Operation, factors: Factors, choice: Choice, at: int) -> float:
        """What an op takes, in the time in which a worker sends a byte."""
        axis = self.mesh.mesh[at]
        total = estimate(work(op, factors)) / FLOPS_PER_BYTE / (1 if choice.factor is None else self._workers(at))
        for operand, needed in zip(op.operands, choice.operands, strict=True):
            if isinstance(operand.type, TensorType):
                total += estimate(redistribution(operand.type, axis, self._placements(operand)[at], needed).bytes)
        for result, placement in zip(op.results, choice.results, strict=True):
            if isinstance(result.type, TensorType) and ((result, at) in self.demands.wanted or _is_partial(placement)):
                total += estimate(redistribution(result.type, axis, placement, self._wanted(result, at)).bytes)
        return total

    def _workers(self, at: int) -> int:
        return self.mesh.mesh[at].size.constant_value or 1


def _is_partial(placement: Placement) -> bool:
    return isinstance(placement, Partial)


def _without_terms(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    return tuple(REPLICATE if isinstance(placement, Partial) else placement for placement in placements)


def _is_free(choice: Choice, others: Sequence[Choice]) -> bool:
    """Whether no dimension would be shared along two axes, and no result would have terms of two kinds."""
    for other in others:
        pairs = zip((*choice.operands, *choice.results), (*other.operands, *other.results), strict=True)
        for one, two in pairs:
            if isinstance(one, Shard) and one == two:
                return False
            if isinstance(one, Partial) and isinstance(two, Partial) and one != two:
                return False
    return True
