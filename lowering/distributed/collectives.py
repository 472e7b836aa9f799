"""`merge-collectives` and `overlap-collectives`: fewer and larger exchanges, while there is work to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.distributed.cost import FLOPS_PER_BYTE, bytes_of, estimate, work
from lowering.distributed.factors import factors_of
from lowering.locations import inherit_location
from lowering.registry import Pass
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.ops.binary import AddOp
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.ops.collective import AllReduceOp, CollectiveOp, ReceiveOp, StartedOp, StartOp
from relax_dialect.ops.distributed import PlacementOp, RedistributeReplicaToShardOp
from relax_dialect.ops.joining import ConcatOp, SplitOp
from relax_dialect.ops.manipulation import ReshapeOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.shapes import ShapeOfOp, ShapeOp, TupleGetOp, TupleOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import ConstantOp, PrimOp, StringOp
from relax_dialect.scope import symbols_used, symbols_witnessed
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant, product

SMALL = 1 << 16
"""Bytes up to which the start of messages takes most of the time of an all-reduce: copying the operand is worth it."""


class MergeCollectivesPass(Pass):
    """Makes several all-reduces one, where they add up to one sum, or are small and wait for nothing in between.

    Before:

    ```mlir
    %2 = relax.ccl.allreduce %0 group = "x"
    %3 = relax.ccl.allreduce %1 group = "x"
    %4 = relax.add %2, %3
    ```

    After:

    ```mlir
    %2 = relax.add %0, %1
    %3 = relax.ccl.allreduce %2 group = "x"
    ```

    1. The sum of two all-reduces by sum, which nothing else uses, is the all-reduce of the sum, also where one of them
       is broadcast to the shape of the other.
    2. Small all-reduces of one group, dtype and combination, whose operands are there before one of the results is
       used, become one of all their elements.

    Floats are added in another order. Runs on what `lower-distributed` has made; functions without all-reduces stay.
    """

    name = "merge-collectives"
    requires = ("relax.ccl.allreduce",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in [inner for inner in op.ops if isinstance(inner, FuncOp)]:
            apply_patterns(func, [AddBeforeAllReduce()])
            blocks = [block for inner in func.walk() for region in inner.regions for block in region.blocks]
            for block in blocks:
                for group in _groups(block):
                    _merge(group)


class AddBeforeAllReduce(RewritePattern):
    """One exchange instead of two: `allreduce(a) + allreduce(b)  ->  allreduce(a + b)`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter) -> None:
        first, second = (operand.owner for operand in op.operands)
        if not isinstance(first, AllReduceOp) or not isinstance(second, AllReduceOp) or first is second:
            return
        alone = all(each.result.has_one_use() and each.parent_block() is op.parent_block() for each in (first, second))
        is_larger = op.result.type not in (first.x.type, second.x.type)  # an outer sum is
        if not alone or is_larger or first.properties != second.properties or first.op_type.data != "sum":
            return
        total = AddOp(first.x, second.x)
        rewriter.replace(op, [total, like(first, total.result)])
        for each in (first, second):
            rewriter.erase(each)


def like(op: AllReduceOp, x: SSAValue) -> AllReduceOp:
    """The same exchange of another operand."""
    return AllReduceOp(x, op.op_type.data, op.all_groups is not None, None if op.group is None else op.group.data)


def _groups(block: Block) -> Iterator[Sequence[AllReduceOp]]:
    """Small all-reduces whose operands are all there before one of their results is used."""
    positions = {op: at for at, op in enumerate(block.ops)}
    groups: dict[object, list[AllReduceOp]] = {}
    for op in block.ops:
        if not isinstance(op, AllReduceOp) or not _is_small(op):
            continue
        key = (tuple(sorted(op.properties.items())), op.result.type.dtype)
        group = groups.setdefault(key, [])
        maker = _maker(op.x)
        made = -1 if maker is None else positions.get(maker, -1)
        if any(_first_use(each.result, positions) <= made for each in group):
            yield group
            group = groups[key] = []
        group.append(op)
    yield from groups.values()


def _maker(value: SSAValue) -> Operation | None:
    return value.owner if isinstance(value.owner, Operation) else None


def _first_use(value: SSAValue, positions: Mapping[Operation, int]) -> int:
    """The position of the first op of the block that uses a value, itself or in its regions."""
    found = len(positions)
    for use in value.uses:
        op: Operation | None = use.operation
        while op is not None and op not in positions:
            op = op.parent_op()
        found = found if op is None else min(found, positions[op])
    return found


def _is_small(op: AllReduceOp) -> bool:
    info = op.result.type
    return info.known_dims is not None and info.dtype is not None and estimate(bytes_of(info)) <= SMALL


def _merge(members: Sequence[AllReduceOp]) -> None:
    """One all-reduce of the elements of all operands, where the last of these is there."""
    if len(members) < 2:
        return
    block = members[0].parent_block()
    makers = [maker for each in members if (maker := _maker(each.x)) is not None and maker.parent_block() is block]
    point = InsertPoint.before(members[0])
    for maker in makers:
        if members[0].is_before_in_block(maker):
            point = InsertPoint.after(max(makers, key=lambda op: sum(other.is_before_in_block(op) for other in makers)))
    made = list(_merged(members))
    for op in made:
        inherit_location(members[0], op)
    Rewriter.insert_op(made, point)
    for member, result in zip(members, [op.results[0] for op in made[-len(members) :]], strict=True):
        Rewriter.replace_op(member, [], [result])


