"""Blocks that declare what they read, and of which an input is inlined."""

from __future__ import annotations

import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect.analysis.regions import block_regions
from tir_dialect.schedule import Schedule

PROGRAM = """
tir.prim_func @f[%n](%X: !tir.buffer<[n], i32>, %Y: !tir.buffer<[n], i32>, %Z: !tir.buffer<[n], i32>) {{
  %A = tir.alloc_buffer : !tir.buffer<[n], i32>
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  tir.for (%i) in (%n) {{
    tir.block "A" (%v = spatial %i in %n) {{
      %x = tir.load %X[%v]
      %a = arith.addi %x, %x : i32
      tir.store %a, %A[%v]
    }}
  }}
  tir.for (%i) in (%n) {{
    tir.block "C" (%v = spatial %i in %n) {{
      tir.reads %Y[%zero to %n]
      tir.reads %A[%v]
      tir.writes %Z[%v]
      {0}
      %a = tir.load %A[%v]
      %y = tir.load %Y[%v]
      %z = arith.muli %a, %y : i32
      tir.store %z, %Z[%v]
      {1}
    }}
  }}
}}
"""


@pytest.mark.parametrize("around", [("", ""), ("tir.for (%k) in (%two) {", "}")])
def test_compute_inline(around):
    sch = scheduled(parse_prim_func(PROGRAM.format(*around)), lambda sch: sch.compute_inline("A"))
    reads = {region.buffer.name_hint: region for region in block_regions(sch.get_block("C").op).reads}
    assert sorted(reads) == ["X", "Y"]
    assert [str(axis.extent) for axis in reads["X"].axes] == ["1"]


def test_an_element_that_only_a_loop_knows():
    text = PROGRAM.replace("%a = tir.load %A[%v]", "%a = tir.load %A[%k]").replace(
        "reads %A[%v]", "reads %A[%zero to %n]"
    )
    func = parse_prim_func(text.format("tir.for (%k) in (%n) {", "}"))
    sch = scheduled(func, lambda sch: sch.compute_inline("A"))
    (region,) = (each for each in block_regions(sch.get_block("C").op).reads if each.buffer.name_hint == "X")
    assert [str(axis.extent) for axis in region.axes] == ["n"]


def test_more_is_declared_than_is_loaded():
    text = PROGRAM.format("", "").replace("reads %A[%v]", "reads %A[%zero to %n]")
    message = 'block "C" declares to read more of buffer "A" than it loads, expected the elements of its loads'
    refuses(Schedule(parse_prim_func(text)), message, "compute_inline", "A")


ONLY_READS = """
tir.prim_func @f[%n](%X: !tir.buffer<[n], i32>, %Y: !tir.buffer<[n], i32>, %Z: !tir.buffer<[1], i32>) {{
  %zero = arith.constant 0 : index
  tir.for (%i) in (%n) {{
    tir.block "B" (%v = {0} %i in %n) {{
      tir.reads %X[%v]
      %x = tir.load %X[%v]
      tir.store %x, {1}
    }}
  }}
}}
"""
"""A block that declares what it reads, but not what it writes."""


def test_what_is_written_is_seen_where_only_reads_are_declared():
    sch = Schedule(parse_prim_func(ONLY_READS.format("opaque", "%Z[%zero]")))
    refuses(sch, 'they share elements of buffer "Z"', "bind", sch.get_loops("B")[0], "threadIdx.x")
    scheduled(parse_prim_func(ONLY_READS.format("spatial", "%Y[%v]")), lambda sch: sch.cache_write("B", 0, "local"))
