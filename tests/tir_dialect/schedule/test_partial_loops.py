"""Loops that run over a part of a range: what a block leaves out stays as it was."""

from __future__ import annotations

import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect.schedule import Schedule

SUMS = """
tir.prim_func @f[%n](%A: !tir.buffer<[n + 2], i32>, %C: !tir.buffer<[n + 2], i32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %all = tir.dim n + 2
  %zero = arith.constant 0 : i32
  tir.for (%i, %r) in (%all, {0}) {{
    tir.block "C" (%vi = {1} %i in %all, %vr = reduce %r in %all) {{
      tir.init {{
        tir.store %zero, %C[%vi]
      }}
      %c = tir.load %C[%vi]
      %a = tir.load %A[%vr]
      %s = arith.addi %c, %a : i32
      tir.store %s, %C[%vi]
    }}
  }}
}}
"""

COPIES = {
    "cache_write": ("C", 0, "local"),
    "reindex": ("C", 0, "write"),
    "reindex_cache_write": ("C", 0, "local", "(i, r) -> (i)"),
}


@pytest.mark.parametrize("primitive", ["cache_write", "reindex"])
def test_a_reduction_without_its_first_instance_updates(primitive):
    sch = Schedule(parse_prim_func(SUMS.format("%c1 to %all", "spatial")))
    refuses(sch, 'block "C" updates buffer "C" without an init', primitive, *COPIES[primitive])


def test_a_scan_starts_its_first_element_only():
    sch = Schedule(parse_prim_func(SUMS.format("%all", "scan")))
    refuses(sch, 'block "C" updates buffer "C" without an init', "cache_write", "C", 0, "local")


@pytest.mark.parametrize("primitive", COPIES)
def test_a_reduction_with_its_first_instance(primitive):
    func = parse_prim_func(SUMS.format("%all", "spatial"))
    scheduled(func, lambda sch: getattr(sch, primitive)(*COPIES[primitive]))


@pytest.mark.parametrize("range", ["%n", "%c0 to %n"])
def test_a_reduction_over_a_part_may_not_store(range):
    """The domain has elements where the loop has none, so not even the init runs."""
    sch = Schedule(parse_prim_func(SUMS.format(range, "spatial")))
    refuses(sch, 'block "C" updates buffer "C" without an init', "cache_write", *COPIES["cache_write"])
    sch = Schedule(parse_prim_func(SUMS.format(range, "spatial")))
    refuses(sch, 'the loops may leave out the init of block "C"', "decompose_reduction", "C", sch.get_loops("C")[0])
    refuses(sch, 'the loops may leave out the init of block "C"', "rfactor", sch.get_loops("C")[1])


EMPTY = """
tir.prim_func @f[%n](%A: !tir.buffer<[n], i32>, %C: !tir.buffer<[n], i32>) {
  %c0 = arith.constant 0 : index
  tir.for (%i) in (%c0) {
    tir.block "C" (%v = spatial %i in %n) {
      %a = tir.load %A[%v]
      tir.store %a, %C[%v]
    }
  }
}
"""


def test_blockize_of_loops_without_iterations():
    sch = Schedule(parse_prim_func(EMPTY))
    refuses(sch, 'the loops inside have no iteration in which block "C" runs', "blockize", sch.get_loops("C")[0])


LOCAL = """
tir.prim_func @f[%n, %m](%A: !tir.buffer<[n, m], i32>, %C: !tir.buffer<[n, m], i32>) {
  tir.for (%i) in (%n) {
    %B = tir.alloc_buffer : !tir.buffer<[n, m], i32>
    tir.for (%j) in (%m) {
      tir.block "B" (%vi = spatial %i in %n, %vj = spatial %j in %m) {
        %a = tir.load %A[%vi, %vj]
        tir.store %a, %B[%vi, %vj]
      }
    }
    tir.for (%j) in (%m) {
      tir.block "C" (%vi = spatial %i in %n, %vj = spatial %j in %m) {
        %b = tir.load %B[%vi, %vj]
        tir.store %b, %C[%vi, %vj]
      }
    }
  }
}
"""


def test_copies_of_a_buffer_stay_where_it_is_allocated():
    scheduled(parse_prim_func(LOCAL), lambda sch: sch.cache_write("B", 0, "local", ["C"]))
    scheduled(parse_prim_func(LOCAL), lambda sch: sch.cache_read("C", 0, "local"))


TWICE = """
tir.prim_func @f[%n](%A: !tir.buffer<[n], i32>, %C: !tir.buffer<[n], i32>) {
  %B = tir.alloc_buffer : !tir.buffer<[n], i32>
  tir.for (%i) in (%n) {
    tir.block "B" (%v = spatial %i in %n) {
      %a = tir.load %A[%v]
      %b = arith.addi %a, %a : i32
      tir.store %b, %B[%v]
    }
  }
  tir.for (%i) in (%n) {
    tir.block "C" (%v = spatial %i in %n) {
      %one = tir.load %B[%v]
      %square = arith.muli %one, %one : i32
      %two = tir.load %B[%v]
      %sum = arith.addi %square, %two : i32
      tir.store %sum, %C[%v]
    }
  }
}
"""


