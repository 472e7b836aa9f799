"""rolling_buffer: a buffer that keeps what the next iterations of a loop read again."""

from __future__ import annotations

import pytest

from tests.tir_dialect.schedule.support import blur, elementwise, home, pools, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.schedule import Schedule


@pytest.mark.parametrize(("program", "tile"), [(blur, (4, 8)), (pools, (4, 2)), (pools, (1, 4))])
def test_rolling_buffer(program, tile):
    def transform(sch):
        i, j, *_ = sch.get_loops("C")
        loop = sch.tile(i, j, tile)[1]
        sch.compute_at("B", loop)
        sch.rolling_buffer("B", 0)
        sch.vectorize(sch.get_loops("B")[3])

    sch = scheduled(program(), transform, [{"n": 9, "m": 5}, {"n": 4, "m": 7}, {"n": 0, "m": 1}])
    assert home(sch, "B") is None
    (allocation,) = (op for op in sch.func.walk() if isinstance(op, AllocBufferOp))
    assert allocation.buffer_type.shape[0].constant_value == tile[0] + 2
    message = 'several iterations of loop "i0" reduce to an element of buffer "B"'
    if program is pools:
        refuses(sch, message, "decompose_reduction", "B", sch.get_loops("B")[0])
    refuses(sch, "they share elements of buffer", "parallel", sch.get_loops("B")[0])


def test_rolling_buffer_refusals():
    sch = Schedule(elementwise())
    refuses(sch, 'no loop around block "B" needs elements', "rolling_buffer", "B", 0)
    refuses(sch, 'buffer "C" is a parameter or a view', "rolling_buffer", "C", 0)
    sch = Schedule(blur())
    i, _ = sch.get_loops("C")
    loop, _ = sch.split(i, [None, 4])
    sch.compute_at("B", loop)
    sch.parallel(loop)
    refuses(sch, 'expected a serial loop, got parallel loop "i0"', "rolling_buffer", "B", 0)
