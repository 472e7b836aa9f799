"""How much work a thread should have, and how units of work are shared out."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.ir import SSAValue

from lowering.schedule.cpu.code import Code
from tir_dialect.dims import Dim
from tir_dialect.ops.loops import LoopKind


@contextmanager
def shared_units(code: Code, units: Dim, tasks: Dim) -> Generator[tuple[SSAValue, SSAValue]]:
    """What a task does with its units, which are the numbers from the first value to before the second."""
    kind = LoopKind.SERIAL if tasks.constant_value == 1 else LoopKind.PARALLEL
    with code.loop(code.dim(tasks), "task", kind=kind) as task:
        lower = code.divide(code.mul(task, code.dim(units)), code.dim(tasks))
        upper = code.divide(code.mul(code.add(task, 1), code.dim(units)), code.dim(tasks))
        yield lower, upper
