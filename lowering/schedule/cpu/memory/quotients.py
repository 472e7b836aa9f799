"""Maps over channels that look up their group: the axis becomes two, so that rows of groups are seen as such.

What `x[n, c]` and `mean[n, c // size]` give for all channels c is, for a mean of 4 groups, what `x[n, g * size + r]`
and `mean[n, g]` give for all groups g and members r: an access of the mean is in range only if there are at most 4
times `size` channels, and it has to be proved that there are so many.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.structure import loop_of
from tir_dialect.dims import Dim, Prover
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp, LoopKind
from tir_dialect.ops.memory import LoadOp
from tir_dialect.ops.scalars import DimOp
from tir_dialect.types import IteratorKind

_PROVER = Prover()


def split_quotients(func: PrimFuncOp) -> None:
    """Splits the axes of maps whose quotients by a size choose among a constant number of groups."""
    for block in [op for op in func.walk() if isinstance(op, BlockOp) and op.init is None]:
        if any(iterator.kind is not IteratorKind.SPATIAL for iterator in block.iterators):
            continue
        for iterator in block.iterators:
            loop = loop_of(iterator.binding)
            found = None if loop is None or not _is_plain(loop) else _groups(iterator.value)
            if loop is not None and found is not None and _fills(loop, *found):
                _split(block, iterator.value, loop, *found)
                break


def _is_plain(loop: ForOp) -> bool:
    return loop.kind.data is LoopKind.SERIAL and loop.lower is None and loop.annotations is None


def _fills(loop: ForOp, count: int, size: Dim) -> bool:
    """Whether so many groups of a size have no more members than a loop has iterations."""
    extent = dim_of(loop.upper)
    return extent is not None and bool(_PROVER.less_equal(size * count, extent))


def _groups(value: BlockArgument) -> tuple[int, Dim] | None:
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
                    return count, size
    return None


def _split(block: BlockOp, value: BlockArgument, loop: ForOp, count: int, size: Dim) -> None:
    groups, members = arith.ConstantOp(IntegerAttr(count, IndexType())), DimOp(size)
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
