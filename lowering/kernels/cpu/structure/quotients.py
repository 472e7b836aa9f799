"""Maps over channels that look up their group: the axis is split, so that the rows of a group are recognised.

`x[n, c]` and `mean[n, c // size]` for all channels c are, for a mean of 4 groups, `x[n, g * size + r]` and `mean[n, g]`
for all groups g and members r: the access of the mean is in bounds only if there are at most 4 times `size` channels,
and it has to be proved that there are exactly so many.

Axes that consist of whole groups are split likewise, so that addresses become linear: `x[i // 2, c]` for `2 * n` rows.
In a row, lanes share elements (`shared_vectors.py`); there this is only done where groups fill vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from xdsl.dialects import arith
from xdsl.ir import BlockArgument

from lowering.kernels.cpu.structure.axis_splitting import split_axis
from tir_dialect.analysis.dependence import Dependence
from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.structure import loop_of
from tir_dialect.dims import Dim, Prover, constant
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp, LoopKind
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import IteratorKind

_PROVER = Prover()


def split_quotients(func: PrimFuncOp) -> None:
    """Splits the axes of maps whose quotients by a size choose among groups."""
    blocks = [op for op in func.walk() if isinstance(op, BlockOp)]
    reduces = any(block.init is not None for block in blocks)
    # Stages that hand values to each other are to keep the axes that they have in common.
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
        # Lanes share elements along a row, which keeps others side by side: only what fills vectors is taken apart.
        in_row = not reduces and _is_last(value)
        found = None if in_row else _groups(value)
        if found is None and (in_row or not chained):
            found = _whole_groups(value, loop, WIDE if in_row else 1)
        if found is not None and _fills(loop, *found):
            yield value, loop, *found


def _is_last(value: BlockArgument) -> bool:
    """Whether an index in a row of a result is one on the axis."""
    uses = Dependence(lambda argument: argument is value)
    stores = [op for op in value.block.ops if isinstance(op, StoreOp)]
    return any(uses.of(store.indices[-1]) for store in stores if store.indices)


WIDE = 16
"""A number of members that fills vectors. If it is no multiple of a large power of two, groups of members and vectors
begin together only after that many vectors or more."""


def _whole_groups(value: BlockArgument, loop: ForOp, least: int) -> tuple[Dim, Dim] | None:
    """The groups that an axis is made of, and their size, if it is divided by one that is odd and greater than some."""
    sizes = (dim_of(use.operation.rhs) for use in value.uses if isinstance(use.operation, arith.DivUIOp))
    extent = dim_of(loop.upper)
    for number in (size.constant_value for size in sizes if size is not None):
        if number is not None and number // gcd(number, least) > least and extent is not None:
            return (extent // number, constant(number)) if extent % number is constant(0) else None
    return None


def _fills(loop: ForOp, count: Dim, size: Dim) -> bool:
    """Whether so many groups of a size have no more members than a loop has iterations."""
    extent = dim_of(loop.upper)
    return extent is not None and bool(_PROVER.less_equal(size * count, extent))


def _groups(value: BlockArgument) -> tuple[Dim, Dim] | None:
    """How many groups a quotient of the axis chooses from, wherever the code runs, and their size."""
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
