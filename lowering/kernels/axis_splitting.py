"""Splits an axis into groups and members: `i` of extent `n * k` becomes group `i // k` and member `i mod k`.

`split_groups` is for contractions. The channels of a grouped convolution are split, so that the group moves both
operands, and the member one. Elementwise readers get the same two axes, so that they can become an epilogue.

`split_quotients` is for elementwise stages over channels that look up their group. `x[n, c]` and `mean[n, c // size]`
for all channels c are, for a mean of 4 groups, `x[n, g * size + r]` and `mean[n, g]` for all groups g and members r.
The access of the mean is in bounds only if there are at most 4 times `size` channels, and it has to be proved that
there are exactly so many. Axes of whole groups are split likewise, so that addresses become linear: `x[i // 2, c]` for
`2 * n` rows. Along a row loads can be shuffled (`emit/vector_loop.py`), so there axes are split only if groups
fill vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import BlockArgument, Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.kernels.structure.contraction import reads_panels
from tir_dialect.analysis.dependence import Dependence
from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.structure import blocks_in, enclosing_func, loop_of
from tir_dialect.dims import Dim, Prover, constant, floordiv, mod
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import ForOp, LoopKind
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
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
    # Quotients become the group, remainders the member, and other uses the index computed from both.
    others: list[Use] = []
    for use in list(value.uses):
        op = use.operation
        if (
            isinstance(op, arith.DivUIOp | arith.FloorDivSIOp | arith.RemUIOp)
            and op.lhs is value
            and dim_of(op.rhs) is size
        ):
            Rewriter.replace_op(op, [], [member if isinstance(op, arith.RemUIOp) else value])
        else:
            others.append(use)
    init = value.block.first_op if isinstance(value.block.first_op, InitOp) else None
    inside = {id(op) for op in init.walk()} if init is not None else set[int]()
    first = [use for use in others if id(use.operation) in inside]
    rest = [use for use in others if id(use.operation) not in inside]
    if init is not None:
        _replace_by_whole(first, value, member, size, InsertPoint.at_start(init.body.block))
    start = InsertPoint.at_start(value.block) if init is None else InsertPoint.after(init)
    _replace_by_whole(rest, value, member, size, start)
    # The block with these spatial iterators instead of one.
    bindings = [outer.induction_var, inner.induction_var]
    kinds = [(iterator.kind, iterator.binding, iterator.extent) for iterator in block.iterators]
    kinds[value.index : value.index + 1] = [
        (IteratorKind.SPATIAL, *each) for each in zip(bindings, extents, strict=True)
    ]
    new_block = BlockOp(block.block_name.data, kinds, block.detach_region(block.body))
    new_block.location = block.location
    Rewriter.replace_op(block, new_block)
    Rewriter.erase_op(loop)
    return new_block


def _extent(value: Dim, before: Operation) -> SSAValue:
    number = value.constant_value
    op = DimOp(value) if number is None else arith.ConstantOp(IntegerAttr(number, IndexType()))
    op.location = before.location
    Rewriter.insert_op(op, InsertPoint.before(before))
    return op.results[0]


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


def split_groups(func: PrimFuncOp) -> bool:
    """Splits the axes of groups of all reductions of a function; returns whether there were any."""
    changed = False
    sums = [op for op in blocks_in(func.body) if op.init is not None]
    for block in sums:
        found = next(_groups(block), None)
        if found is not None:
            # Between several reductions, as in attention, stages keep the axes that the others have.
            (_split_with_readers if len(sums) == 1 else _split)(block, *found)
            changed = True
    return changed


def _split_with_readers(block: BlockOp, value: BlockArgument, loop: ForOp, size: int) -> None:
    """Splits the axis of a block, and of each block that reads elementwise what is written along it."""
    func, length, written = enclosing_func(block), dim_of(loop.upper), _along(block, value, StoreOp)
    _split(block, value, loop, size)
    while func is not None and (found := next(_readers(func, written, length), None)):
        reader, value, loop = found
        written |= _along(reader, value, StoreOp)
        _split(reader, value, loop, size)


Along = frozenset[tuple[SSAValue, int]]
"""Dimensions of buffers."""


def _readers(func: PrimFuncOp, written: Along, length: Dim | None) -> Iterator[tuple[BlockOp, BlockArgument, ForOp]]:
    """The elementwise blocks that read along such dimensions by an iterator that is used only in indices."""
    for block in [op for op in blocks_in(func.body) if op.init is None]:
        for iterator in block.iterators:
            loop, value = loop_of(iterator.binding), iterator.value
            if loop is None or iterator.kind is not IteratorKind.SPATIAL or dim_of(loop.upper) is not length:
                continue
            is_index = all(isinstance(use.operation, LoadOp | StoreOp) for use in value.uses)
            is_alone = _is_plain(loop) and loop.induction_var.has_one_use()
            if is_index and is_alone and written & _along(block, value, LoadOp):
                yield block, value, loop


def _along(block: BlockOp, value: SSAValue, kind: type[LoadOp | StoreOp]) -> Along:
    """The dimensions that accesses of a block index by a value."""
    ops = [op for op in block.walk() if isinstance(op, kind)]
    return frozenset((op.buffer, number) for op in ops for number, index in enumerate(op.indices) if index is value)


def _is_plain(loop: ForOp) -> bool:
    return loop.kind.data is LoopKind.SERIAL and loop.lower is None


def _groups(block: BlockOp) -> Iterator[tuple[BlockArgument, ForOp, int]]:
    """The iterators that are divided by a number which divides their extents, and their loops."""
    for iterator in block.iterators:
        loop, extent = loop_of(iterator.binding), dim_of(iterator.extent)
        if iterator.kind is not IteratorKind.SPATIAL or loop is None or extent is None:
            continue
        for use in iterator.value.uses:
            size = _size(use.operation, iterator.value)
            if size is None or size == 1 or extent is constant(size) or mod(extent, size) is not constant(0):
                continue
            if _is_plain(loop) and not _is_of_panels(use.operation) and not _is_of_pages(use.operation):
                yield iterator.value, loop, size


def _size(op: Operation, value: SSAValue) -> int | None:
    """The number by which an op divides a value."""
    if not isinstance(op, arith.DivUIOp | arith.FloorDivSIOp) or op.lhs is not value:
        return None
    size = dim_of(op.rhs)
    return None if size is None else size.constant_value


def _is_of_panels(quotient: Operation) -> bool:
    """Whether an op computes the panel of a column, and nothing else."""
    loads = [use.operation for result in quotient.results for use in result.uses]
    return all(isinstance(load, LoadOp) and reads_panels(load) for load in loads)


def _is_of_pages(quotient: Operation) -> bool:
    """Whether an op computes where the number of a page is looked up, and nothing else: addresses depend on data, with
    one axis or two.
    """
    loads = [use.operation for result in quotient.results for use in result.uses]
    return all(isinstance(load, LoadOp) and _is_index(load) for load in loads)


def _is_index(load: LoadOp) -> bool:
    return all(isinstance(use.operation, arith.IndexCastOp) for use in load.result.uses)


def _split(block: BlockOp, value: BlockArgument, loop: ForOp, size: int) -> None:
    length = dim_of(loop.upper)
    assert length is not None  # the caller has checked
    split_axis(block, value, loop, floordiv(length, size), constant(size))


_PROVER = Prover()


def split_quotients(func: PrimFuncOp) -> None:
    """Splits the axes of elementwise stages whose quotients by a size choose among groups."""
    blocks = [op for op in func.walk() if isinstance(op, BlockOp)]
    reduces = any(block.init is not None for block in blocks)
    # Stages that pass values to each other keep the axes that they have in common.
    chained = reduces or any(isinstance(op, AllocBufferOp) for op in func.walk())
    for block in blocks:
        if block.init is None and all(each.kind is IteratorKind.SPATIAL for each in block.iterators):
            while (found := next(_splittable(block, reduces, chained), None)) is not None:
                block = split_axis(block, *found)


def _splittable(block: BlockOp, reduces: bool, chained: bool) -> Iterator[tuple[BlockArgument, ForOp, Dim, Dim]]:
    """The axes to split, their loops, and how many groups of which size they become."""
    for iterator in block.iterators:
        value, loop = iterator.value, loop_of(iterator.binding)
        if loop is None or loop.kind.data is not LoopKind.SERIAL or loop.lower is not None or loop.annotations:
            continue
        # Along a row loads are shuffled, so that stores stay contiguous; only groups that fill vectors are split.
        in_row = not reduces and _is_last(value)
        found = None if in_row else _looked_up_groups(value)
        if found is None and (in_row or not chained):
            found = _whole_groups(value, loop, WIDE if in_row else 1)
        if found is not None and _fills(loop, *found):
            yield value, loop, *found


def _is_last(value: BlockArgument) -> bool:
    """Whether the last index of a store depends on the axis."""
    uses = Dependence(lambda argument: argument is value)
    stores = [op for op in value.block.ops if isinstance(op, StoreOp)]
    return any(uses.of(store.indices[-1]) for store in stores if store.indices)


WIDE = 16
"""Members that fill vectors. If their number is no multiple of a large power of two, groups and vectors are
aligned only after that many vectors or more.
"""


def _whole_groups(value: BlockArgument, loop: ForOp, least: int) -> tuple[Dim, Dim] | None:
    """The groups of an axis and their size, if it is divided by a number with an odd factor that is large enough."""
    sizes = (dim_of(use.operation.rhs) for use in value.uses if isinstance(use.operation, arith.DivUIOp))
    extent = dim_of(loop.upper)
    for number in (size.constant_value for size in sizes if size is not None):
        if number is not None and number // gcd(number, least) > least and extent is not None:
            return (extent // number, constant(number)) if extent % number is constant(0) else None
    return None


def _fills(loop: ForOp, count: Dim, size: Dim) -> bool:
    """Whether so many groups of a size cover the iterations of a loop."""
    extent = dim_of(loop.upper)
    return extent is not None and bool(_PROVER.less_equal(size * count, extent))


def _looked_up_groups(value: BlockArgument) -> tuple[Dim, Dim] | None:
    """How many groups a quotient of the axis chooses from, and their size."""
    for use in value.uses:
        op = use.operation
        size = dim_of(op.rhs) if isinstance(op, arith.DivUIOp) and op.lhs is value else None
        if size is None or size.constant_value == 1:
            continue
        for use in op.results[0].uses:
            load = use.operation
            if isinstance(load, LoadOp) and load.parent is value.block and op.results[0] in load.indices:
                axis = list(load.indices).index(op.results[0])
                count = load.buffer_type.shape[axis].constant_value
                if count is not None and count > 1:
                    return constant(count), size
    return None
