"""An axis of a block that becomes two: `i` of extent `n * k` is group `i // k` and member `i mod k`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import BlockArgument, Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.dims import dim_of
from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.scalars import DimOp
from tir_dialect.types import IteratorKind


def split_axis(block: BlockOp, value: BlockArgument, loop: ForOp, count: Dim, size: Dim) -> BlockOp:
    """The block with two iterators for one, over `count` groups of `size` members; `loop`, which binds it, becomes two.

    Quotients and remainders of the axis by the size become the new iterators.
    """
    extents = [_extent(each, loop) for each in (count, size)]
    outer, inner = ForOp(extents[0], name_hint="group"), ForOp(extents[1], name_hint="member")
    for new in (outer, inner):
        new.location = loop.location
    outer.body.block.add_op(inner)
    Rewriter.insert_op(outer, InsertPoint.before(loop))
    for op in list(loop.body.block.ops):
        op.detach()
        inner.body.block.add_op(op)
    member = block.body.block.insert_arg(IndexType(), value.index + 1)
    _replace_uses(value, member, size)
    new_block = _with_iterators(block, value.index, [outer.induction_var, inner.induction_var], extents)
    Rewriter.erase_op(loop)
    return new_block


def _extent(value: Dim, before: Operation) -> SSAValue:
    number = value.constant_value
    op = DimOp(value) if number is None else arith.ConstantOp(IntegerAttr(number, IndexType()))
    op.location = before.location
    Rewriter.insert_op(op, InsertPoint.before(before))
    return op.results[0]


def _with_iterators(block: BlockOp, number: int, bindings: Sequence[SSAValue], extents: Sequence[SSAValue]) -> BlockOp:
    """The block with these spatial iterators instead of one."""
    kinds = [(iterator.kind, iterator.binding, iterator.extent) for iterator in block.iterators]
    kinds[number : number + 1] = [(IteratorKind.SPATIAL, *each) for each in zip(bindings, extents, strict=True)]
    new = BlockOp(block.block_name.data, kinds, block.detach_region(block.body))
    new.location = block.location
    Rewriter.replace_op(block, new)
    return new


def _replace_uses(group: BlockArgument, member: SSAValue, size: Dim) -> None:
    """Quotients become the group, remainders the member, and other uses the number that both make."""
    others: list[Use] = []
    for use in list(group.uses):
        op = use.operation
        if _divides(op, group, size):
            Rewriter.replace_op(op, [], [member if isinstance(op, arith.RemUIOp) else group])
        else:
            others.append(use)
    init = group.block.first_op if isinstance(group.block.first_op, InitOp) else None
    inside = {id(op) for op in init.walk()} if init is not None else set[int]()
    first = [use for use in others if id(use.operation) in inside]
    rest = [use for use in others if id(use.operation) not in inside]
    if init is not None:
        _replace_by_whole(first, group, member, size, InsertPoint.at_start(init.body.block))
    start = InsertPoint.at_start(group.block) if init is None else InsertPoint.after(init)
    _replace_by_whole(rest, group, member, size, start)


def _divides(op: Operation, value: SSAValue, size: Dim) -> bool:
    is_division = isinstance(op, arith.DivUIOp | arith.FloorDivSIOp | arith.RemUIOp)
    return is_division and op.lhs is value and dim_of(op.rhs) is size


def _replace_by_whole(uses: Sequence[Use], group: SSAValue, member: SSAValue, size: Dim, point: InsertPoint) -> None:
    """Gives ops `group * size + member`."""
    if not uses:
        return
    number = size.constant_value
    factor = DimOp(size) if number is None else arith.ConstantOp(IntegerAttr(number, IndexType()))
    product = arith.MuliOp(group, factor.results[0])
    whole = arith.AddiOp(product.result, member)
    Rewriter.insert_op([factor, product, whole], point)
    for use in uses:
        use.operation.operands[use.index] = whole.result
