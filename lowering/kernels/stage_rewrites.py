"""Rewrites of a kernel before its loops are generated.

`flatten_blocks`: blocks in blocks become one block, so that their loops are one nest.

```mlir
tir.for (%i) in (%n) {
  tir.block "row" (%vi = spatial %i in %n) {
    tir.for (%j) in (%m) {
      tir.block "element" (%vj = spatial %j in %m) { f(%vi, %vj) }
// becomes
tir.for (%i, %j) in (%n, %m) {
  tir.block "element" (%vi = spatial %i in %n, %vj = spatial %j in %m) { f(%vi, %vj) }
```

`inline_producers` and `inline_operands`: elementwise stages go into their readers, so that a chain of them is one
stage.

`split_groups` and `split_quotients`: an axis becomes groups and members, `i` of extent `n * k` group `i // k` and
member `i mod k`. The first is for contractions. The channels of a grouped convolution are split, so that the group
moves both operands, and the member one. Elementwise readers get the same two axes, so that they can become an epilogue.

The second is for elementwise stages over channels that look up their group. `x[n, c]` and `mean[n, c // size]`
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
from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.kernels.cost_model import CHEAP_OPS, SPLIT_MIN_MEMBERS
from lowering.kernels.structure.contraction import reads_panels
from lowering.kernels.structure.stages import Stage, is_heavy
from tir_dialect.analysis.dependence import Dependence
from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.structure import blocks_in, enclosing_func, loop_of
from tir_dialect.dims import Dim, Prover, constant, floordiv, mod, product
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.blocks import BlockIterator, BlockOp, InitOp, ReadsOp, WritesOp
from tir_dialect.ops.control_flow import ForOp, LoopKind
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import IteratorKind


def flatten_blocks(func: PrimFuncOp) -> None:
    """Inlines each block whose iterators are those of loops, and which has only a nest with another block."""
    for outer in reversed(blocks_in(func.body)):
        is_plain = outer.init is None and outer.condition is None and outer.annotations is None
        if is_plain and outer.iterators and all(map(_is_loop, outer.iterators)):
            inner = _inner_block(outer)
            if inner is not None:
                _merge_blocks(outer, inner)


def _is_loop(iterator: BlockIterator) -> bool:
    """Whether an iterator is spatial, and has the values of a serial loop over the same extent."""
    loop, extent = loop_of(iterator.binding), dim_of(iterator.extent)
    if loop is None or extent is None or iterator.kind is not IteratorKind.SPATIAL:
        return False
    return _is_serial(loop) and loop.annotations is None and dim_of(loop.upper) is extent


def _inner_block(outer: BlockOp) -> BlockOp | None:
    """The block of the one nest in a block, whose domain does not depend on its iterators."""
    around: BlockOp | ForOp = outer
    while True:
        ops = around.body.block.ops
        rest = [each for each in ops if not isinstance(each, ReadsOp | WritesOp | DimOp | arith.ConstantOp)]
        op = rest[0] if len(rest) == 1 else None
        if isinstance(op, BlockOp):
            fixed = not any(each.owner is outer.body.block for each in op.extents)
            return op if fixed and op.annotations is None else None
        if not isinstance(op, ForOp) or not _is_serial(op) or op.annotations is not None:
            return None
        if op.upper.owner is outer.body.block:
            return None
        around = op


def _merge_blocks(outer: BlockOp, inner: BlockOp) -> None:
    """Gives the inner block the iterators of the outer one, and inlines that."""
    body = inner.body.block
    iterators = [(iterator.kind, iterator.binding, iterator.extent) for iterator in inner.iterators]
    added = 0
    for own in outer.iterators:
        spanning = (
            each.value
            for each in inner.iterators
            if each.binding is own.value
            and each.kind is IteratorKind.SPATIAL
            and dim_of(each.extent) is dim_of(own.extent)
        )
        bound = next(spanning, None)
        if bound is None:
            bound = body.insert_arg(IndexType(), added)
            bound.name_hint = own.value.name_hint
            iterators.insert(added, (own.kind, own.value, own.extent))
            added += 1
        for use in [use for use in own.value.uses if inner.is_ancestor(use.operation) and use.operation is not inner]:
            use.operation.operands[use.index] = bound
    new = BlockOp(inner.block_name.data, iterators, inner.detach_region(inner.body), where=inner.condition)
    new.location, new.attributes = inner.location, inner.attributes
    Rewriter.replace_op(inner, new)
    for op in list(outer.body.block.ops):
        if isinstance(op, ReadsOp | WritesOp):
            Rewriter.erase_op(op)
    Rewriter.inline_block(outer.body.block, InsertPoint.before(outer), list(outer.bindings))
    Rewriter.erase_op(outer)


def inline_producers(stages: Sequence[Stage]) -> bool:
    """Inlines producers; returns whether anything changed.

    An expensive producer, or one whose reader has more elements, is inlined only if it is computed no more often than
    before; copies of whole rows are inlined anywhere.
    """
    changed = False
    current = list(stages)
    for position, stage in enumerate(current):
        later = current[position + 1 :]
        if _is_plain_elementwise(stage) and _is_worthwhile(stage, later):
            _inline(stage)
            changed = True
            # The indices of the other stages have changed: they are analysed again.
            from lowering.kernels.structure.stages import find_stage

            rest = [stage for stage in stages if stage.block.parent is not None]
            found = [find_stage(stage.nest, stage.block) for stage in rest]
            inline_producers([stage for stage in found if stage is not None])
            return True
    return changed


def inline_operands(stages: Sequence[Stage]) -> bool:
    """The same for cheap producers of operands of contractions, which are packed anyway."""
    for position, stage in enumerate(stages):
        cheap = len(stage.needed) <= CHEAP_OPS and not any(op.regions or is_heavy(op) for op in stage.needed)
        if cheap and _is_plain_elementwise(stage) and _is_read_by_reductions(stage, stages[position + 1 :]):
            _inline(stage)
            return True
    return False


def _is_read_by_reductions(stage: Stage, later: Sequence[Stage]) -> bool:
    buffer = stage.stores[0].buffer
    readers = [other for other in later if any(load.buffer is buffer for load in other.loads)]
    written = {store.buffer for other in later for store in other.stores}
    unchanged = not any(load.buffer in written for load in stage.loads)
    return bool(readers) and unchanged and all(other.of_kind(IteratorKind.REDUCE) for other in readers)


def _is_plain_elementwise(stage: Stage) -> bool:
    """Whether the stage stores once, to a buffer of the function, at its own index, for all elements."""
    if len(stage.stores) != 1 or stage.init or stage.of_kind(IteratorKind.REDUCE, IteratorKind.SCAN):
        return False
    store = stage.stores[0]
    indices = stage.accesses[store]
    if not isinstance(store.buffer.owner, AllocBufferOp) or len(indices) != len(stage.axes):
        return False
    whole = all(index.is_axis(number) for number, index in enumerate(indices))
    same = tuple(store.buffer_type.shape) == stage.extents
    uses = [use.operation for use in store.buffer.uses]
    return whole and same and all(op is store or (isinstance(op, LoadOp) and op.lanes is None) for op in uses)


def _is_worthwhile(stage: Stage, later: Sequence[Stage]) -> bool:
    buffer = stage.stores[0].buffer
    readers = [(other, load) for other in later for load in other.loads if load.buffer is buffer]
    everywhere = len(readers) == sum(isinstance(use.operation, LoadOp) for use in buffer.uses)
    written = {store.buffer for other in later for store in other.stores}
    if not everywhere or not readers or any(load.buffer in written for load in stage.loads):
        return False
    size = product(stage.extents)
    if any(len(other.axes) < len(stage.axes) for other, _ in readers):
        return False
    if _copies_rows(stage):
        return True
    same = all(product(other.extents) is size for other, _ in readers)
    heavy = any(is_heavy(op) for op in stage.needed)
    cheap = not heavy and len(stage.needed) <= CHEAP_OPS
    return same and (cheap or len(readers) == 1)


def _copies_rows(stage: Stage) -> bool:
    """Whether a stage only copies, and elements of a row come from adjacent elements or the same one."""
    load, last = stage.stores[0].value.owner, len(stage.axes) - 1
    if not isinstance(load, LoadOp) or [*stage.loads] != [load]:
        return False
    if not stage.accesses[load] or not stage.axes:
        return True  # the same element everywhere
    *outer, inner = stage.accesses[load]
    axis = stage.axes[last].value
    uses_axis = Dependence(lambda argument: argument is axis)
    if any(index.strides[last].terms or (index.value is not None and uses_axis.of(index.value)) for index in outer):
        return False
    return inner.follows(last) or (inner.value is not None and _divisor(inner.value.owner, axis) is not None)


def _divisor(op: Operation | Block, value: SSAValue) -> int | None:
    """The number by which an op divides a value."""
    if not isinstance(op, arith.DivUIOp | arith.FloorDivSIOp) or op.lhs is not value:
        return None
    size = dim_of(op.rhs)
    return None if size is None else size.constant_value


def _inline(stage: Stage) -> None:
    store = stage.stores[0]
    for use in list(store.buffer.uses):
        load = use.operation
        if isinstance(load, LoadOp):
            values: dict[SSAValue, SSAValue] = {
                axis.value: index for axis, index in zip(stage.axes, load.indices, strict=True)
            }
            copies: list[Operation] = []
            for op in stage.block.body.block.ops:
                if not isinstance(op, StoreOp):
                    copies.append(op.clone(value_mapper=values))
            Rewriter.insert_op(copies, InsertPoint.before(load))
            load.result.replace_all_uses_with(values.get(store.value, store.value))
            Rewriter.erase_op(load)
    alloc = store.buffer.owner
    Rewriter.erase_op(stage.nest)
    if isinstance(alloc, AllocBufferOp):
        Rewriter.erase_op(alloc)


def split_axis(block: BlockOp, value: BlockArgument, loop: ForOp, count: Dim, size: Dim) -> BlockOp:
    """The block with two iterators for one, over `count` groups of `size` members; `loop`, which binds it, becomes two.

    Quotients and remainders of the axis by the size become the new iterators.
    """
    sizes = [_index_op(each) for each in (count, size)]
    for op in sizes:
        op.location = loop.location
    Rewriter.insert_op(sizes, InsertPoint.before(loop))
    extents = [op.results[0] for op in sizes]
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


def _index_op(dim: Dim) -> DimOp | arith.ConstantOp:
    """An op that has the value of a dimension."""
    number = dim.constant_value
    return DimOp(dim) if number is None else arith.ConstantOp(IntegerAttr(number, IndexType()))


def _replace_by_whole(uses: Sequence[Use], group: SSAValue, member: SSAValue, size: Dim, point: InsertPoint) -> None:
    """Gives ops `group * size + member`."""
    if not uses:
        return
    factor = _index_op(size)
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
            is_alone = _is_serial(loop) and loop.induction_var.has_one_use()
            if is_index and is_alone and written & _along(block, value, LoadOp):
                yield block, value, loop


def _along(block: BlockOp, value: SSAValue, kind: type[LoadOp | StoreOp]) -> Along:
    """The dimensions that accesses of a block index by a value."""
    ops = [op for op in block.walk() if isinstance(op, kind)]
    return frozenset((op.buffer, number) for op in ops for number, index in enumerate(op.indices) if index is value)


def _is_serial(loop: ForOp) -> bool:
    return loop.kind.data is LoopKind.SERIAL and loop.lower is None


def _groups(block: BlockOp) -> Iterator[tuple[BlockArgument, ForOp, int]]:
    """The iterators that are divided by a number which divides their extents, and their loops."""
    for iterator in block.iterators:
        loop, extent = loop_of(iterator.binding), dim_of(iterator.extent)
        if iterator.kind is not IteratorKind.SPATIAL or loop is None or extent is None:
            continue
        for use in iterator.value.uses:
            size = _divisor(use.operation, iterator.value)
            if size is None or size == 1 or extent is constant(size) or mod(extent, size) is not constant(0):
                continue
            if _is_serial(loop) and not _only_addresses(use.operation):
                yield iterator.value, loop, size


def _only_addresses(quotient: Operation) -> bool:
    """Whether an op computes the panel of a column, where the number of a page is looked up, or an index in a page, and
    nothing else.

    Addresses in pages depend on data, with one axis or two.
    """
    loads = [use.operation for result in quotient.results for use in result.uses]
    return any(
        all(isinstance(load, LoadOp) and is_address(load) for load in loads)
        for is_address in (reads_panels, _is_index, _is_in_page)
    )


def _is_index(load: LoadOp) -> bool:
    return all(isinstance(use.operation, arith.IndexCastOp) for use in load.result.uses)


def _is_in_page(load: LoadOp) -> bool:
    """Whether an index of a load is, or is bounded from, a loaded number."""
    pending, seen = list[SSAValue](load.indices), set[SSAValue]()
    while pending:
        value = pending.pop()
        if isinstance(value.owner, LoadOp):
            return True
        if isinstance(value.owner, Operation) and value not in seen:
            seen.add(value)
            pending += value.owner.operands
    return False


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
            found = _whole_groups(value, loop, SPLIT_MIN_MEMBERS if in_row else 1)
        extent = dim_of(loop.upper)
        # The groups have to cover all iterations.
        if found is not None and extent is not None and _PROVER.less_equal(found[1] * found[0], extent):
            yield value, loop, *found


def _is_last(value: BlockArgument) -> bool:
    """Whether the last index of a store depends on the axis."""
    uses = Dependence(lambda argument: argument is value)
    stores = [op for op in value.block.ops if isinstance(op, StoreOp)]
    return any(uses.of(store.indices[-1]) for store in stores if store.indices)


def _whole_groups(value: BlockArgument, loop: ForOp, least: int) -> tuple[Dim, Dim] | None:
    """The groups of an axis and their size, if it is divided by a number with an odd factor that is large enough."""
    sizes = (dim_of(use.operation.rhs) for use in value.uses if isinstance(use.operation, arith.DivUIOp))
    extent = dim_of(loop.upper)
    for number in (size.constant_value for size in sizes if size is not None):
        if number is not None and number // gcd(number, least) > least and extent is not None:
            return (extent // number, constant(number)) if extent % number is constant(0) else None
    return None


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
