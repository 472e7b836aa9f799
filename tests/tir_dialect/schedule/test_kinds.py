"""Parallel, vectorised, unrolled and bound loops; annotations."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ArrayAttr, BoolAttr, FloatAttr, IntegerAttr, StringAttr, f64, i64

from tests.tir_dialect.schedule.support import elementwise, m, matmul, n, row_sum, scan, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect import te
from tir_dialect.schedule import Schedule
from tir_dialect.types import LoopKind


def kind(sch, name, position):
    return sch.get_loops(sch.get_block(name))[position].op.kind.data


def test_parallel_rows():
    sch = scheduled(matmul(), lambda sch: sch.parallel(sch.get_loops(sch.get_block("C"))[0]))
    assert kind(sch, "C", 0) is LoopKind.PARALLEL


@pytest.mark.parametrize("position", [0, 1, 2, 3])
def test_parallel_parts_of_a_split(position):
    def transform(sch):
        i, j, _ = sch.get_loops(sch.get_block("C"))
        nest = [*sch.split(i, [None, 4]), *sch.split(j, [None, 8])]
        sch.parallel(nest[position])

    scheduled(matmul(), transform)


def test_parallel_part_of_a_fused_and_split_loop():
    def transform(sch):
        i, j = sch.get_loops(sch.get_block("B"))
        outer, _ = sch.split(sch.fuse(i, j), [None, 16])
        sch.parallel(outer)

    scheduled(elementwise(), transform)


def test_reductions_are_not_parallel():
    sch = Schedule(matmul())
    _, _, r = sch.get_loops(sch.get_block("C"))
    refuses(sch, 'the iterations of loop "r" are not independent: they share elements of buffer "C"', "parallel", r)
    r0, r1 = sch.split(r, [None, 4])
    refuses(sch, "are not independent", "vectorize", r1)
    refuses(sch, "are not independent", "bind", r0, "threadIdx.x")


def test_scans_are_not_parallel():
    sch = Schedule(scan())
    i, j = sch.get_loops(sch.get_block("scan"))
    refuses(sch, 'the iterations of loop "j" are not independent: they share elements of buffer "Y"', "parallel", j)
    sch.parallel(i)


def test_loop_that_no_index_depends_on():
    sch = Schedule(row_sum())
    unit = sch.add_unit_loop(sch.get_block("B"))
    sch.parallel(unit)


def test_declared_independence_of_a_scatter():
    a, at = te.placeholder((n,), "i32", "A"), te.placeholder((n,), "i32", "at")

    def body(b, ins, outs):
        (x, where), (y,) = ins, outs
        with b.block("scatter", ("spatial", n, "i")) as (i,):
            b.store(y, where[i], x[i])

    (y,) = te.extern([((m,), "i32")], [a, at], body)
    func = te.create_prim_func([a, at, y])
    sch = Schedule(func)
    i0, i1 = sch.split(sch.get_loops(sch.get_block("scatter"))[0], [None, 4])
    sch.parallel(i0)
    sch.vectorize(i1)


def test_vectorize_and_unroll_need_constant_extents():
    def transform(sch):
        i, j, _ = sch.get_loops(sch.get_block("C"))
        refuses(sch, 'expected a loop of constant extent, got "j" of extent m; split it first', "vectorize", j)
        refuses(sch, 'expected a loop of constant extent, got "i" of extent n; split it first', "unroll", i)
        _, j1 = sch.split(j, [None, 8])
        _, i1 = sch.split(i, [None, 4])
        sch.vectorize(j1)
        sch.vectorize(i1)
        sch.unroll(i1)
        refuses(sch, 'expected a serial loop, got unrolled loop "i1"', "split", i1, [2, 2])

    sch = scheduled(matmul(), transform)
    assert kind(sch, "C", 3) is LoopKind.VECTORIZED
    assert kind(sch, "C", 1) is LoopKind.UNROLLED


def test_kinds_replace_each_other():
    def transform(sch):
        i, j = sch.get_loops(sch.get_block("B"))
        _, j1 = sch.split(j, [None, 4])
        sch.bind(i, "blockIdx.x")
        sch.bind(j1, "threadIdx.x")
        sch.parallel(i)
        sch.unroll(j1)

    sch = scheduled(elementwise(), transform)
    assert kind(sch, "B", 0) is LoopKind.PARALLEL
    assert kind(sch, "B", 2) is LoopKind.UNROLLED
    assert "blockIdx" not in str(sch.func)


def test_bind():
    def transform(sch):
        i, j = sch.get_loops(sch.get_block("B"))
        refuses(sch, 'got "thread.x"', "bind", i, "thread.x")
        sch.bind(i, "blockIdx.x")
        sch.bind(j, "threadIdx.x")

    sch = scheduled(elementwise(), transform)
    assert sch.get_loops(sch.get_block("B"))[1].op.thread_tag == StringAttr("threadIdx.x")


def test_annotations():
    def transform(sch):
        block = sch.get_block("B")
        loop = sch.get_loops(block)[0]
        for key, value in (("truth", True), ("number", 4), ("ratio", 0.5), ("text", "a"), ("list", [1, "b"])):
            sch.annotate(block, key, value)
        sch.annotate(loop, "number", 4)
        sch.annotate(loop, "number", 5)
        sch.annotate(loop, "gone", 5)
        sch.unannotate(loop, "gone")
        refuses(sch, '"i" has no annotation "gone"', "unannotate", loop, "gone")
        refuses(sch, 'annotate: expected "ann_key" to be str, got 3', "annotate", loop, 3, 3)
        refuses(sch, "expected truth values, numbers or strings, got object", "annotate", loop, "bad", object())

    sch = scheduled(elementwise(), transform)
    block = sch.get_block("B")
    assert block.op.annotations.data == {
        "truth": BoolAttr.from_bool(True),
        "number": IntegerAttr(4, i64),
        "ratio": FloatAttr(0.5, f64),
        "text": StringAttr("a"),
        "list": ArrayAttr([IntegerAttr(1, i64), StringAttr("b")]),
    }
    assert sch.get_loops(block)[0].op.annotations.data == {"number": IntegerAttr(5, i64)}
