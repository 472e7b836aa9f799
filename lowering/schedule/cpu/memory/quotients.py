"""Maps over channels that look up their group: the axis becomes two, so that rows of groups are seen as such.

What `x[n, c]` and `mean[n, c // size]` give for all channels c is, for a mean of 4 groups, what `x[n, g * size + r]`
and `mean[n, g]` give for all groups g and members r: an access of the mean is in range only if there are at most 4
times `size` channels, and it has to be proved that there are so many.

Axes that are made of whole groups are taken apart likewise, so that places are linear: `x[i // 2, c]` for `2 * n` rows.
In a row lanes share elements (`shared_vectors.py`); there this is only done where groups fill vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.dependence import Dependence
from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.structure import loop_of
from tir_dialect.dims import Dim, Prover, constant
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp, LoopKind
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.ops.scalars import DimOp
from tir_dialect.types import IteratorKind

_PROVER = Prover()


def split_quotients(func: PrimFuncOp) -> None:
    """Splits the axes of maps whose quotients by a size choose among groups."""
    blocks = [op for op in func.walk() if isinstance(op, BlockOp)]
    reduces = any(block.init is not None for block in blocks)
    # Stages that hand values to each other are to keep the axes that they have in common.
    chained = reduces or any(isinstance(op, AllocBufferOp) for op in func.walk())
    for block in blocks:
        if block.init is None and all(each.kind is IteratorKind.SPATIAL for each in block.iterators):
            while (found := next(_splittable(block, reduces, chained), None)) is not None:
                block = _split(block, *found)


def _splittable(block: BlockOp, reduces: bool, chained: bool) -> Iterator[tuple[BlockArgument, ForOp, Dim, Dim]]:
    """The axes to split, their loops, and how many groups of which size they become."""
    for iterator in block.iterators:
        value, loop = iterator.value, loop_of(iterator.binding)
        if loop is None or loop.kind.data is not LoopKind.SERIAL or loop.lower is not None or loop.annotations:
            continue
        # Lanes share elements along a row, which keeps others side by side: only what fills vectors is taken apart.
        in_row = not reduces and _is_last(value)
        found = None if in_row else _groups(value)
        if found is None and (in_row or not chained):
            found = _whole_groups(value, loop, WIDE if in_row else 1)
        if found is not None and _fills(loop, *found):
            yield value, loop, *found


def _is_last(value: BlockArgument) -> bool:
    """Whether a place in a row of a result is one on the axis."""
    uses = Dependence(lambda argument: argument is value)
    stores = [op for op in value.block.ops if isinstance(op, StoreOp)]
    return any(uses.of(store.indices[-1]) for store in stores if store.indices)


WIDE = 16
"""A number of members that fills vectors. If it is no multiple of a large power of two, groups of members and vectors
begin together only after that many vectors or more."""


def _whole_groups(value: BlockArgument, loop: ForOp, least: int) -> tuple[Dim, Dim] | None:
    """The groups that an axis is made of, and their size, if it is divided by one that is odd and greater than some."""
    sizes = (dim_of(use.operation.rhs) for use in value.uses if isinstance(use.operation, arith.DivUIOp))
    extent = dim_of(loop.upper)
    for number in (size.constant_value for size in sizes if size is not None):
        if number is not None and number // gcd(number, least) > least and extent is not None:
            return (extent // number, constant(number)) if extent % number is constant(0) else None
    return None


def _fills(loop: ForOp, count: Dim, size: Dim) -> bool:
    """Whether so many groups of a size have no more members than a loop has iterations."""
    extent = dim_of(loop.upper)
    return extent is not None and bool(_PROVER.less_equal(size * count, extent))


def _groups(value: BlockArgument) -> tuple[Dim, Dim] | None:
    """How many groups a quotient of the axis chooses from, wherever the code runs, and their size."""
    for use in value.uses:
        op = use.operation
        size = dim_of(op.rhs) if isinstance(op, arith.DivUIOp) and op.lhs is value else None
        if size is None or size.constant_value == 1:
            continue
        for place in op.results[0].uses:
            load = place.operation
            if isinstance(load, LoadOp) and load.parent is value.block and op.results[0] in load.indices:
                axis = list(load.indices).index(op.results[0])
                count = load.buffer_type.shape[axis].constant_value
                if count is not None and count > 1:
                    return constant(count), size
    return None


def _split(block: BlockOp, value: BlockArgument, loop: ForOp, count: Dim, size: Dim) -> BlockOp:
    groups, members = DimOp(count), DimOp(size)
    Rewriter.insert_op([groups, members], InsertPoint.before(loop))
    outer, inner = ForOp(groups, name_hint="group"), ForOp(members, name_hint="member")
    for new in (groups, members, outer, inner):
        new.location = loop.location
    outer.body.block.add_op(inner)
    for op in list(loop.body.block.ops):
        op.detach()
        inner.body.block.add_op(op)
    Rewriter.insert_op(outer, InsertPoint.before(loop))
    kinds = [(iterator.kind, iterator.binding, iterator.extent) for iterator in block.iterators]
    kinds[value.index : value.index + 1] = [
        (IteratorKind.SPATIAL, outer.induction_var, groups.result),
        (IteratorKind.SPATIAL, inner.induction_var, members.result),
    ]
    member = block.body.block.insert_arg(IndexType(), value.index + 1)
    _replace_uses(value, member, size)
    region = block.detach_region(block.body)
    new_block = BlockOp(block.block_name.data, kinds, region)
    new_block.location = block.location
    Rewriter.replace_op(block, new_block)
    Rewriter.erase_op(loop)
    return new_block


def _replace_uses(group: BlockArgument, member: SSAValue, size: Dim) -> None:
    """Quotients become the group, remainders the member, and other uses the number that both make."""
    uses = list(group.uses)
    factor = DimOp(size)
    product = arith.MuliOp(group, factor.result)
    whole = arith.AddiOp(product.result, member)
    Rewriter.insert_op([factor, product, whole], InsertPoint.at_start(group.block))
    for use in uses:
        op = use.operation
        if _divides(op, group, size):
            Rewriter.replace_op(op, [], [group if isinstance(op, arith.DivUIOp) else member])
        else:
            op.operands[use.index] = whole.result


def _divides(op: Operation, value: SSAValue, size: Dim) -> bool:
    return isinstance(op, arith.DivUIOp | arith.RemUIOp) and op.lhs is value and dim_of(op.rhs) is size
