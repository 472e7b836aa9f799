"""Which results of a kernel may take the memory of an operand, and the kernel that writes them there."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import BlockArgument

from lowering.relax.fusion.inline_blocks import covers
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.patterns import OpPattern, computation_patterns
from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp

Pair = tuple[int, int]
"""The numbers of two parameters: an operand and the result that may take its memory."""


def inplace_pairs(func: PrimFuncOp) -> tuple[Pair, ...]:
    """The pairs of parameters that may be the same memory, before the function is scheduled.

    So it is where a computation, elementwise or not, writes every element of the result once, and the function reads
    the operand nowhere but at the element that it is about to write; what was computed before, such as a product to
    which the operand is added, goes elsewhere. Both have the same shape and dtype.
    """
    patterns = computation_patterns(func)
    if OpPattern.OPAQUE in patterns:
        return ()
    stores = [op for op in func.body.walk() if isinstance(op, StoreOp) and not isinstance(op.parent_op(), InitOp)]
    maps = [store for store, pattern in zip(stores, patterns, strict=True) if pattern <= OpPattern.INJECTIVE]
    space = IndexSpace(func)
    return tuple(pair for store in maps for pair in _pairs_of(func, store, space))


def _pairs_of(func: PrimFuncOp, store: StoreOp, space: IndexSpace) -> Iterator[Pair]:
    """The pairs of the result that a computation writes and nothing else touches."""
    block, target, params = store.parent_op(), store.buffer, func.params
    if not isinstance(block, BlockOp) or block.condition is not None or store.mask is not None:
        return
    if not isinstance(target, BlockArgument) or target not in params or not target.has_one_use():
        return
    if covers(block, store):
        place = [space.dim_of(index) for index in store.indices]
        for number, param in enumerate(params):
            if param is not target and param.type == target.type and _reads_only_at(param, block, place, space):
                yield number, params.index(target)


def _reads_only_at(param: BlockArgument, block: BlockOp, place: list[Dim | None], space: IndexSpace) -> bool:
    loads = [use.operation for use in param.uses]
    return all(
        isinstance(load, LoadOp)
        and load.parent_op() is block
        and [space.dim_of(index) for index in load.indices] == place
        for load in loads
    )


def write_in_place(func: PrimFuncOp, pair: Pair, name: str) -> PrimFuncOp:
    """The same kernel without the operand: it reads it from the result's memory."""
    operand, result = pair
    made = func.clone()
    made.sym_name = StringAttr(name)
    made.params[operand].replace_all_uses_with(made.params[result])
    made.body.block.erase_arg(made.params[operand])
    return made
