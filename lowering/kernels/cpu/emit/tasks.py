"""How much work a task should have, and how units of work are distributed over tasks."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, i32
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from tir_dialect.dims import Dim
from tir_dialect.ops.calls import CallExternOp
from tir_dialect.ops.loops import LoopKind


@contextmanager
def shared_units(code: Code, units: Dim, tasks: Dim, whole: bool = False) -> Generator[tuple[SSAValue, SSAValue]]:
    """What a task does with its units, which are the numbers from the first value to before the second.

    With `whole` there are no more tasks than threads: what lies side by side in memory stays together.
    """
    count = at_most_threads(code, tasks) if whole else code.dim(tasks)
    alone, all_units = tasks.constant_value == 1, code.dim(units)
    with code.loop(count, "task", kind=LoopKind.SERIAL if alone else LoopKind.PARALLEL) as task:
        lower = code.divide(code.mul(task, all_units), count)
        upper = code.divide(code.mul(code.add(task, 1), all_units), count)
        yield lower, upper


def at_most_threads(code: Code, tasks: Dim) -> SSAValue:
    """So many tasks, or as many as there are threads in a call."""
    if tasks.constant_value == 1:
        return code.dim(tasks)
    threads = code.emit(CallExternOp("relax_max_threads", (), i32)).results[0]
    return code.minimum(code.dim(tasks), code.value(arith.IndexCastOp(threads, IndexType())))
