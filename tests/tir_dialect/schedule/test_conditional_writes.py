"""Blocks that leave iterations out: what they do not write there is no result of these iterations."""

from __future__ import annotations

import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect.schedule import Schedule

FIRST_ONLY = """
tir.prim_func @first_only[%n, %m](%A: !tir.buffer<[m], i32>, %C: !tir.buffer<[m], i32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %T = tir.alloc_buffer : !tir.buffer<[m], i32>
  tir.for (%i, %j) in (%c2, %m) {
    %q = arith.cmpi slt, %i, %c1 : index
    tir.block "T" (%u = spatial %i in %c1, %v = spatial %j in %m) where %q {
      %a = tir.load %A[%v]
      tir.store %a, %T[%v]
    }
  }
  tir.for (%j) in (%m) {
    tir.block "C" (%v = spatial %j in %m) {
      %t = tir.load %T[%v]
      tir.store %t, %C[%v]
    }
  }
}
"""

SIZES = tuple({"n": n, "m": m} for n in (0, 1, 3) for m in (0, 1, 4))


def test_consumer_of_what_some_iterations_write():
    sch = Schedule(parse_prim_func(FIRST_ONLY))
    for loop in sch.get_loops("T"):
        refuses(sch, 'writes scattered elements of buffer "T"', "reverse_compute_at", sch.get_block("C"), loop)
    scheduled(parse_prim_func(FIRST_ONLY), lambda sch: sch.cache_write("T", 0), SIZES)


def test_copies_of_what_no_iteration_writes():
    text = FIRST_ONLY.partition("  tir.for (%j)")[0] + "}\n"
    text = text.replace("(%c2, %m)", "(%c1 to %c2, %m)").replace("%T = tir.alloc_buffer : !tir.buffer<[m], i32>", "")
    sch = Schedule(parse_prim_func(text.replace("%C:", "%T:")))
    refuses(sch, 'writes scattered elements of buffer "T"', "cache_write", sch.get_block("T"), 0)
    refuses(sch, "may not store all elements that its iterators tell", "reindex", sch.get_block("T"), 0, "write")


IN_A_BLOCK = """
tir.prim_func @in_a_block[%n, %m](%A: !tir.buffer<[n, m], i32>, %C: !tir.buffer<[n], i32>) {
  %zero = arith.constant 0 : i32
  %T = tir.alloc_buffer : !tir.buffer<[n], i32>
  tir.for (%j, %i) in (%m, %n) {
    tir.block "outer" (%u = KIND %j in %m, %v = spatial %i in %n) {
      %x = tir.load %A[%v, %u]
      tir.block "T" (%w = spatial %v in %n) {
        tir.store %x, %T[%w]
      }
    }
  }
  tir.for (%i) in (%n) {
    tir.block "C" (%v = spatial %i in %n) {
      %t = tir.load %T[%v]
      %c = tir.load %C[%v]
      %s = arith.addi %t, %c : i32
      tir.store %t, %C[%v]
    }
  }
}
"""


@pytest.mark.parametrize("kind", ["scan", "opaque"])
def test_consumer_of_a_block_in_a_block_that_runs_in_order(kind):
    sch = Schedule(
        parse_prim_func(IN_A_BLOCK.replace("KIND", kind).replace("%c = tir.load %C[%v]", "%c = arith.constant 1 : i32"))
    )
    message = f'buffer "T" is complete only after loop "j", which drives a {kind} iterator of block "outer"'
    refuses(sch, message, "reverse_compute_at", sch.get_block("C"), sch.get_loops("outer")[0])
