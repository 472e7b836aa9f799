"""Splits axes of groups: an axis that is only used as `i // 4` and `i mod 4` becomes two axes.

So the channels of a grouped convolution are recognised: the group moves both factors, the member one. Elementwise
readers of the result get the same two axes, so that they can become its epilogue.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, Operation, SSAValue

from lowering.kernels.cpu.structure.axis_splitting import split_axis
from lowering.kernels.cpu.structure.panels import reads_panels
from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.structure import enclosing_func, loop_of
from tir_dialect.dims import Dim, constant, floordiv, mod
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp, LoopKind
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import IteratorKind


def split_groups(func: PrimFuncOp) -> bool:
    """Splits the axes of groups of all reductions of a function; says whether there were any."""
    changed = False
    sums = [op for op in func.walk() if isinstance(op, BlockOp) and op.init is not None]
    for block in sums:
        found = next(_groups(block), None)
        if found is not None:
            # Among several sums, as in attention, the blocks between keep the axes that the others have.
            (_split_with_readers if len(sums) == 1 else _split)(block, *found)
            changed = True
    return changed


def _split_with_readers(block: BlockOp, value: BlockArgument, loop: ForOp, size: int) -> None:
    """Splits the axis of a block, and that of each block which reads element by element what is written along it."""
    func, length, written = enclosing_func(block), dim_of(loop.upper), _along(block, value, StoreOp)
    _split(block, value, loop, size)
    while func is not None and (found := next(_readers(func, written, length), None)):
        reader, value, loop = found
        written |= _along(reader, value, StoreOp)
        _split(reader, value, loop, size)


Along = frozenset[tuple[SSAValue, int]]
"""Dimensions of buffers."""


def _readers(func: PrimFuncOp, written: Along, length: Dim | None) -> Iterator[tuple[BlockOp, BlockArgument, ForOp]]:
    """The blocks without sums that read along such dimensions by an iterator that is used for nothing but indices."""
    for block in [op for op in func.walk() if isinstance(op, BlockOp) and op.init is None]:
        for iterator in block.iterators:
            loop, value = loop_of(iterator.binding), iterator.value
            if loop is None or iterator.kind is not IteratorKind.SPATIAL or dim_of(loop.upper) is not length:
                continue
            is_index = all(isinstance(use.operation, LoadOp | StoreOp) for use in value.uses)
            is_alone = _is_plain(loop) and loop.induction_var.has_one_use()
            if is_index and is_alone and written & _along(block, value, LoadOp):
                yield block, value, loop


def _along(block: BlockOp, value: SSAValue, kind: type[LoadOp | StoreOp]) -> Along:
    """Where accesses of a block have a value as index."""
    ops = [op for op in block.walk() if isinstance(op, kind)]
    return frozenset((op.buffer, number) for op in ops for number, index in enumerate(op.indices) if index is value)


def _is_plain(loop: ForOp) -> bool:
    return loop.kind.data is LoopKind.SERIAL and loop.lower is None


def _groups(block: BlockOp) -> Iterator[tuple[BlockArgument, ForOp, int]]:
    """The iterators that are divided by a number of which their extents are multiples, and their loops."""
    for iterator in block.iterators:
        loop, extent = loop_of(iterator.binding), dim_of(iterator.extent)
        if iterator.kind is not IteratorKind.SPATIAL or loop is None or extent is None:
            continue
        for use in iterator.value.uses:
            size = _size(use.operation, iterator.value)
            if size is None or size == 1 or extent is constant(size) or mod(extent, size) is not constant(0):
                continue
            if _is_plain(loop) and not _is_of_panels(use.operation):
                yield iterator.value, loop, size


def _size(op: Operation, value: SSAValue) -> int | None:
    """The number by which an op divides a value."""
    if not isinstance(op, arith.DivUIOp | arith.FloorDivSIOp) or op.lhs is not value:
        return None
    size = dim_of(op.rhs)
    return None if size is None else size.constant_value


def _is_of_panels(quotient: Operation) -> bool:
    """Whether an op gives the panel that a column is in, and nothing else."""
    loads = [use.operation for result in quotient.results for use in result.uses]
    return all(isinstance(load, LoadOp) and reads_panels(load) for load in loads)


def _split(block: BlockOp, value: BlockArgument, loop: ForOp, size: int) -> None:
    length = dim_of(loop.upper)
    assert length is not None  # as asked before
    split_axis(block, value, loop, floordiv(length, size), constant(size))
