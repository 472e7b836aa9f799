"""For which values of its iterators a block runs, how often, and in which order."""

from __future__ import annotations

import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import NOT_EMPTY, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect import te
from tir_dialect.schedule import Schedule

TRIANGLE = """
tir.prim_func @f[%n](%A: !tir.buffer<[n, n], i32>, %C: !tir.buffer<[n, n], i32>) {
  %c1 = arith.constant 1 : index
  tir.for (%i) in (%n) {
    %end = arith.addi %i, %c1 : index
    tir.for (%j) in (%end) {
      tir.block "C" (%v = spatial %i in %n, %w = spatial %j in %n) {
        %a = tir.load %A[%v, %w]
        tir.store %a, %C[%v, %w]
      }
    }
  }
}
"""
GAPS = """
tir.prim_func @f[%n](%A: !tir.buffer<[4 * n], i32>, %C: !tir.buffer<[4 * n], i32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %all = tir.dim 4 * n
  tir.for (%i) in (%n) {
    tir.for (%j) in (%c1 to %c4) {
      %x = arith.muli %i, %c4 : index
      %y = arith.addi %x, %j : index
      tir.block "C" (%v = spatial %y in %all) {
        %a = tir.load %A[%v]
        tir.store %a, %C[%v]
      }
    }
  }
}
"""
OFFSET = """
tir.prim_func @f[%n, %m](%A: !tir.buffer<[n + 1], i32>, %C: !tir.buffer<[n + 1], i32>) {
  %c1 = arith.constant 1 : index
  %all = tir.dim n + 1
  %both = tir.dim m * n
  tir.for (%i) in (%both) {
    %x = arith.divui %i, %m : index
    %y = arith.addi %x, %c1 : index
    tir.block "C" (%v = spatial %y in %all) {
      %a = tir.load %A[%v]
      tir.store %a, %C[%v]
    }
  }
}
"""


REPEATED = """
tir.prim_func @f[%n, %m in [1, _]](%A: !tir.buffer<[m], i32>, %C: !tir.buffer<[m], i32>) {
  %both = tir.dim m * n
  tir.for (%i) in (%both) {
    %x = arith.remui %i, %m : index
    tir.block "C" (%v = spatial %x in %m) {
      %a = tir.load %A[%v]
      tir.store %a, %C[%v]
    }
  }
}
"""
"""An element for each iteration of an inner loop that is fused with one that may have none; and the other way round."""
EACH = REPEATED.replace("remui %i, %m", "divui %i, %n").replace("%n, %m in [1, _]", "%n, %m")


@pytest.mark.parametrize("text", [TRIANGLE, GAPS, OFFSET, REPEATED, EACH])
def test_loops_that_leave_out_elements_of_their_box(text):
    sch = Schedule(parse_prim_func(text))
    count = len(sch.get_block("C").op.iterators)
    same = "(i, j) -> (i, j)" if count == 2 else "(i) -> (i)"
    refuses(sch, 'block "C" writes scattered elements', "cache_write", "C", 0, "local")
    refuses(sch, "do not take its iterators through all values", "reindex", "C", 0, "write")
    refuses(sch, "do not reach all values", "transform_block_layout", "C", same)


BOUNDED = """
tir.prim_func @f[%n](%A: !tir.buffer<[n], i32>, %C: !tir.buffer<[n + 2], i32>) {{
  %c1 = arith.constant 1 : index
  %more = tir.dim n + 2
  tir.for (%i) in (%more) {{
    %c = arith.cmpi slt, %i, %n : index
    tir.block "C" (%v = spatial %i in %n) where %c {{
      %a = tir.load %A[%v]
      %w = {0} : index
      tir.store %a, %C[%w]
    }}
  }}
}}
"""


def test_a_condition_leaves_out_elements_of_a_buffer():
    func = parse_prim_func(BOUNDED.format("arith.muli %v, %c1"))
    scheduled(func, lambda sch: sch.cache_write("C", 0, "local"))
    func = parse_prim_func(BOUNDED.format("arith.subi %n, %v"))
    refuses(Schedule(func), "writes scattered elements", "cache_write", "C", 0, "local")


SUM = """
tir.prim_func @f[%n, %m](%A: !tir.buffer<[n, m + 2], i32>, %D: !tir.buffer<[n], i32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0 : i32
  %all = tir.dim m + 2
  %C = tir.alloc_buffer : !tir.buffer<[n], i32>
  tir.for (%i, %r) in (%n, {0}) {{
    %last = arith.subi %all, %c1 : index
    %back = arith.subi %last, %r : index
    %half = arith.floordivsi %r, %c2 : index
    tir.block "C" (%v = spatial %i in %n, %w = reduce {1} in %all) {{
      tir.init {{
        tir.store %zero, %C[%v]
      }}
      %a = tir.load %A[%v, %w]
      %c = tir.load %C[%v]
      %s = arith.addi %a, %c : i32
      tir.store %s, %C[%v]
    }}
  }}
  tir.for (%i) in (%n) {{
    tir.block "D" (%v = spatial %i in %n) {{
      %c = tir.load %C[%v]
      tir.store %c, %D[%v]
    }}
  }}
}}
"""


