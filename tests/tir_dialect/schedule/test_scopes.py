"""The kinds of memory that buffers are put into."""

from __future__ import annotations

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import matmul, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tests.tir_dialect.schedule.test_storage import allocations
from tir_dialect.schedule import Schedule


def test_scopes_are_those_that_there_are():
    sch = Schedule(matmul())
    message = 'expected a scope of global, local, or shared, which is global here, got "texture"'
    for primitive in ("cache_read", "cache_write", "set_scope"):
        refuses(sch, message, primitive, "C", 0, "texture")


def test_scopes_of_gpus_are_global():
    def transform(sch):
        copy = sch.cache_read("C", 0, "shared.dyn")
        assert copy.name == "A_shared_dyn"
        sch.compute_at(copy, sch.get_loops("C")[0])
        sch.cache_write("C", 0, "local")
        sch.set_scope("C", 0, "shared")

    sch = scheduled(matmul(), transform)
    assert len(allocations(sch)) == 2
    assert not any("scope" in type_ for type_ in allocations(sch).values())


LOCAL_INPUT = """
tir.prim_func @f[%n](%A: !tir.buffer<[n], i32>, %C: !tir.buffer<[n], i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %T = tir.alloc_buffer : !tir.buffer<[n], i32>
  tir.block "tile" (%vo = spatial %c0 in %c1) {
    %L = tir.alloc_buffer : !tir.buffer<[n], i32>
    tir.for (%i) in (%n) {
      tir.block "L" (%v = spatial %i in %n) {
        %a = tir.load %A[%v]
        tir.store %a, %L[%v]
      }
    }
    tir.for (%i) in (%n) {
      tir.block "T" (%v = spatial %i in %n) {
        %l = tir.load %L[%v]
        tir.store %l, %T[%v]
      }
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


def test_what_is_allocated_in_a_block_stays_there():
    func = parse_prim_func(LOCAL_INPUT)
    message = '"L" is local to where block "T" is, expected a value that block "C" can use, too'
    refuses(Schedule(func.clone()), message, "compute_inline", "T")
    scheduled(func, lambda sch: sch.compute_inline("L"))
