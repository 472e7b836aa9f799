"""Blocks are moved into loops that are parallel, vectorized, unrolled or bound already."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import NOT_EMPTY, arguments, blur, elementwise, home, pools, run, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect.schedule import Schedule
from tir_dialect.types import LoopKind, LoopKindAttr
from vm_dialect import VirtualMachine

KINDS = {"parallel": (), "vectorize": (), "unroll": (), "bind": ("threadIdx.x",)}


def marked(sch, block, position, kind):
    loop = sch.get_loops(block)[position]
    if kind in ("vectorize", "unroll"):
        _, loop = sch.split(loop, [None, 4])
    getattr(sch, kind)(loop, *KINDS[kind])
    return loop


@pytest.mark.sampled(4)
@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("program", [elementwise, blur, pools])
@pytest.mark.parametrize("kind", KINDS)
def test_compute_at(kind, program, position):
    sch = scheduled(program(), lambda sch: sch.compute_at("B", marked(sch, "C", position, kind)))
    loop = sch.get_loops("C")[position + (kind in ("vectorize", "unroll"))]
    assert home(sch, "B") == loop.name


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_reverse_compute_at(kind, position):
    sch = scheduled(elementwise(), lambda sch: sch.reverse_compute_at("C", marked(sch, "B", position, kind)))
    assert sch.get_loops("C")[0] == sch.get_loops("B")[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_native_code(kind):
    sch = Schedule(blur())
    sch.compute_at("B", marked(sch, "C", 0, kind))
    machine = VirtualMachine(build(ModuleOp([sch.func.clone()])))
    for sizes in NOT_EMPTY:
        arrays = arguments(sch.func, sizes)
        machine["blur"](*arrays)
        assert all((have == want).all() for have, want in zip(arrays, run(blur(), sizes), strict=True))


REPEATED = """
tir.prim_func @f[%n](%A: !tir.buffer<[n], i32>, %Z: !tir.buffer<[n], i32>) {
  %B = tir.alloc_buffer : !tir.buffer<[n], i32>
  %three = arith.constant 3 : index
  tir.for (%t, %i) in (%three, %n) {
    tir.block "B" (%vi = spatial %i in %n) {
      %a = tir.load %A[%vi]
      tir.store %a, %B[%vi]
    }
  }
  tir.for (%i) in (%n) {
    tir.block "C" (%vi = spatial %i in %n) {
      %b = tir.load %B[%vi]
      tir.store %b, %Z[%vi]
    }
  }
}
"""


def test_iterations_would_share_elements():
    func = parse_prim_func(REPEATED)
    scheduled(func, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0]))
    sch = Schedule(func)
    loop = sch.get_loops("B")[0]
    loop.op.kind = LoopKindAttr(LoopKind.VECTORIZED)
    message = 'the iterations of loop "t" are not independent: they share elements of buffer "B"'
    refuses(sch, message, "reverse_compute_at", "C", loop)
