"""The structure around ops: enclosing loops and blocks, the buffers after views, and which buffers a function may
write.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import BlockArgument, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from tir_dialect.fast_ops import ops_in
from tir_dialect.ops.blocks import BlockOp, BufferViewOp, MatchBufferOp, ViewOp
from tir_dialect.ops.calls import CallOp, ForeignCallOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.ops.raw_memory import AddressOfOp
from tir_dialect.ops.tile_registers import StoreTileOp
from tir_dialect.types import BufferType


def blocks_in(region: Region) -> list[BlockOp]:
    """All blocks in a region, those around others before them."""
    # The class itself, which has no subclasses: `isinstance` goes through the abstract base for everything else.
    return [op for op in ops_in(region) if type(op) is BlockOp]


def ancestors(op: Operation) -> Iterator[Operation]:
    """The ops around `op`, innermost first."""
    parent = op.parent_op()
    while parent is not None:
        yield parent
        parent = parent.parent_op()


def enclosing_func(op: Operation) -> PrimFuncOp | None:
    """The prim_func that `op` is in."""
    return next((parent for parent in ancestors(op) if isinstance(parent, PrimFuncOp)), None)


def enclosing_block(op: Operation) -> BlockOp | None:
    """The innermost `tir.block` around `op`."""
    return next((parent for parent in ancestors(op) if isinstance(parent, BlockOp)), None)


def enclosing_loops(op: Operation) -> tuple[ForOp, ...]:
    """The loops around `op` up to the block, or function, that it is in; outermost first."""
    loops: list[ForOp] = []
    for parent in ancestors(op):
        if isinstance(parent, BlockOp | PrimFuncOp):
            break
        if isinstance(parent, ForOp):
            loops.append(parent)
    return tuple(reversed(loops))


def child_blocks(op: Operation) -> tuple[BlockOp, ...]:
    """The blocks inside of `op` that are in no other block there, in order."""
    found: list[BlockOp] = []
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if isinstance(inner, BlockOp):
                    found.append(inner)
                else:
                    found += child_blocks(inner)
    return tuple(found)


def loop_of(value: SSAValue) -> ForOp | None:
    """The loop whose induction variable `value` is."""
    owner = value.block.parent_op() if isinstance(value, BlockArgument) else None
    return owner if isinstance(owner, ForOp) else None


def block_of(value: SSAValue) -> BlockOp | None:
    """The block whose iterator `value` is."""
    owner = value.block.parent_op() if isinstance(value, BlockArgument) else None
    return owner if isinstance(owner, BlockOp) else None


def root_buffer(buffer: SSAValue) -> SSAValue:
    """The parameter or allocation after a chain of views."""
    while isinstance(buffer.owner, BufferViewOp):
        buffer = buffer.owner.buffer
    return buffer


def view_offsets(buffer: SSAValue) -> Iterator[SSAValue]:
    """The start indices of the views between `buffer` and its root."""
    while isinstance(buffer.owner, BufferViewOp):
        if isinstance(buffer.owner, MatchBufferOp):
            yield from buffer.owner.lower
        elif isinstance(buffer.owner, ViewOp) and buffer.owner.start is not None:
            yield buffer.owner.start
        buffer = buffer.owner.buffer


_UNDECLARED = frozenset(("arith.extsi", "arith.remui", "vector.bitcast", "vector.create_mask", "vector.reduction"))


def has_no_effects(op: Operation) -> bool:
    """Whether `op` has no side effects; xDSL 0.74 lacks the trait for some ops."""
    return op.name in _UNDECLARED or is_side_effect_free(op)


def is_defined_inside(value: SSAValue, op: Operation) -> bool:
    """Whether `value` is defined in a region of `op`."""
    outer = value.owner.parent_op()
    while outer is not None:
        if outer is op:
            return True
        outer = outer.parent_op()
    return False


def written_buffers(function: PrimFuncOp) -> set[SSAValue]:
    """Those that are stored to, or passed to a call, which may store to them, or of which an address is taken.

    Linear in the size of the function.
    """
    written: set[SSAValue] = set()
    for op in ops_in(function.body):
        if isinstance(op, StoreOp | StoreTileOp | AddressOfOp):
            written.add(root_buffer(op.buffer))
        elif isinstance(op, CallOp | ForeignCallOp):
            written.update(root_buffer(argument) for argument in op.arguments if isinstance(argument.type, BufferType))
    return written


def is_written(buffer: SSAValue) -> bool:
    """Whether a parameter or allocation is one of `written_buffers`; linear in the number of its uses."""
    return any(_may_write(use.operation) for use in buffer.uses)


def _may_write(user: Operation) -> bool:
    if isinstance(user, BufferViewOp):
        return is_written(user.results[0])
    return isinstance(user, StoreOp | StoreTileOp | AddressOfOp | CallOp | ForeignCallOp)
