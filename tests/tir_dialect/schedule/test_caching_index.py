"""cache_index."""

from __future__ import annotations

import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import elementwise, m, n, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tests.tir_dialect.schedule.test_storage import allocations
from tir_dialect import te
from tir_dialect.ops.memory import AllocBufferOp, LoadOp
from tir_dialect.schedule import Schedule
from tir_dialect.schedule.primitives.caching import QUOTIENTS

A = te.placeholder((n + m + 1, m), "i32", "A")


def resize():
    """One index of two iterators, one of one, and one that is no expression of indices."""
    weight = te.placeholder((m,), "f32", "W")

    def value(i, j):
        mixed = te.cast(te.floor((te.cast(j, "f32") + 0.5) * 0.5), "i32")
        return A[i // 4 + j // 4, j // 2] + mixed * A[0, j // 2] + te.cast(weight[j], "i32") * mixed

    return te.create_prim_func([A, weight, te.compute((n, m), value, name="C")], name="resize")


def reversed_rows(b, ins, outs):
    (x,), (y,) = ins, outs
    with b.block("back", ("spatial", n, "i"), ("spatial", m, "j")) as (i, j):
        b.store(y, (i, m - 1 - j), x[i, j])


def loads_of(sch, name):
    return [op.buffer.name_hint for op in sch.get(sch.get_block(name)).walk() if isinstance(op, LoadOp)]


def test_what_follows_from_iterators_is_computed_in_front():
    def transform(sch):
        tables = sch.cache_index("C", "global")
        assert [block.name for block in tables] == ["index_0", "index_1", "index_2"]
        assert [[loop.name for loop in sch.get_loops(block)] for block in tables] == [["ax0", "ax1"], ["ax0"], ["ax0"]]

    sch = scheduled(resize(), transform)
    kinds = [str(op.buffer.type.dtype) for op in sch.func.walk() if isinstance(op, AllocBufferOp)]
    assert kinds == ["i64", "i64", "i32"]
    assert loads_of(sch, "C") == ["index0", "index1", "A", "index2", "A", "W"]


@pytest.mark.parametrize(("threshold", "count"), [(0, 3), (1, 2), (2, 0)])
def test_what_is_used_often_enough(threshold, count):
    sch = scheduled(resize(), lambda sch: sch.cache_index("C", "local", threshold))
    assert len(allocations(sch)) == count


def test_iterators_numbers_and_indices_of_what_is_written_stay():
    b = te.compute((n, m), lambda i, j: A[i, j] + te.cast(j, "i32"), name="B")
    sch = scheduled(te.create_prim_func([A, b]), lambda sch: sch.cache_index("B", "global"))
    assert not allocations(sch)
    (y,) = te.extern([((n, m), "i32")], [A], reversed_rows, name="Y")
    sch = scheduled(te.create_prim_func([A, y]), lambda sch: sch.cache_index("back", "global"))
    assert not allocations(sch)


def test_quotients_by_numbers_that_may_be_zero_stay():
    b = te.compute((n, m), lambda i, j: A[te.select(j > 0, i // te.maximum(j, 1), 0), j], name="B")
    sch = scheduled(te.create_prim_func([A, b]), lambda sch: sch.cache_index("B", "global"))
    assert any(isinstance(op, QUOTIENTS) for op in sch.get(sch.get_block("B")).walk())


def test_refusals():
    sch = Schedule(elementwise())
    outer = sch.blockize(sch.get_loops("B")[0])
    refuses(sch, 'expected a block without blocks inside, got "B_o"', "cache_index", outer, "global")
    refuses(sch, "expected a scope of", "cache_index", "B", "nowhere")


TILES = """
tir.prim_func @tiles[%n](%A: !tir.buffer<[4 * n], i32>, %B: !tir.buffer<[4 * n], i32>) {
  %c4 = arith.constant 4 : index
  %c1 = arith.constant 1 : index
  tir.for (%i) in (%n) {
    tir.block "B" (%v = spatial %i in %n) {
      %low = arith.muli %v, %c4 : index
      %high = arith.addi %low, %c4 : index
      %S = tir.match_buffer %A[%low to %high] : !tir.buffer<[4], i32>
      %T = tir.match_buffer %B[%low to %high] : !tir.buffer<[4], i32>
      tir.for (%j) in (%c4) {
        %x = tir.load %S[%j]
        tir.store %x, %T[%j]
      }
    }
  }
}
"""


def test_tables_of_indices_of_a_block_with_views():
    scheduled(parse_prim_func(TILES), lambda sch: sch.cache_index("B", "local"), ({"n": 0}, {"n": 3}))
