"""What blocks declare to read and write: `T.reads`, `T.writes`."""

from __future__ import annotations

import ast

from xdsl.ir import Operation

from relax_dialect.frontend.tvmscript.prim_func.blocks import Head
from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader
from relax_dialect.frontend.tvmscript.prim_func.values import Axis, Buffer, Region
from tir_dialect.analysis.regions import BlockRegions, block_regions
from tir_dialect.dims import constant
from tir_dialect.ops.accesses import RegionAxis
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.regions import DeclarationOp, ReadsOp, WritesOp


def declare_regions(reader: TirExpressionReader, head: Head) -> None:
    """Writes down what the block declares to read and write."""
    for kind, regions in ((ReadsOp, head.reads), (WritesOp, head.writes)):
        for scope, node in regions:
            with reader.reading_in(scope):
                region = _declared(reader, node)
                axes = [_declared_axis(reader, node, axis) for axis in region.axes]
            reader.block.add_op(kind(region.buffer.value, axes))


def _declared(reader: TirExpressionReader, node: ast.expr) -> Region:
    owner = reader.value(node.value if isinstance(node, ast.Subscript) else node)
    if not isinstance(owner, Buffer):
        reader.fail(node, "expected a region of a buffer, as A[i, 0:4]")
    if isinstance(node, ast.Subscript):
        return reader.region(node, owner)
    return Region(owner, tuple(Axis(constant(0), dim) for dim in owner.type.shape))


def _declared_axis(reader: TirExpressionReader, node: ast.AST, axis: Axis) -> RegionAxis:
    lower = reader.index_value(node, axis.lower)
    return RegionAxis(lower, None if axis.upper is None else reader.index_value(node, axis.upper))


def drop_inferable_regions(func: PrimFuncOp) -> None:
    """Removes declarations that say what the accesses of the block show anyway."""
    for block in [op for op in func.walk() if isinstance(op, BlockOp)]:
        declared = [op for op in block.body.block.ops if isinstance(op, DeclarationOp)]
        if not declared:
            continue
        said = block_regions(block)
        place = declared[-1].next_op
        for op in declared:
            op.detach()
        seen = block_regions(block)
        same = _reads_the_same(said, seen) and set(said.writes) == set(seen.writes)
        for op in declared:
            if same:
                _erase_with_operands(op)
            elif place is not None:
                block.body.block.insert_op_before(op, place)
            else:
                block.body.block.add_op(op)


def _reads_the_same(said: BlockRegions, seen: BlockRegions) -> bool:
    """Whether a text declares what is read, but for what the block writes, too, as an update of its own init does."""
    left_out = set(seen.reads) - set(said.reads)
    return set(said.reads) <= set(seen.reads) and left_out <= set(seen.writes)


def _erase_with_operands(op: DeclarationOp) -> None:
    """Erases a declaration, and what only it has used."""
    pending = [operand.owner for operand in op.operands]
    op.erase()
    while pending:
        owner = pending.pop()
        if not isinstance(owner, Operation):
            continue
        if all(not result.uses for result in owner.results) and owner.parent is not None and not owner.regions:
            pending += [operand.owner for operand in owner.operands]
            owner.detach()
            owner.erase()
