"""`merge-collectives`: fewer messages for the same sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.distributed.cost import bytes_of, estimate
from lowering.locations import inherit_location
from lowering.registry import Pass
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.ops.binary import AddOp
from relax_dialect.ops.collective import AllReduceOp
from relax_dialect.ops.joining import ConcatOp, SplitOp
from relax_dialect.ops.manipulation import ReshapeOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.structure import FuncOp
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
