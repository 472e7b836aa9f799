"""Loops whose iterations become the lanes of a vector, all of them or the first few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import Kernel
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.types import LoopKind

Step = Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]
"""From the index of an element and the values of its accumulators to the new values."""


Range: TypeAlias = SSAValue | tuple[SSAValue, SSAValue] | None
"""Some lanes: the first so many, or those from one on before another, which may be beyond all; `None` for all."""


def vector_iteration(
    kernel: Kernel,
    start: SSAValue,
    lanes: int,
    left: Range,
    accumulators: Sequence[SSAValue],
    step: Step,
    before: Callable[[SSAValue], None] | None = None,
) -> None:
    """A step for the elements from `start` on: for `lanes` of them, or, of these, for those `left`.

    Each accumulator is a buffer, of which every lane has its own element. What is done `before` with the number of a
    lane is done in all of them.
    """
    code = kernel.code
    with code.loop(code.index(lanes), "lane", kind=LoopKind.VECTORIZED if lanes > 1 else LoopKind.SERIAL) as lane:
        if before is not None:
            before(lane)
        old = [code.load(buffer, [lane]) for buffer in accumulators]
        index = code.add(start, lane)
        if left is None:
            new = step(index, old)
        else:
            branch = IfOp(_is_left(kernel, lane, left), result_types=[value.type for value in old])
            code.emit(branch)
            with code.inside(branch.then_body.block):
                values = step(index, old)
                if old:
                    code.emit(YieldOp(*values))
            if old:
                with code.inside(branch.else_body.block):
                    code.emit(YieldOp(*old))
            new = list(branch.outputs)
        for buffer, value in zip(accumulators, new, strict=True):
            code.store(value, buffer, [lane])


def _is_left(kernel: Kernel, lane: SSAValue, left: SSAValue | tuple[SSAValue, SSAValue]) -> SSAValue:
    code = kernel.code
    if isinstance(left, SSAValue):
        return code.compare("slt", lane, left)
    low, high = left
    return code.value(arith.AndIOp(code.compare("sge", lane, low), code.compare("slt", lane, high)))
