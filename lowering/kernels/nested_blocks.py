"""Blocks in blocks become one block, so that their loops are one nest.

```mlir
tir.for (%i) in (%n) {
  tir.block "row" (%vi = spatial %i in %n) {
    tir.for (%j) in (%m) {
      tir.block "element" (%vj = spatial %j in %m) { f(%vi, %vj) }
// becomes
tir.for (%i, %j) in (%n, %m) {
  tir.block "element" (%vi = spatial %i in %n, %vj = spatial %j in %m) { f(%vi, %vj) }
```
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.structure import blocks_in, loop_of
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.blocks import BlockIterator, BlockOp, ReadsOp, WritesOp
from tir_dialect.ops.control_flow import ForOp, LoopKind
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import IteratorKind


def flatten_blocks(func: PrimFuncOp) -> None:
    """Inlines each block whose iterators are those of loops, and which has only a nest with another block."""
    for outer in reversed(blocks_in(func.body)):
        inner = _inner_block(outer) if _is_trivial(outer) else None
        if inner is not None:
            _inline(outer, inner)


def _is_trivial(block: BlockOp) -> bool:
    """Whether a block is what it contains, for each iteration of its loops."""
    plain = block.init is None and block.condition is None and block.annotations is None
    return plain and bool(block.iterators) and all(map(_is_loop, block.iterators))


def _is_loop(iterator: BlockIterator) -> bool:
    """Whether an iterator is spatial, and has the values of a serial loop over the same extent."""
    loop, extent = loop_of(iterator.binding), dim_of(iterator.extent)
    if loop is None or extent is None or iterator.kind is not IteratorKind.SPATIAL:
        return False
    return _is_plain(loop) and dim_of(loop.upper) is extent


def _is_plain(loop: ForOp) -> bool:
    return loop.kind.data is LoopKind.SERIAL and loop.lower is None and loop.annotations is None


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
        if not isinstance(op, ForOp) or not _is_plain(op) or op.upper.owner is outer.body.block:
            return None
        around = op


def _inline(outer: BlockOp, inner: BlockOp) -> None:
    """Gives the inner block the iterators of the outer one, and inlines that."""
    body = inner.body.block
    iterators = [(iterator.kind, iterator.binding, iterator.extent) for iterator in inner.iterators]
    added = 0
    for own in outer.iterators:
        bound = next((each.value for each in inner.iterators if each.binding is own.value and _spans(each, own)), None)
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


def _spans(inner: BlockIterator, outer: BlockIterator) -> bool:
    return dim_of(inner.extent) is dim_of(outer.extent) and inner.kind is IteratorKind.SPATIAL