def test_an_element_that_is_loaded_twice_is_computed_before_both():
    def transform(sch):
        sch.cache_read("C", 0, "local")
        sch.compute_inline("B")
        sch.compute_inline("B_local")

    scheduled(parse_prim_func(TWICE), transform)
    scheduled(parse_prim_func(TWICE), lambda sch: sch.compute_inline("B"))


REPEATED = """
tir.prim_func @f[%n, %m](%A: !tir.buffer<[m], i32>, %C: !tir.buffer<[m], i32>) {{
  %c3 = arith.constant 3 : index
  tir.for (%z, %i) in ({0}, %m) {{
    tir.block "C" (%v = spatial %i in %m) {{
      %a = tir.load %{1}[%v]
      %b = arith.addi %a, %a : i32
      tir.store %b, %C[%v]
    }}
  }}
}}
"""
STEPS = {
    **COPIES,
    "reindex_cache_write": ("C", 0, "local", "(i) -> (i)"),
    "transform_block_layout": ("C", "(i) -> (i)"),
}


@pytest.mark.parametrize(("count", "source"), [("%n", "A"), ("%m", "A"), ("%c3", "A"), ("%c3", "C")])
@pytest.mark.parametrize("step", STEPS)
def test_loops_that_may_be_empty_or_repeat_updates(step, count, source):
    func = parse_prim_func(REPEATED.format(count, source))
    if (count == "%c3" and source == "A") or (count == "%m" and step != "transform_block_layout"):
        scheduled(func, lambda sch: getattr(sch, step)(*STEPS[step]))
        return
    messages = {
        "cache_write": 'block "C" writes scattered elements' if source == "A" else "without an init",
        "transform_block_layout": 'loop "z" moves no iterator of block "C"',
    }
    message = "without an init" if source == "C" else 'block "C" may not store all elements'
    refuses(Schedule(func), messages.get(step, message), step, *STEPS[step])


DOWNWARDS = """
tir.prim_func @f[%n, %m](%A: !tir.buffer<[n, m], i32>, %C: !tir.buffer<[n], i32>) {
  %c1 = arith.constant 1 : index
  tir.for (%i, %r) in (%n, %m) {
    %last = arith.subi %m, %c1 : index
    %k = arith.subi %last, %r : index
    tir.block "C" (%vi = spatial %i in %n, %vr = reduce %k in %m) {
      tir.init {
        %zero = arith.constant 0 : i32
        tir.store %zero, %C[%vi]
      }
      %a = tir.load %A[%vi, %vr]
      %c = tir.load %C[%vi]
      %s = arith.addi %a, %c : i32
      tir.store %s, %C[%vi]
    }
  }
}
"""


def test_a_reduction_that_counts_down_is_not_reordered():
    """Its init, at the first value of the iterator, runs last."""
    message = 'loop "r" may count a reduce iterator of block "C" down, to its init'
    refuses(Schedule(parse_prim_func(DOWNWARDS)), message, "transform_block_layout", "C", "(i, r) -> (i, r)")


def test_tiles_of_a_loop_without_iterations():
    text = SUMS.format("%c1 to %all", "spatial").replace("(%i, %r)", "(%i, %r, %q)")
    text = text.replace("%c1 to %all)", "%c1 to %all, %c1 to %c1)").replace("%vr =", "%vq = reduce %q in %all, %vr =")
    scheduled(parse_prim_func(text), lambda sch: sch.tile(*sch.get_loops("C")[1:], [2, 2]))


AGAIN = """
tir.prim_func @f[%n](%A: !tir.buffer<[n], i32>, %C: !tir.buffer<[n], i32>) {{
  %c2 = arith.constant 2 : index
  %B = tir.alloc_buffer : !tir.buffer<[n], i32>
  tir.for (%i, %z) in (%n, {0}) {{
    tir.block "B" (%v = spatial %i in %n) {{
      %a = tir.load %A[%v]
      tir.store %a, %B[%v]
    }}
  }}
  tir.for (%i, %z) in (%n, {1}) {{
    tir.block "C" (%v = spatial %i in %n) {{
      %b = tir.load %B[%v]
      %c = tir.load %C[%v]
      %s = arith.addi %b, %c : i32
      tir.store %s, %C[%v]
    }}
  }}
}}
"""


@pytest.mark.parametrize(("counts", "name"), [(("%c1", "%c2"), "C"), (("%c2", "%c1"), "B")])
def test_updates_that_loops_repeat_are_not_moved(counts, name):
    text = AGAIN.replace("%c2 =", "%c1 = arith.constant 1 : index\n  %c2 =")
    sch = Schedule(parse_prim_func(text.format(*counts)))
    message = f'loop "z" may run instances of block "{name}" again, expected each once where elements are updated'
    refuses(sch, message, "reverse_compute_inline", "C")
    once = parse_prim_func(text.format("%c1", "%c1"))
    scheduled(once, lambda sch: sch.reverse_compute_inline("C"))
