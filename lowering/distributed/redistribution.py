"""`relax.dist.redistribute` in steps, each along one axis of the mesh, and what these become for a worker.

| from | to | |
|---|---|---|
| `R` | `S[d]` | the worker's own tile: nothing moves |
| `S[d]` | `R` | `relax.ccl.allgather` |
| `P` | `R` | `relax.ccl.allreduce` |
| `P` | `S[d]` | `relax.ccl.reduce_scatter` |
| `S[d]` | `S[e]` | `relax.ccl.all_to_all` |

Tiles of units are tiles of a dimension of units, before and after which a tensor is reshaped: `[8 * h]` to `[h, 8]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.diagnostics import fail
from lowering.distributed.local_shapes import LocalShapes, in_units
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.ops.collective import AllGatherOp, AllReduceOp, AllToAllOp, ReduceScatterOp
from relax_dialect.ops.distributed import AnnotateShardingOp, PlacementOp, RedistributeOp, RedistributeReplicaToShardOp
from relax_dialect.ops.manipulation import ReshapeOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.struct_info.sharding import MeshAxis, Partial, Placement, Replicate, Shard, ShardingAttr
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant


def sharding_of(value: SSAValue, mesh: ShardingAttr) -> ShardingAttr:
    """How workers share a value: as its type says, else all have all of it."""
    info = value.type
    if isinstance(info, TensorType) and info.sharding is not None:
        return info.sharding
    return mesh.with_placements([Replicate()] * len(mesh.mesh))


class AnnotationIsRedistribution(RewritePattern):
    """An annotation is a redistribution of what is shared otherwise: `annotate(x: S[0], R)  ->  redistribute(x, R)`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AnnotateShardingOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, RedistributeOp.of(op.x, op.sharding))


