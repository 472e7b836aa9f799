"""Buffers that are the same memory: views, parameters that may overlap, and addresses."""

from __future__ import annotations

import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect.schedule import Schedule

SIZES = tuple({"n": n, "m": m} for n in (0, 1, 3) for m in (1, 4))

CHAIN = """
tir.prim_func @chain[%n, %m](%A: !tir.buffer<[n, m], i32>, %C: !tir.buffer<[n * m], i32>) {
  %nm = tir.dim n * m
  %B = tir.alloc_buffer : !tir.buffer<[n * m], i32>
  %F = tir.flatten %A
  tir.for (%i) in (%nm) {
    tir.block "B" (%v = spatial %i in %nm) {
      %a = tir.load %F[%v]
      tir.store %a, %B[%v]
    }
  }
  tir.for (%i, %j) in (%n, %m) {
    tir.block "zero" (%v = spatial %i in %n, %w = spatial %j in %m) {
      %zero = arith.constant 0 : i32
      tir.store %zero, %A[%v, %w]
    }
  }
  tir.for (%i) in (%nm) {
    tir.block "C" (%v = spatial %i in %nm) {
      %b = tir.load %B[%v]
      tir.store %b, %C[%v]
    }
  }
}
"""


def test_views_of_inputs_and_outputs_of_inlined_blocks():
    sch = Schedule(parse_prim_func(CHAIN))
    refuses(sch, 'block "zero" writes an input of block "B"', "compute_inline", sch.get_block("B"))
    # the copy would be stored before the memory is set to zero
    other_way = CHAIN.replace("load %F[%v]", "load %C[%v]").replace("store %b, %C[%v]", "store %b, %F[%v]")
    sch = Schedule(parse_prim_func(other_way))
    refuses(sch, 'the output of block "C" is used before it', "reverse_compute_inline", sch.get_block("C"))
    scheduled(
        parse_prim_func(
            CHAIN.replace("store %zero, %A", "store %zero, %Z").replace(
                "%B = tir", "%Z = tir.alloc_buffer : !tir.buffer<[n, m], i32>\n  %B = tir"
            )
        ),
        lambda sch: sch.compute_inline("B"),
        SIZES,
    )


UPDATE = """
tir.prim_func @update[%n, %m](%A: !tir.buffer<[n, m], i32>, %C: !tir.buffer<[n, m], i32>) {
  %nm = tir.dim n * m
  %F = tir.flatten %C
  tir.for (%i) in (%nm) {
    tir.block "B" (%v = spatial %i in %nm) {
      %a = tir.load %F[%v]
      %s = arith.addi %a, %a : i32
      tir.store %s, %F[%v]
    }
  }
}
"""


@pytest.mark.parametrize("primitive", ["cache_read", "cache_write", "cache_inplace"])
def test_caches_do_not_stand_for_what_is_used_through_a_view(primitive):
    sch = Schedule(parse_prim_func(UPDATE))
    refuses(sch, 'block "B" uses buffer "C" through a view', primitive, sch.get_block("B"), 0, "local")


PADDING = """
tir.prim_func @padding[%n, %m](
  %A: !tir.buffer<[n, m], i32>, %C: !tir.buffer<[n, m], i32>, %D: !tir.buffer<[n * m], i32>
) {
  %nm = tir.dim n * m
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %F = tir.flatten %C
  %G = tir.flatten %A
  tir.for (%i) in (%nm) {
    tir.block "first" (%v = spatial %i in %nm) {
      %a = tir.load %C[%c0, %c0]
      tir.store %a, %D[%v]
    }
    tir.block "B" (%v = spatial %i in %nm) {
      %inside = arith.cmpi sge, %v, %c1 : index
      %x = tir.if %inside -> (i32) {
        %a = tir.load %G[%v]
        tir.yield %a
      } else {
        tir.yield %zero
      }
      tir.store %x, %F[%v]
    }
  }
}
"""


def test_padding_of_a_view():
    sch = Schedule(parse_prim_func(PADDING))
    message = 'block "first" may read elements of buffer "F" that were there before'
    refuses(sch, message, "decompose_padding", sch.get_block("B"), sch.get_loops("B")[0])


def test_padding_of_what_is_read():
    sch = Schedule(parse_prim_func(PADDING.replace("load %G[%v]", "load %F[%v]").replace("load %C[", "load %A[")))
    message = 'block "B" reads buffer "F", which it writes'
    refuses(sch, message, "decompose_padding", sch.get_block("B"), sch.get_loops("B")[0])


SUMS = """
tir.prim_func @sums[%n, %m](%A: !tir.buffer<[n, m], i32>, %C: !tir.buffer<[n], i32>) {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %F = tir.view %C : !tir.buffer<[n], i32>
  tir.for (%i, %j) in (%n, %m) {
    tir.block "C" (%v = spatial %i in %n, %w = reduce %j in %m) {
      tir.init {
        tir.store %zero, %F[%v]
      }
      %a = tir.load %A[%v, %w]
      %b = tir.load %F[%v]
      %s = arith.addi %a, %b : i32
      tir.store %s, %F[%v]
    }
  }
}
"""


def test_reductions_to_a_view():
    for text in (SUMS, SUMS.replace("load %F", "load %C")):
        for name, arguments in (
            ("rfactor", lambda sch: [sch.get_loops("C")[1]]),
            ("pad_einsum", lambda sch: ["C", [4, 1]]),
        ):
            sch = Schedule(parse_prim_func(text))
            if text is SUMS:
                scheduled(parse_prim_func(text), lambda sch, n=name, a=arguments: getattr(sch, n)(*a(sch)), SIZES)
            else:
                refuses(sch, "does not load and store each of its results once", name, *arguments(sch))
    # what is added is in the memory of the sums
    text = SUMS.replace("load %A[%v, %w]", "load %C[%c0]")
    sch = Schedule(parse_prim_func(text))
    refuses(sch, "uses the memory of its results in several ways", "rfactor", sch.get_loops("C")[1])


def test_parameters_that_may_overlap_and_addresses_leave_accesses_in_order():
    overlapping = CHAIN.replace("%C: !tir.buffer<[n * m], i32>)", "%C: !tir.buffer<[n * m], i32>) may_alias")
    address = CHAIN.replace("%nm =", "%c0 = arith.constant 0 : index\n  %p = tir.address_of %C[%c0]\n  %nm =", 1)
    for text, what in (
        (overlapping, "the parameters of @chain may overlap"),
        (address, "@chain takes the address of an element"),
    ):
        message = f"{what}, so accesses have to stay in their order"
        sch = Schedule(parse_prim_func(text.replace("store %zero, %A", "store %zero, %A")))
        refuses(sch, message, "reverse_compute_inline", sch.get_block("C"))
        refuses(sch, message, "parallel", sch.get_loops("C")[0])
        sch.unroll(sch.split(sch.get_loops("C")[0], [None, 4])[1])
        sch.annotate("B", "note", 1)
