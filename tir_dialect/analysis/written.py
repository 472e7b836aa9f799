"""Which buffers a function may write."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.structure import root_buffer
from tir_dialect.ops.calls import CallOp, ForeignCallOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.ops.raw_memory import AddressOfOp
from tir_dialect.ops.view import BufferViewOp
from tir_dialect.types import BufferType


def written_buffers(function: PrimFuncOp) -> set[SSAValue]:
    """Those that are stored to, or passed to a call, which may store to them, or of which an address is taken.

    Linear in the size of the function.
    """
    written: set[SSAValue] = set()
    for op in function.body.walk():
        if isinstance(op, StoreOp | AddressOfOp):
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
    return isinstance(user, StoreOp | AddressOfOp | CallOp | ForeignCallOp)
