"""`lower-init-blocks`: inits become blocks of their own, right before the reduction."""

from __future__ import annotations

from functools import reduce

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from tir_dialect.analysis.init import InitPlacement, init_placement
from tir_dialect.analysis.structure import blocks_in
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.loops import ForOp


class LowerInitBlocksPass(ModulePass):
    """Hoists every `tir.init`, where possible, into a block `<name>_init` before the loops of its reduction.

    ```mlir
    tir.for (%i, %j, %r) in (%m, %k, %n) {
      tir.block "matmul" (%vi = spatial %i in %m, %vj = spatial %j in %k, %vr = reduce %r in %n) {
        tir.init { init(%vi, %vj) }
        ...
    // becomes
    tir.for (%i, %j) in (%m, %k) {
      tir.block "matmul_init" (%vi = spatial %i in %m, %vj = spatial %j in %k) {
        init(%vi, %vj)
      }
      tir.for (%r) in (%n) {
        tir.block "matmul" (%vi = spatial %i in %m, %vj = spatial %j in %k, %vr = reduce %r in %n) {
          ...
    ```

    An empty reduction is initialized too. An init stays where its reduction shares a loop with a spatial iterator; then
    `lower-blocks` puts it after a branch. Running it again changes nothing. Accepts every valid module.
    """

    name = "lower-init-blocks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Outermost blocks first."""
        for block in blocks_in(op.body):
            init = block.init
            placement = init_placement(block) if init is not None else None
            if init is not None and placement is not None:
                _move(block, init, placement)


def _move(block: BlockOp, init: InitOp, placement: InitPlacement) -> None:
    values: dict[SSAValue, SSAValue] = {}
    point = InsertPoint.before(placement.loop)
    wanted = {*placement.loops, *placement.ops}
    for op in placement.loop.walk():
        if op not in wanted:
            continue
        if isinstance(op, ForOp):
            copy = _copy_loop(op, values)
            Rewriter.insert_op(copy, point)
            point = InsertPoint.at_end(copy.body.block)
        else:
            Rewriter.insert_op(op.clone(values), point)
    for op in _init_block(block, init, placement, values):
        Rewriter.insert_op(op, point)
    Rewriter.erase_op(init)


def _copy_loop(loop: ForOp, values: dict[SSAValue, SSAValue]) -> ForOp:
    """The loop without its body."""
    copy = ForOp(
        values.get(loop.upper, loop.upper),
        lower=None if loop.lower is None else values.get(loop.lower, loop.lower),
        kind=loop.kind.data,
        annotations=None if loop.annotations is None else loop.annotations.data,
        name_hint=loop.induction_var.name_hint,
    )
    copy.location = loop.location
    values[loop.induction_var] = copy.induction_var
    return copy


def _init_block(
    block: BlockOp, init: InitOp, placement: InitPlacement, values: dict[SSAValue, SSAValue]
) -> list[Operation]:
    """The block that runs the init, after the ops that its condition takes."""
    spatial = [iterator for iterator in block.iterators if not iterator.kind.is_reduced]
    conditions = [values.get(condition, condition) for condition in placement.conditions]
    ops: list[Operation] = []

    def both(lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        ops.append(arith.AndIOp(lhs, rhs, IntegerType(1)))
        return ops[-1].results[0]

    new = BlockOp(
        f"{block.block_name.data}_init",
        [(it.kind, values.get(it.binding, it.binding), values.get(it.extent, it.extent)) for it in spatial],
        where=reduce(both, conditions) if conditions else None,
        name_hints=[iterator.value.name_hint for iterator in spatial],
    )
    inside = dict(values)
    for iterator, argument in zip(spatial, new.body.block.args, strict=True):
        inside[iterator.value] = argument
    _copy_body(init.body.block, new.body.block, inside, block)
    ops.append(new)
    inherit_location(init, ops)
    return ops


def _copy_body(source: Block, target: Block, values: dict[SSAValue, SSAValue], block: BlockOp) -> None:
    """The ops of the init; an iterator that is reduced over is 0 there."""
    used = {operand for op in source.walk() for operand in op.operands}
    for iterator in block.iterators:
        if iterator.kind.is_reduced and iterator.value in used:
            zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
            target.add_op(zero)
            values[iterator.value] = zero.result
    for op in source.ops:
        target.add_op(op.clone(values))
