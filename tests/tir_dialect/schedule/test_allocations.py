"""Where buffers are allocated after blocks have moved."""

from __future__ import annotations

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import home, scheduled

NEIGHBOURS = """
tir.prim_func @neighbours[%n](%A: !tir.buffer<[n], i32>, %D: !tir.buffer<[n], i32>, %C: !tir.buffer<[n], i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %T = tir.alloc_buffer : !tir.buffer<[n], i32>
  tir.for (%i) in (%n) {
    tir.block "T" (%v = spatial %i in %n) {
      %a = tir.load %A[%v]
      tir.store %a, %T[%v]
    }
    tir.block "D" (%v = spatial %i in %n) {
      %x = arith.subi %v, %c1 : index
      %before = arith.maxsi %x, %c0 : index
      %t = tir.load %T[%before]
      tir.store %t, %D[%v]
    }
  }
  tir.for (%i) in (%n) {
    tir.block "C" (%v = spatial %i in %n) {
      %t = tir.load %T[%v]
      tir.store %t, %C[%v]
    }
  }
}
"""


def test_a_buffer_that_another_iteration_has_written_stays_outside():
    sizes = tuple({"n": n} for n in (0, 1, 5))
    sch = scheduled(parse_prim_func(NEIGHBOURS), lambda sch: sch.reverse_compute_at("C", sch.get_loops("T")[0]), sizes)
    assert home(sch, "T") is None
    alone = parse_prim_func(NEIGHBOURS.replace("load %T[%before]", "load %A[%before]"))
    sch = scheduled(alone, lambda sch: sch.reverse_compute_at("C", sch.get_loops("T")[0]), sizes)
    assert home(sch, "T") == "i"


TWO_RESULTS = """
tir.prim_func @two_results[%n, %m](%A: !tir.buffer<[n, m], i32>, %C: !tir.buffer<[n], i32>) {
  %zero = arith.constant 0 : i32
  %S = tir.alloc_buffer : !tir.buffer<[n], i32>
  %T = tir.alloc_buffer : !tir.buffer<[n], i32>
  tir.for (%i, %j) in (%n, %m) {
    tir.block "S" (%v = spatial %i in %n, %w = reduce %j in %m) {
      tir.init {
        tir.store %zero, %S[%v]
        tir.store %zero, %T[%v]
      }
      %a = tir.load %A[%v, %w]
      %s = tir.load %S[%v]
      %t = tir.load %T[%v]
      %x = arith.addi %s, %a : i32
      %y = arith.maxsi %t, %a : i32
      tir.store %x, %S[%v]
      tir.store %y, %T[%v]
    }
  }
  tir.for (%i) in (%n) {
    tir.block "C" (%v = spatial %i in %n) {
      %s = tir.load %S[%v]
      tir.store %s, %C[%v]
    }
  }
}
"""


def test_a_result_that_nobody_reads_is_allocated_outside_of_its_block():
    sizes = tuple({"n": n, "m": m} for n in (0, 1, 5) for m in (0, 3))
    text = parse_prim_func(TWO_RESULTS)
    sch = scheduled(text, lambda sch: sch.compute_at("S", sch.get_loops("C")[0]), sizes)
    assert home(sch, "T") == "i"


PREFIXES = """
tir.prim_func @prefixes[%n, %m](%A: !tir.buffer<[n, m], i32>, %C: !tir.buffer<[m, n], i32>) {
  %zero = arith.constant 0 : i32
  %T = tir.alloc_buffer : !tir.buffer<[n], i32>
  tir.for (%r) in (%m) {
    tir.for (%i) in (%n) {
      tir.block "T" (%v = spatial %i in %n, %w = reduce %r in %m) {
        tir.init {
          tir.store %zero, %T[%v]
        }
        %t = tir.load %T[%v]
        %a = tir.load %A[%v, %w]
        %s = arith.addi %t, %a : i32
        tir.store %s, %T[%v]
      }
    }
    tir.for (%j) in (%n) {
      tir.block "C" (%u = spatial %r in %m, %v = spatial %j in %n) {
        %t = tir.load %T[%v]
        tir.store %t, %C[%u, %v]
      }
    }
  }
}
"""


def test_a_reduction_that_goes_on_in_the_next_iteration_keeps_its_buffer():
    sizes = tuple({"n": n, "m": m} for n in (0, 1, 5) for m in (0, 3))
    sch = scheduled(parse_prim_func(PREFIXES), lambda sch: sch.compute_at("T", sch.get_loops("C")[1]), sizes)
    assert home(sch, "T") is None