def moved(sch):
    sch.compute_at("C", sch.get_loops("D")[0])


def test_compute_at_of_a_reduction_over_a_part():
    scheduled(parse_prim_func(SUM.format("%m", "%r")), moved, NOT_EMPTY)
    scheduled(parse_prim_func(SUM.format("%all", "%r")), moved)


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        ("%back", 'loop "r" may count a reduce iterator of block "C" down, to its init'),
        ("%half", 'the loops of block "C" do not take its iterators through all values'),
        ("%c0", 'several iterations of loop "r" may run the same instance of block "C"'),
    ],
)
def test_compute_at_of_a_reduction_in_another_order(binding, message):
    sch = Schedule(parse_prim_func(SUM.format("%all", binding)))
    refuses(sch, message, "compute_at", "C", sch.get_loops("D")[0])


def test_loops_that_repeat_a_reduction():
    sch = Schedule(parse_prim_func(SUM.format("%all", "%c0")))
    refuses(sch, 'loop "r" may repeat the init of block "C"', "decompose_reduction", "C", sch.get_loops("C")[0])
    sch = Schedule(parse_prim_func(SUM.format("%all", "%half")))
    outer, _ = sch.split(sch.get_loops("C")[1], [None, 2])
    refuses(sch, 'loop "r1" may repeat the init of block "C"', "rfactor", outer)
    refuses(sch, 'several iterations of loop "r1" may run the same instance', "blockize", outer)


REPEATED = """
tir.prim_func @f[%n, %m](%A: !tir.buffer<[n, m], i32>, %C: !tir.buffer<[n], i32>) {
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0 : i32
  tir.for (%i, %z, %r) in (%n, %c3, %m) {
    tir.block "C" (%v = spatial %i in %n, %w = reduce %r in %m) {
      tir.init {
        tir.store %zero, %C[%v]
      }
      %a = tir.load %A[%v, %w]
      %c = tir.load %C[%v]
      %s = arith.addi %a, %c : i32
      tir.store %s, %C[%v]
    }
  }
}
"""


def test_reorder_of_a_loop_that_repeats_a_reduction():
    sch = Schedule(parse_prim_func(REPEATED))
    _, again, inner = sch.get_loops("C")
    refuses(sch, 'several iterations of loop "z" may run the same instance', "reorder", inner, again)
    refuses(sch, 'several iterations of loop "z"', "transform_block_layout", "C", "(i, r) -> (i, r)")


@pytest.mark.parametrize("binding", ["%back", "%half", "%c0"])
def test_reorder_that_keeps_the_order_of_a_reduction(binding):
    func = parse_prim_func(SUM.format("%all", binding))
    scheduled(func, lambda sch: sch.reorder(*reversed(sch.get_loops("C"))))


def test_the_init_of_a_scan_runs_at_its_start():
    func = parse_prim_func(SUM.replace("%v = spatial", "%v = scan").format("%all", "%r"))
    scheduled(func, lambda sch: sch.decompose_reduction("C", sch.get_loops("C")[0]), NOT_EMPTY[:1])
    scheduled(func, lambda sch: sch.blockize(sch.get_loops("C")[1]), NOT_EMPTY[:1])


STEPS = """
tir.prim_func @f[%n, %m](%A: !tir.buffer<[n, m], i32>, %C: !tir.buffer<[n], i32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %half = tir.dim floordiv(m + 1, 2)
  %zero = arith.constant 0 : i32
  tir.for (%i, %s, %r) in (%n, %half, %c2) {
    %last = arith.subi %half, %c1 : index
    %back = arith.subi %last, %s : index
    %x = arith.muli %back, %c2 : index
    %k = arith.addi %x, %r : index
    %c = arith.cmpi slt, %k, %m : index
    tir.block "C" (%v = spatial %i in %n, %w = reduce %k in %m) where %c {
      tir.init {
        tir.store %zero, %C[%v]
      }
      %a = tir.load %A[%v, %w]
      %d = tir.load %C[%v]
      %e = arith.addi %a, %d : i32
      tir.store %e, %C[%v]
    }
  }
}
"""


def test_reorder_of_a_reduction_that_counts_down_in_steps():
    sch = Schedule(parse_prim_func(STEPS))
    _, outer, inner = sch.get_loops("C")
    refuses(sch, 'loop "s" may count a reduce iterator of block "C" down', "reorder", inner, outer)


