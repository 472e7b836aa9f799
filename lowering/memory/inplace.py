"""Which results of a kernel may take the memory of an operand, and the kernel that writes them there."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import BlockArgument

from lowering.graph.inline_blocks import covers
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.patterns import OpPattern, computation_patterns
from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp

Pair = tuple[int, int]
"""The numbers of two parameters: an operand and the result that may take its memory."""


def inplace_pairs(func: PrimFuncOp) -> tuple[Pair, ...]:
    """The pairs of parameters that may be the same memory, before the function is scheduled.

    So it is for a function of a single computation, elementwise or not, that writes every element of the result once,
    and reads the operand nowhere but at the element that it is about to write. Both have the same shape and dtype.
    """
    stores = [op for op in func.body.walk() if isinstance(op, StoreOp)]
    if len(stores) != 1 or computation_patterns(func)[0] > OpPattern.INJECTIVE:
        return ()
    (store,) = stores
    block, target = store.parent_op(), store.buffer
    if not isinstance(block, BlockOp) or block.condition is not None or store.mask is not None:
        return ()
    if not isinstance(target, BlockArgument) or target not in func.params or not covers(block, store):
        return ()
    space, params = IndexSpace(func), func.params
    place = [space.dim_of(index) for index in store.indices]
    return tuple(
        (number, params.index(target))
        for number, param in enumerate(params)
        if param is not target and param.type == target.type and _reads_only_at(param, block, place, space)
    )


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
