"""rolling_buffer: a buffer that keeps what the next iterations of a loop read again."""

from __future__ import annotations

import pytest

from tests.tir_dialect.schedule.support import blur, elementwise, home, m, n, pools, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect import te
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


@pytest.mark.parametrize("tile", [1, 3, 4])
@pytest.mark.parametrize(("factor", "divisor"), [(1, 2), (2, 3), (3, 2)])
def test_windows_that_move_by_parts(factor, divisor, tile):
    """As of upsampling: some iterations need nothing new, or more than others."""
    x = te.placeholder((2 * n + 8, m), "i32", "X")
    b = te.compute((2 * n + 8, m), lambda i, j: x[i, j] * 3, name="B")

    def sums(i, j):
        first = (factor * i + 1) // divisor
        return b[first, j] + b[first + 2, j]

    c = te.compute((n, m), sums, name="C")

    def transform(sch):
        outer, _ = sch.split(sch.get_loops("C")[0], [None, tile])
        sch.compute_at("B", outer)
        sch.rolling_buffer("B", 0)

    sch = scheduled(te.create_prim_func([x, c]), transform, [{"n": 9, "m": 2}, {"n": 1, "m": 3}, {"n": 0, "m": 1}])
    assert home(sch, "B") is None


@pytest.mark.parametrize("tile", [1, 4])
def test_buffers_that_are_made_of_each_other(tile):
    """The last one first: what is stored into a window is another element in each iteration."""
    a = te.placeholder((n + 4, m), "i32", "A")
    b = te.compute((n + 4, m), lambda i, j: a[i, j] * 3, name="B")
    c = te.compute((n + 2, m), lambda i, j: b[i, j] + b[i + 2, j], name="C")
    d = te.compute((n, m), lambda i, j: c[i, j] + c[i + 2, j], name="D")
    func = te.create_prim_func([a, d])

    def computed_together(sch):
        outer, _ = sch.split(sch.get_loops("D")[0], [None, tile])
        sch.compute_at("C", outer)
        sch.compute_at("B", outer)

    def transform(sch):
        computed_together(sch)
        sch.rolling_buffer("C", 0)
        sch.rolling_buffer("B", 0)

    sch = scheduled(func, transform, [{"n": 9, "m": 2}, {"n": 1, "m": 3}, {"n": 0, "m": 1}])
    shapes = [op.buffer_type.shape[0].constant_value for op in sch.func.walk() if isinstance(op, AllocBufferOp)]
    assert sorted(shapes) == [tile + 2, tile + 4]
    sch = Schedule(func)
    computed_together(sch)
    sch.rolling_buffer("B", 0)
    refuses(sch, 'roll "B" after those that are made of it', "rolling_buffer", "C", 0)


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


def test_windows_with_gaps_are_refused():
    a = te.placeholder((n + 8, 4), "i32", "A")
    b = te.compute((n + 8, 4), lambda i, j: a[i, j] * 2, name="B")
    sch = Schedule(te.create_prim_func([a, te.compute((8, 4), lambda i, j: b[i, j] + 1, name="C")]))
    i, j = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, [None, 4])
    sch.reorder(i1, i0, j)
    sch.compute_at("B", i0)
    refuses(sch, 'no loop around block "B" needs elements of buffer "B" again', "rolling_buffer", "B", 0)
