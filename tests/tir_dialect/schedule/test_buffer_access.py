"""annotate_buffer_access."""

from __future__ import annotations

from tests.tir_dialect.schedule.support import elementwise, m, n, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect import te
from tir_dialect.schedule import Schedule


def gathered():
    """Rows that come from memory, at most one away."""
    x, at = te.placeholder((n + 1, m), "i32", "X"), te.placeholder((n,), "i32", "at")
    b = te.compute((n + 1, m), lambda i, j: x[i, j] + 1, name="B")
    c = te.compute((n, m), lambda i, j: b[te.cast(te.maximum(te.minimum(at[i], 1), 0), "index") + i, j], name="C")
    return te.create_prim_func([x, at, c], name="gathered")


def test_a_region_that_cannot_be_inferred():
    def transform(sch):
        i, _ = sch.get_loops("C")
        sch.annotate_buffer_access("C", "B", "read", lambda vi, vj: ((vi, vi + 2), vj))
        sch.compute_at("B", i)

    sch = scheduled(gathered(), transform, [{"n": 3, "m": 2}])
    assert [sch.extent(loop.op).constant_value for loop in sch.get_loops("B")[1:]] == [2, None]


def test_annotations_take_each_others_place():
    def transform(sch):
        sch.annotate_buffer_access("B", 0, "write", "(vi, vj) -> (vi, vi + 1, 0, m)")
        sch.annotate_buffer_access("B", 0, "write", lambda *v: v)

    sch = scheduled(elementwise(), transform, [{"n": 3, "m": 2}])
    assert str(sch.func).count("tir.writes %B[%vi, %vj]") == str(sch.func).count("tir.writes") == 1


def test_annotation_refusals():
    sch = Schedule(elementwise())
    message = 'expected a region of buffer "A" with vj, which block "B" reads, got vj + 1'
    refuses(sch, message, "annotate_buffer_access", "B", "A", "read", lambda vi, vj: (vi, vj + 1))
    message = "expected 4 ends of ranges from 2 iterators, got 2 from 1"
    refuses(sch, message, "annotate_buffer_access", "B", "A", "read", lambda vi: (vi,))
    refuses(sch, 'expected "read" or "write", got "both"', "annotate_buffer_access", "B", "A", "both", "(i) -> (i)")
    message = "expected a function that gives a list of pairs of ends, or points, got 3"
    refuses(sch, message, "annotate_buffer_access", "B", "A", "read", lambda i, j: 3)
    refuses(sch, 'uses "q"', "annotate_buffer_access", "B", "A", "read", "(i, j) -> (q, i + 1, j, j + 1)")
