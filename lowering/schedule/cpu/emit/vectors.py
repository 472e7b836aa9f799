"""Loops whose iterations become the lanes of a vector, all of them or the first few."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.kernel import Kernel
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.types import LoopKind

Step = Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]
"""From the index of an element and the values of its accumulators to the new values."""


def vector_iteration(
    kernel: Kernel,
    start: SSAValue,
    lanes: int,
    left: SSAValue | None,
    accumulators: Sequence[SSAValue],
    step: Step,
    before: Callable[[SSAValue], None] | None = None,
) -> None:
    """A step for the elements from `start` on: for `lanes` of them, or, of these, for the first `left`.

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
            branch = IfOp(code.compare("slt", lane, left), result_types=[value.type for value in old])
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
