"""Inits among other blocks: what they read, and who uses what they write."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering.tir_to_llvm.conftest import run_both
from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect.schedule import Schedule

SUM = """
tir.prim_func @f[%n, %m](%A: !tir.buffer<[n, m], i32>, %W: !tir.buffer<[n], i32>, %C: !tir.buffer<[n], i32>) {{
  tir.for (%i) in (%n) {{
    {outside}
    tir.for (%r) in (%m) {{
      {inside}
      tir.block "C" (%v = spatial %i in %n, %vr = reduce %r in %m) {{
        tir.init {{
          {start}
          tir.store %z, %C[%v]
        }}
        %a = tir.load %A[%v, %vr]
        %c = tir.load %C[%v]
        %s = arith.addi %a, %c : i32
        tir.store %s, %C[%v]
      }}
    }}
  }}
}}
"""
ZERO = "%z = arith.constant 0 : i32"
READ = "%z = tir.load %W[%v]"
WRITE = """
      tir.block "W" (%v = spatial %i in %n) {
        %a = tir.load %A[%v, %v]
        tir.store %a, %W[%v]
      }
"""
REPEATED = WRITE.replace("%v = spatial %i in %n", "%v = spatial %i in %n, %vr = opaque %r in %m").replace(
    "%A[%v, %v]", "%A[%v, %vr]"
)
USED = REPEATED.replace("%A[%v, %vr]", "%C[%v]")
"""Another block that reads the sum before it starts."""


def func(*, outside="", inside="", start=ZERO):
    return SUM.format(outside=outside, inside=inside, start=start)


def test_an_init_runs_before_loops_that_have_nothing_to_do_with_it():
    before = parse_prim_func(func(outside=WRITE, start=READ))
    scheduled(before, lambda sch: sch.decompose_reduction("C", sch.get_loops("C")[1]), [{"n": 3, "m": 4}])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"outside": ZERO, "start": ""}, 'the init of block "C" uses "z" of loop "i", expected values from before it'),
        ({"outside": WRITE, "start": READ}, 'block "W" writes in loop "i" what the init of block "C" reads'),
    ],
)
def test_an_init_that_needs_what_the_loop_makes_stays_there(parts, message):
    sch = Schedule(parse_prim_func(func(**parts)))
    refuses(sch, message, "decompose_reduction", "C", sch.get_loops("C")[0])


def test_a_reduction_that_needs_what_the_loops_make_is_not_factored():
    sch = Schedule(parse_prim_func(func(outside=ZERO, start="")))
    message = 'block "C" uses "z" of the loops around it, expected values from before them'
    refuses(sch, message, "rfactor", sch.get_loops("C")[1])


@pytest.mark.parametrize("parts", [{"inside": REPEATED, "start": READ}, {"inside": USED}])
def test_an_init_stays_between_others_that_meet_it(parts):
    a, w, c = np.arange(12, dtype=np.int32).reshape(3, 4), np.ones(3, np.int32), np.full(3, 7, np.int32)
    native, reference = run_both(func(**parts), [a, w, c], {"n": 3, "m": 4})
    start = a[:, 0] if "start" in parts else 0
    np.testing.assert_array_equal(reference[2], a.sum(axis=1) + start)
    for have, want in zip(native, reference, strict=True):
        np.testing.assert_array_equal(have, want)
