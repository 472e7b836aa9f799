"""How much work a thread should have, and how units of work are shared out."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, i32
from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.code import Code
from tir_dialect.dims import Dim
from tir_dialect.ops.calls import CallExternOp
from tir_dialect.ops.loops import LoopKind


@contextmanager
def shared_units(code: Code, units: Dim, tasks: Dim, whole: bool = False) -> Generator[tuple[SSAValue, SSAValue]]:
    """What a task does with its units, which are the numbers from the first value to before the second.

    With `whole` there are no more tasks than threads: what lies side by side in memory stays together.
    """
    alone = tasks.constant_value == 1
    count, all_units = code.dim(tasks), code.dim(units)
    if whole and not alone:
        count = code.minimum(count, _threads(code))
    with code.loop(count, "task", kind=LoopKind.SERIAL if alone else LoopKind.PARALLEL) as task:
        lower = code.divide(code.mul(task, all_units), count)
        upper = code.divide(code.mul(code.add(task, 1), all_units), count)
        yield lower, upper


def _threads(code: Code) -> SSAValue:
    """How many threads there are in a call."""
    threads = code.emit(CallExternOp("relax_max_threads", (), i32)).results[0]
    return code.value(arith.IndexCastOp(threads, IndexType()))
