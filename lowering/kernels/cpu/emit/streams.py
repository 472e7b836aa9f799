"""Results that are too large for the caches, which are written past them."""

from __future__ import annotations

from math import prod

from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import StoreOp

PART_OF_L3 = 2
"""Of a result of such a part of the last-level cache, little is left there when it is read, for what is read and
written beside it; so it is faster to leave it out of all caches."""


def streamed_from(kernel: Kernel, stage: Stage, op: StoreOp) -> int | None:
    """From how many bytes of its result on a store goes past the caches; `None` if it never does.

    Its loops write line after line: a line that is left before it is full would go to memory in parts.
    """
    if op.buffer not in kernel.results or not kernel.target.arch.startswith("x86"):
        return None
    least, extents = kernel.target.l3_bytes // PART_OF_L3, [each.constant_value for each in op.buffer_type.shape]
    known = [extent for extent in extents if extent is not None]
    if len(known) == len(extents) and prod(known) * byte_size(op.buffer_type.dtype) < least:
        return None
    indices = stage.accesses[op]
    in_order = len(indices) == len(stage.axes) and all(index.is_axis(axis) for axis, index in enumerate(indices))
    return least if in_order else None
