"""Which results of a kernel may take the memory of an operand, and the kernel that writes them there."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import takewhile

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import BlockArgument, Operation

from lowering.relax.fusion.inline_blocks import covers
from tir_dialect.analysis.determination import Axis, determine
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.patterns import OpPattern, computation_patterns
from tir_dialect.analysis.structure import ancestors
from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import LoadOp, StoreOp

Pair = tuple[int, int]
"""The numbers of two parameters: an operand and the result that may take its memory."""


def inplace_pairs(func: PrimFuncOp) -> tuple[Pair, ...]:
    """The pairs of parameters that may be the same memory, before the function is scheduled.

    So it is where a computation, elementwise or not, writes every element of the result once, and the function reads
    the operand nowhere but at the element that it is about to write; what was computed before, such as a product to
    which the operand is added, goes elsewhere, and what is computed after, as another result of the same block, has
    read the operand before. Both have the same shape and dtype.
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
    if covers(block, store) and _has_distinct_instances(block, space):
        place = [space.dim_of(index) for index in store.indices]
        before = set(takewhile(lambda op: op is not store, block.body.block.ops))
        for number, param in enumerate(params):
            if param is not target and param.type == target.type and _reads_only_at(param, before, place, space):
                yield number, params.index(target)


def _has_distinct_instances(block: BlockOp, space: IndexSpace) -> bool:
    """Whether the loops around a block make no instance twice: the second one would read what the first has written."""
    loops = [op for op in ancestors(block) if isinstance(op, ForOp)]
    variables = [space.variable(loop.induction_var).dim for loop in loops]
    rows = [(Axis(space.dim_of(iterator.binding)),) for iterator in block.iterators]
    names = set[str]()
    for variable in variables:
        names |= variable.symbols
        if not _has_one_value(space, variable) and not determine(space, rows, variable, names):
            return False
    return True


def _has_one_value(space: IndexSpace, variable: Dim) -> bool:
    found = space.variables[variable.as_symbol or ""]
    return (
        found.lower is not None and found.upper is not None and space.less_equal(found.upper, found.lower + 1) is True
    )


def _reads_only_at(
    param: BlockArgument, ops: Collection[Operation], place: list[Dim | None], space: IndexSpace
) -> bool:
    """Whether all loads of a parameter are among some ops, and at one place."""
    loads = [use.operation for use in param.uses]
    return all(
        isinstance(load, LoadOp) and load in ops and [space.dim_of(index) for index in load.indices] == place
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