class DropRedistribution(RewritePattern):
    """To what it is already: `redistribute(x: S[0], S[0])  ->  x`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: RedistributeOp, rewriter: PatternRewriter) -> None:
        if sharding_of(op.x, op.sharding) == op.sharding and op.x.type == op.result.type:
            rewriter.replace(op, [], [op.x])


class MergeRedistributions(RewritePattern):
    """One after the other is the last one, unless the first one is used otherwise, or adds up terms first.

    `redistribute(redistribute(x, R), S[0])  ->  redistribute(x, S[0])`: an all-reduce whose tile is taken is a
    reduce-scatter, an all-gather whose tile is taken along another dimension an all-to-all.
    """

    @op_rewrite_pattern
    def match_and_rewrite(self, op: RedistributeOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, RedistributeOp) or not op.x.has_one_use():
            return
        if inner.parent_block() is not op.parent_block():  # what a loop does not change is moved once
            return
        first, last = sharding_of(inner.x, op.sharding), op.sharding
        if first.mesh != last.mesh or not all(map(_is_one_step, first.placements, last.placements)):
            return
        rewriter.replace(op, RedistributeOp.of(inner.x, last))


def _is_one_step(first: Placement, last: Placement) -> bool:
    """Whether there is a collective from one placement to the other: none makes terms of a tensor."""
    return first == last or not isinstance(last, Partial)


class OneAxisAtATime(RewritePattern):
    """A redistribution along several axes is several: `redistribute(x, y, z)` along `x`, then along `y`.

    First what makes tensors smaller (tiles, reduce-scatters), then what moves tiles, last what makes them larger. A
    dimension that gets another axis is given up by the first one before: `S[0], R` to `R, S[0]` is by way of `R, R`.
    """

    @op_rewrite_pattern
    def match_and_rewrite(self, op: RedistributeOp, rewriter: PatternRewriter) -> None:
        sharding = op.sharding
        now = list(sharding_of(op.x, sharding).placements)
        todo = [at for at, (old, new) in enumerate(zip(now, sharding.placements, strict=True)) if old != new]
        if len(todo) <= 1:
            return
        steps: list[list[Placement]] = []
        while todo:
            at = min(
                todo,
                key=lambda at: (
                    _is_taken(now, at, sharding.placements[at]),
                    {Replicate: 0, Partial: 1, Shard: 2}[type(now[at])],
                    at,
                ),
            )
            new = sharding.placements[at]
            if _is_taken(now, at, new):  # by an axis that waits for this one: a cycle
                now[at] = Replicate()
            else:
                now[at] = new
                todo.remove(at)
            steps.append(list(now))
        value, made = op.x, list[Operation]()
        for step in steps:
            made.append(RedistributeOp.of(value, sharding.with_placements(step)))
            value = made[-1].results[0]
        rewriter.replace(op, made)


def _is_taken(now: list[Placement], at: int, new: Placement) -> bool:
    others = [other.dim for axis, other in enumerate(now) if axis != at and isinstance(other, Shard)]
    return isinstance(new, Shard) and new.dim in others


FEWEST = (AnnotationIsRedistribution(), DropRedistribution(), MergeRedistributions())
"""What `lower-distributed` applies first: the fewest redistributions."""

STEPS = (OneAxisAtATime(),)
"""What it applies then: each along one axis."""


def collective(op: PlacementOp, x: SSAValue, shapes: LocalShapes, insert: Callable[[Operation], object]) -> SSAValue:
    """What a worker does for a redistribution along one axis, `x` being its part of the operand."""
    before, after = sharding_of(op.x, op.sharding), op.sharding
    if before.mesh != after.mesh:
        fail(op, f"expected the mesh {_mesh(before)} that the operand is on, got {_mesh(after)}")
    changed = [
        (axis, old, new)
        for axis, old, new in zip(after.mesh, before.placements, after.placements, strict=True)
        if old != new
    ]
    if not changed:
        return x
    ((axis, old, new),) = changed
    step = Step(op, op.x.type, axis, shapes, insert)
    if isinstance(old, Shard) and isinstance(new, Shard) and old.dim == new.dim:  # tiles of other units
        return step.make(step.make(x, old, Replicate()), Replicate(), new)
    return step.make(x, old, new)


@dataclass
class Step:
    """What a worker does for a redistribution along one axis, of a tensor whose whole has such a type."""

    op: Operation
    info: Attribute
    axis: MeshAxis
    shapes: LocalShapes
    insert: Callable[[Operation], object]

    def make(self, x: SSAValue, old: Placement, new: Placement) -> SSAValue:
        """The worker's part of the result, `x` being its part of the operand."""
        shards = [each for each in (old, new) if isinstance(each, Shard)]
        units = {each.dim: each.unit for each in shards if each.unit != 1}
        made = self._collective(self._split(x, units), old, new, units)
        self.insert(made)
        if not units:
            return made.results[0]
        dims = list(self._known(x))
        if isinstance(old, Shard):
            dims[old.dim] = self._size(old.dim)
        if isinstance(new, Shard):
            dims[new.dim] = self.shapes.tile(self._size(new.dim), self.axis, new.unit)
        return self._reshaped(made.results[0], dims)

    def _split(self, x: SSAValue, units: Mapping[int, int]) -> SSAValue:
        """A tensor with dimensions of units, and of what these consist of."""
        if not units:
            return x
        dims: list[Dim] = []
        for at, dim in enumerate(self._known(x)):
            dims += [in_units(dim, units[at]), constant(units[at])] if at in units else [dim]
        return self._reshaped(x, dims)

    def _reshaped(self, x: SSAValue, dims: Sequence[Dim]) -> SSAValue:
        shape = ShapeOp(dims)
        self.insert(shape)
        reshaped = ReshapeOp(x, shape.result)
        self.insert(reshaped)
        return reshaped.result

    def _collective(self, x: SSAValue, old: Placement, new: Placement, units: Mapping[int, int]) -> Operation:
        """The exchange of a tensor with dimensions of units."""
        axis, count = self.axis, self.axis.size.constant_value
        if count is None:
            fail(self.op, f"expected a mesh of known size, got {axis}")

        def at(dim: int) -> int:
            return dim + sum(other < dim for other in units)

        def size(dim: int) -> Dim:
            return in_units(self._size(dim), units.get(dim, 1))

        def tile(dim: int) -> Dim:
            return self.shapes.tile(size(dim), axis)

        match old, new:
            case Replicate(), Shard(dim):
                index = self.shapes.indices[axis.name]
                return RedistributeReplicaToShardOp(x, count, at(dim), axis.name, tile(dim), index)
            case Shard(dim), Replicate():
                return AllGatherOp(x, count, axis=at(dim), group=axis.name, size=size(dim))
            case Partial(by), Replicate():
                return AllReduceOp(x, by, group=axis.name)
            case Partial(by), Shard(dim):
                return ReduceScatterOp(x, count, at(dim), by, axis.name, tile(dim))
            case Shard(dim), Shard(other):
                return AllToAllOp(x, count, at(other), at(dim), axis.name, tile(other), size(dim))
            case _:
                fail(self.op, f"expected a placement that {old} can become, got {new}: nobody makes terms of a tensor")

    def _size(self, at: int) -> Dim:
        """A dimension of the whole."""
        info = self.info
        found = info.dims[at] if isinstance(info, TensorType) and info.dims is not None else None
        if found is None:
            fail(self.op, f"expected dimension {at} to be known, got {info}", "name it by a relax.match_cast")
        return found

    def _known(self, x: SSAValue) -> tuple[Dim, ...]:
        dims = x.type.known_dims if isinstance(x.type, TensorType) else None
        if dims is None:
            fail(self.op, f"expected known dimensions, got {x.type}", "name them by a relax.match_cast")
        return dims


def _mesh(sharding: ShardingAttr) -> str:
    return f"[{', '.join(map(str, sharding.mesh))}]"