CONSUMER = """
tir.prim_func @f[%n, %m](%A: !tir.buffer<[n, m], i32>, %D: !tir.buffer<[n], i32>) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %B = tir.alloc_buffer : !tir.buffer<[n, m], i32>
  tir.for (%i, %j) in (%n, %m) {
    tir.block "B" (%v = spatial %i in %n, %w = spatial %j in %m) {
      %a = tir.load %A[%v, %w]
      tir.store %a, %B[%v, %w]
    }
  }
  tir.for (%i, %r) in (%n, %m) {
    %last = arith.subi %m, %c1 : index
    %back = arith.subi %last, %r : index
    tir.block "D" (%v = spatial %i in %n, %w = reduce %back in %m) {
      tir.init {
        tir.store %zero, %D[%v]
      }
      %b = tir.load %B[%v, %w]
      %d = tir.load %D[%v]
      %e = arith.addi %b, %d : i32
      tir.store %e, %D[%v]
    }
  }
}
"""


def test_reverse_compute_at_of_a_reduction_that_counts_down():
    sch = Schedule(parse_prim_func(CONSUMER))
    message = 'loop "r" may count a reduce iterator of block "D" down'
    refuses(sch, message, "reverse_compute_at", "D", sch.get_loops("B")[0])


OUTSIDE = """
tir.prim_func @f[%n, %m](%A: !tir.buffer<[n], i32>, %C: !tir.buffer<[m], i32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %B = tir.alloc_buffer : !tir.buffer<[m], i32>
  tir.for (%z, %i) in (%n, %m) {
    tir.block "B" (%v = spatial %i in %m) {
      %a = tir.load %A[%v]
      tir.store %a, %B[%v]
    }
  }
  tir.for (%i) in (%m) {
    tir.block "C" (%v = spatial %i in %m) {
      %none = arith.cmpi eq, %n, %c0 : index
      %b = tir.load %B[%v]
      %c = arith.select %none, %zero, %b : i32
      tir.store %c, %C[%v]
    }
  }
}
"""


def test_elements_that_are_not_there_where_a_block_does_not_run():
    """Without `n`, `A` is empty, and block "B" does not run."""
    sch = Schedule(parse_prim_func(OUTSIDE))
    message = 'block "B" would run for elements for which it may not run now, and may access buffer "A" outside'
    refuses(sch, message, "reindex", "B", 0, "read")
    refuses(sch, message, "reindex_cache_read", "B", 0, "local", "(i) -> (i)")
    refuses(sch, message, "compute_inline", "B")
    refuses(sch, message, "compute_at", "B", sch.get_loops("C")[0])


def test_a_fused_reduction_over_nothing_runs_its_init():
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), "i32", "A")
    r, s = te.reduce_axis(n, "r"), te.reduce_axis(m, "s")
    func = te.create_prim_func([a, te.compute((), lambda: te.sum(a[r, s], [r, s]), name="B")])
    scheduled(func, lambda sch: sch.split(sch.fuse(*sch.get_loops("B")), [None, 8]))


def test_fuse_of_a_loop_without_iterations():
    sch = Schedule(parse_prim_func(GAPS.replace("%c1 to %c4", "%c4 to %c4")))
    refuses(sch, 'loop "j" has no iteration', "fuse", *sch.get_loops("C"))


def test_transform_layout_of_what_a_block_without_instances_stores():
    text = """
    tir.prim_func @f(%A: !tir.buffer<[4, 3], i32>) {
      %c0 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %zero = arith.constant 0 : i32
      tir.for (%i, %j) in (%c0, %c3) {
        tir.block "A" (%v = spatial %i in %c0, %w = spatial %j in %c3) {
          tir.store %zero, %A[%v, %w]
        }
      }
    }
    """
    sch = Schedule(parse_prim_func(text))
    sch.transform_layout("A", "A", "(i, j) -> (floordiv(i, 2), j, mod(i, 2))")
    sch.func.verify()


LOCAL = """
tir.prim_func @f[%n, %m](%A: !tir.buffer<[n, m], i32>, %C: !tir.buffer<[n], i32>, %D: !tir.buffer<[n], i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %B = tir.alloc_buffer : !tir.buffer<[n, m], i32>
  %S = tir.alloc_buffer : !tir.buffer<[n], i32>
  tir.for (%i, %j) in (%n, %m) {
    tir.block "B" (%v = spatial %i in %n, %w = spatial %j in %m) {
      %a = tir.load %A[%v, %w]
      tir.store %a, %B[%v, %w]
    }
  }
  tir.for (%i, %r) in (%n, %m) {
    tir.block "S" (%v = spatial %i in %n, %w = reduce %r in %m) {
      tir.init {
        %x = arith.subi %n, %v : index
        %y = arith.subi %x, %c1 : index
        %c = tir.load %C[%y]
        tir.store %c, %S[%v]
      }
      %b = tir.load %B[%v, %w]
      %s = tir.load %S[%v]
      %t = arith.addi %b, %s : i32
      tir.store %t, %S[%v]
    }
  }
}
"""


def test_reverse_compute_at_of_a_reduction_into_memory_of_its_own():
    scheduled(parse_prim_func(LOCAL), lambda sch: sch.reverse_compute_at("S", sch.get_loops("B")[0]))


def test_reindex_of_what_an_init_loads():
    func = parse_prim_func(LOCAL.replace("%S[", "%D["))
    scheduled(func, lambda sch: sch.reindex("S", 0, "read"))