def _merged(members: Sequence[AllReduceOp]) -> Iterator[Operation]:
    """The ops for one all-reduce; the last ones give the results of the members."""
    sizes: list[Dim] = []
    rows: list[SSAValue] = []
    for each in members:
        sizes.append(product(each.result.type.known_dims or ()))
        yield (shape := ShapeOp([sizes[-1]]))
        yield (row := ReshapeOp(each.x, shape.result))
        rows.append(row.result)
    yield (whole := ConcatOp(rows))
    yield (total := like(members[0], whole.result))
    ends = [sum(sizes[: at + 1], constant(0)) for at in range(len(sizes) - 1)]
    yield (split := SplitOp(total.result, indices=ends))
    shapes = [ShapeOp(each.result.type.known_dims or ()) for each in members]
    yield from shapes
    for row, shape in zip(split.results, shapes, strict=True):
        yield ReshapeOp(row, shape.result)


LEAST = 1 << 14
"""Bytes that a worker sends in the time that work has to take for an exchange to begin before it: 2 us or so."""


class OverlapCollectivesPass(Pass):
    """Lets workers compute while they exchange something: what does not need the result goes in between.

    Before:

    ```mlir
    %0 = relax.ccl.allreduce %x group = "x"
    %1 = relax.add %0, %r
    %2 = relax.matmul %y, %w
    ```

    After:

    ```mlir
    %0 = relax.ccl.start %x collective = "allreduce" group = "x"
    %1 = relax.matmul %y, %w
    %2 = relax.ccl.allreduce %x, %0 group = "x"
    %3 = relax.add %2, %r
    ```

    1. An all-reduce, all-gather or reduce-scatter begins where its operand is made, and ends where it is, after ops
       that follow and need neither it nor what needs it.
    2. So many follow before the end as take the time of the exchange.
    3. Exchanges stay in their order, one of which has begun at a time. Nothing moves across other exchanges, calls,
       branches and loops.
    4. What takes no time is no reason to begin early.

    Functions without collectives stay.
    """

    name = "overlap-collectives"
    requires = ("relax.ccl.allreduce", "relax.ccl.allgather", "relax.ccl.reduce_scatter")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in [inner for inner in op.ops if isinstance(inner, FuncOp)]:
            for block in [block for inner in func.walk() for region in inner.regions for block in region.blocks]:
                for exchange in [inner for inner in block.ops if isinstance(inner, StartedOp) and _is_split(inner)]:
                    _overlap(block, exchange)


def _is_split(op: StartedOp) -> bool:
    return not op.started and not (isinstance(op, AllReduceOp) and op.all_groups is not None)


def _overlap(block: Block, exchange: StartedOp) -> None:
    ops = list(block.ops)
    at = ops.index(exchange)
    first = at - len(list(_before(exchange, ops[:at])))
    following = list(_independent(exchange, ops[at + 1 :]))
    if sum(map(_time, [*ops[first:at], *following])) < LEAST:
        return
    start = StartOp.of(exchange)
    inherit_location(exchange, start)
    Rewriter.insert_op(start, InsertPoint.before(ops[first]))
    for op in following:
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(exchange))
    exchange.operands = [exchange.x, start.result]


def _before(exchange: StartedOp, ops: Sequence[Operation]) -> Iterator[Operation]:
    """The ops before an exchange, the last one first, across which it may begin."""
    used = symbols_used(exchange)
    for op in reversed(ops):
        if op is exchange.x.owner or not _moves(op) or not used.isdisjoint(symbols_witnessed(op)):
            return
        yield op


def _independent(exchange: StartedOp, ops: Sequence[Operation]) -> Iterator[Operation]:
    """The ops after an exchange that do not need its result, as many as take its time."""
    waiting: set[Operation] = {exchange}
    hidden = set[str]()
    # What an exchange takes at most, in bytes.
    infos = [value.type for value in (exchange.x, exchange.result) if isinstance(value.type, TensorType)]
    left = max(2 * LEAST, *(2 * estimate(bytes_of(info)) for info in infos))
    for op in ops:
        if not _moves(op) or left <= 0:
            return
        owners = {operand.owner for operand in op.operands}
        if owners.isdisjoint(waiting) and hidden.isdisjoint(symbols_used(op)):
            left -= _time(op)
            yield op
        else:
            waiting.add(op)
            hidden |= symbols_witnessed(op).keys()


def _moves(op: Operation) -> bool:
    """Whether an op only computes, so that its place does not matter."""
    if isinstance(op, CollectiveOp | ReceiveOp | PlacementOp):
        return isinstance(op, RedistributeReplicaToShardOp) and op.index is not None
    return isinstance(
        op,
        Operator
        | CallTIROp
        | MatchCastOp
        | ShapeOp
        | ShapeOfOp
        | TupleOp
        | TupleGetOp
        | PrimOp
        | StringOp
        | ConstantOp,
    )


def _time(op: Operation) -> float:
    """What an op takes, in the time in which a worker sends a byte."""
    factors = factors_of(op)
    return 0 if factors is None else estimate(work(op, factors)) / FLOPS_PER_BYTE
