"""What a consumer that moves to its producer may read there."""

from __future__ import annotations

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect.schedule import Schedule

DIAGONAL = """
tir.prim_func @diagonal[%n](%A: !tir.buffer<[n, n], i32>, %C: !tir.buffer<[n], i32>) {
  %B = tir.alloc_buffer : !tir.buffer<[n, n], i32>
  tir.for (%i, %j) in (%n, %n) {
    tir.block "B" (%v = spatial %i in %n, %w = spatial %j in %n) {
      %a = tir.load %A[%v, %w]
      tir.store %a, %B[%v, %w]
    }
  }
  tir.for (%i) in (%n) {
    tir.block "C" (%v = spatial %i in %n) {
      %b = tir.load %B[%v, %v]
      tir.store %b, %C[%v]
    }
  }
}
"""


def test_reverse_compute_at_of_a_diagonal():
    sizes = tuple({"n": n} for n in (0, 1, 4))
    scheduled(parse_prim_func(DIAGONAL), lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0]), sizes)
    sch = Schedule(parse_prim_func(DIAGONAL))
    message = 'block "C" reads elements of buffer "B" that other iterations of loop "j" write'
    refuses(sch, message, "reverse_compute_at", "C", sch.get_loops("B")[1])


PAIR = """
tir.prim_func @pair[%n](%A: !tir.buffer<[n], i32>, %C: !tir.buffer<[n], i32>) {
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
      tir.store %b, %C[%v]
    }
  }
}
"""


def test_reverse_compute_at_in_tiles_whose_size_is_a_quotient():
    """Of a symbolic number of elements: the tiles are empty only where there are none."""
    sizes = tuple({"n": n} for n in (0, 1, 3, 4, 5, 8, 11))
    for factors, at in (([4, None], 0), ([4, None], 1), ([2, 4, None], 0), ([2, 4, None], 1), ([2, None, 3], 1)):

        def schedule(sch: Schedule, factors: list[int | None] = factors, at: int = at) -> None:
            loops = sch.split(sch.get_loops("B")[0], factors)
            sch.reverse_compute_at("C", loops[at])

        scheduled(parse_prim_func(PAIR), schedule, sizes)


WRITTEN_BEHIND = """
tir.prim_func @written_behind[%n](%A: !tir.buffer<[n], i32>, %C: !tir.buffer<[n], i32>) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %T = tir.alloc_buffer : !tir.buffer<[n], i32>
  tir.for (%i) in (%n) {
    tir.block "T" (%v = spatial %i in %n) {
      %a = tir.load %A[%v]
      tir.store %a, %T[%v]
    }
  }
  tir.for (%i) in (%n) {
    tir.block "C" (%v = spatial %i in %n) {
      %t = tir.load %T[%v]
      tir.store %t, %C[%v]
    }
    tir.block "D" (%v = spatial %i in %n) {
      %last = arith.subi %n, %v : index
      %mirrored = arith.subi %last, %c1 : index
      tir.store %zero, %T[%mirrored]
    }
  }
}
"""


def test_reverse_compute_at_refuses_inputs_that_the_iteration_before_writes():
    sch = Schedule(parse_prim_func(WRITTEN_BEHIND))
    message = 'block "D" writes buffer "T" before block "C"'
    refuses(sch, message, "reverse_compute_at", "C", sch.get_loops("T")[0])
