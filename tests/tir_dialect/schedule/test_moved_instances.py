"""A block that reverse_compute_at moves runs for the elements for which it ran before."""

from __future__ import annotations

import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import elementwise, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect.schedule import Schedule

PAIR = """
tir.prim_func @f[%n](%A: !tir.buffer<[n + 8], i32>, %B: !tir.buffer<[n + 8], i32>, %C: !tir.buffer<[n + 8], i32>) {{
  %more = tir.dim n + 8
  %first = arith.constant {0} : index
  tir.for (%i) in ({1}) {{
    tir.block "B" (%v = spatial %i in %more) {{
      %a = tir.load %A[%v]
      %w = arith.addi %v, %first : index
      tir.store %a, %B[%w]
    }}
  }}
  tir.for (%i) in ({2}) {{
    tir.block "C" (%v = spatial %i in %more) {{
      %b = tir.load %B[%v]
      tir.store %b, %C[%v]
    }}
  }}
}}
"""


@pytest.mark.parametrize(
    ("first", "produced", "consumed", "message"),
    [
        (0, "%n", "%more", 'block "C" runs for [0 to n + 8] of its iterators, in loop "i" it would for [0 to n]'),
        (0, "%more", "%n", 'block "C" runs for [0 to n] of its iterators, in loop "i" it would for [0 to n + 8]'),
        (4, "%n", "%n", 'block "C" runs for [0 to n] of its iterators, in loop "i" it would for [4 to n + 4]'),
    ],
)
def test_other_instances_are_refused(first, produced, consumed, message):
    sch = Schedule(parse_prim_func(PAIR.format(first, produced, consumed)))
    refuses(sch, message, "reverse_compute_at", "C", sch.get_loops("B")[0])


@pytest.mark.parametrize("count", ["%n", "%more"])
def test_the_same_instances(count):
    func = parse_prim_func(PAIR.format(0, count, count))
    scheduled(func, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0]))


def test_elements_of_which_a_condition_leaves_some_out():
    func = parse_prim_func(PAIR.format(0, "%more", "%more"))
    scheduled(func, lambda sch: sch.reverse_compute_at("C", sch.split(sch.get_loops("B")[0], [None, 3])[0]))
    sch = Schedule(parse_prim_func(PAIR.format(0, "%n", "%n")))
    loop = sch.split(sch.get_loops("B")[0], [None, 3])[0]
    refuses(sch, 'in loop "i0" it would for [0 to 3 * floordiv(n + 2, 3)]', "reverse_compute_at", "C", loop)


def test_fused_loops():
    def transform(sch):
        sch.fuse(*sch.get_loops("C"))
        sch.reverse_compute_at("C", sch.fuse(*sch.get_loops("B")))

    scheduled(elementwise(), transform)


BESIDE = """
tir.prim_func @f[%n](%A: !tir.buffer<[n], i32>, %C: !tir.buffer<[n], i32>, %D: !tir.buffer<[n], i32>) {
  %c1 = arith.constant 1 : index
  %B = tir.alloc_buffer : !tir.buffer<[n], i32>
  tir.for (%i) in (%n) {
    tir.block "B" (%v = spatial %i in %n) {
      %a = tir.load %A[%v]
      tir.store %a, %B[%v]
    }
  }
  tir.for (%i) in (%n) {
    tir.block "C" (%v = spatial %i in %n) {
      %b = tir.load %B[%v]
      %d = tir.load %D[%v]
      %c = arith.addi %b, %d : i32
      tir.store %c, %C[%v]
    }
    %last = arith.subi %n, %c1 : index
    %back = arith.subi %last, %i : index
    tir.block "E" (%v = spatial %back in %n) {
      %c = tir.load %C[%v]
      tir.store %c, %A[%v]
      tir.store %c, %D[%v]
    }
  }
}
"""


def test_what_runs_behind_a_block_in_a_loop_runs_before_its_next_iteration():
    sch = Schedule(parse_prim_func(BESIDE))
    refuses(sch, 'block "E" writes an input of block "B" before its result is used', "compute_inline", "B")
    message = 'block "E" writes an input of block "C" after the producer'
    refuses(sch, message, "reverse_compute_inline", "C")
    message = 'block "E" writes an input of block "C" before it'
    refuses(sch, message, "reverse_compute_at", "C", sch.get_loops("B")[0])
