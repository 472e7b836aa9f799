"""Where inits go before reductions, and what empty reductions give."""

import numpy as np
import pytest

from lowering.compiler.kernel_maker import KernelOptions
from tests.lowering.tir_to_llvm.conftest import run_both
from tests.support.tir import parse_prim_func, run_text
from tir_dialect.analysis.init import init_placement
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.schedule import Schedule

ROWS = """
tir.prim_func @rows[%n, %m](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[n], f32>) {
  %c4 = arith.constant 4 : index
  %outer = tir.dim ceildiv(m, 4)
  BODY
}
"""

INIT = """
      tir.init {
        %z = arith.constant 0.0 : f32
        tir.store %z, %Y[%vi]
      }
      %x = tir.load %X[%vi, %vr]
      %y = tir.load %Y[%vi]
      %s = arith.addf %x, %y : f32
      tir.store %s, %Y[%vi]
"""

SIMPLE = (
    """
  tir.for (%i, %r) in (%n, %m) {
    tir.block "sum" (%vi = spatial %i in %n, %vr = reduce %r in %m) {"""
    + INIT
    + "} }"
)

SPLIT = (
    """
  tir.for (%r0, %i, %r1) in (%outer, %n, %c4) {
    %base = arith.muli %r0, %c4 : index
    %r = arith.addi %base, %r1 : index
    %inside = arith.cmpi slt, %r, %m : index
    tir.block "sum" (%vi = spatial %i in %n, %vr = reduce %r in %m) where %inside {"""
    + INIT
    + "} }"
)

BOTH_SPLIT = (
    """
  %tiles = tir.dim ceildiv(n, 4)
  tir.for (%i0, %r0, %i1, %r1) in (%tiles, %outer, %c4, %c4) {
    %ib = arith.muli %i0, %c4 : index
    %i = arith.addi %ib, %i1 : index
    %rb = arith.muli %r0, %c4 : index
    %r = arith.addi %rb, %r1 : index
    %ii = arith.cmpi slt, %i, %n : index
    %ri = arith.cmpi slt, %r, %m : index
    %inside = arith.andi %ii, %ri : i1
    tir.block "sum" (%vi = spatial %i in %n, %vr = reduce %r in %m) where %inside {"""
    + INIT
    + "} }"
)

ONCE = (
    """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tir.for (%r, %u0, %u1) in (%m, %c4, %c4) {
    %ub = arith.muli %u0, %c4 : index
    %u = arith.addi %ub, %u1 : index
    %once = arith.cmpi slt, %u, %c1 : index
    tir.block "sum" (%vi = spatial %c0 in %n, %vr = reduce %r in %m) where %once {"""
    + INIT
    + "} }"
)
"""Tiles of a loop with one iteration."""

FUSED = (
    """
  %all = tir.dim n * m
  tir.for (%f) in (%all) {
    %i = arith.floordivsi %f, %m : index
    %r = arith.remsi %f, %m : index
    tir.block "sum" (%vi = spatial %i in %n, %vr = reduce %r in %m) {"""
    + INIT
    + "} }"
)

TRIANGLE = (
    """
  tir.for (%i, %r) in (%n, %m) {
    %inside = arith.cmpi slt, %r, %i : index
    tir.block "sum" (%vi = spatial %i in %n, %vr = reduce %r in %m) where %inside {"""
    + INIT
    + "} }"
)


LATE = SIMPLE.replace(
    'tir.block "sum" (%vi = spatial %i in %n, %vr = reduce %r in %m) {',
    """%c1 = arith.constant 1 : index
    %inside = arith.cmpi sge, %r, %c1 : index
    tir.block "sum" (%vi = spatial %i in %n, %vr = reduce %r in %m) where %inside {""",
)
DATA = LATE.replace("cmpi sge, %r, %c1 : index", "cmpf oge, %x0, %x0 : f32").replace(
    "%inside", "%x0 = tir.load %X[%r, %r]\n    %inside", 1
)
"""A condition that may leave out the first instance of a reduction, and the init with it."""

SECOND_PART = SIMPLE.replace("(%n, %m)", "(%n, %c1 to %m)").replace(
    "tir.for", "%c1 = arith.constant 1 : index\n  tir.for"
)
DOWN = SIMPLE.replace(
    'tir.block "sum" (%vi = spatial %i in %n, %vr = reduce %r in',
    """%c1 = arith.constant 1 : index
    %left = arith.subi %m, %r : index
    %last = arith.subi %left, %c1 : index
    tir.block "sum" (%vi = spatial %i in %n, %vr = reduce %last in""",
)
"""Loops that do not begin where the iterator that is reduced over is 0."""

SHORTER = SIMPLE.replace("(%i, %r) in (%n, %m) {", "(%i) in (%n) { tir.for (%r) in (%i) {") + "}"
"""A loop that has no iteration where the domain of the reduction has elements."""

OTHER_WAY_ROUND = SPLIT.replace("cmpi slt, %r, %m", "cmpi sgt, %m, %r")


def placement(body):
    func = parse_prim_func(ROWS.replace("BODY", body))
    block = next(op for op in func.walk() if isinstance(op, BlockOp))
    return init_placement(block)


@pytest.mark.parametrize(
    ("body", "loop", "loops", "conditions"),
    [
        (SIMPLE, "r", [], 0),
        (SPLIT, "r0", ["i"], 0),
        (BOTH_SPLIT, "r0", ["i1"], 1),
        (OTHER_WAY_ROUND, "r0", ["i"], 0),
        (ONCE, "r", ["u0", "u1"], 1),
    ],
    ids=["simple", "split", "both-split", "other-way-round", "once"],
)
def test_placement(body, loop, loops, conditions):
    found = placement(body)
    assert found is not None
    assert found.loop.induction_var.name_hint == loop
    assert [inner.induction_var.name_hint for inner in found.loops] == loops
    assert len(found.conditions) == conditions


AGAIN = f"""
  tir.for (%r, %u, %j) in (%m, %c4, %n) {{
    %k = arith.muli %j, %c4 : index
    %w = arith.addi %k, %u : index
    %i = arith.floordivsi %w, %c4 : index
    tir.block "sum" (%vi = spatial %i in %n, %vr = reduce %r in %m) {{ {INIT} }}
  }}
"""


@pytest.mark.parametrize("body", [FUSED, TRIANGLE, SHORTER, LATE, DATA, SECOND_PART, DOWN, AGAIN])
def test_init_has_to_stay(body):
    assert placement(body) is None


def test_ops_that_xdsl_does_not_call_pure_move_along():
    body = SPLIT.replace("(%vi = spatial %i in", "(%vi = spatial %same in").replace(
        "%base =", "%big = tir.dim n + 1 %same = arith.remui %i, %big : index %base ="
    )
    found = placement(body)
    assert found is not None
    assert "arith.remui" in [op.name for op in found.ops]


def test_no_init():
    assert placement(SIMPLE.replace("tir.init {", 'tir.block "b" {')) is None


@pytest.mark.parametrize("body", [SIMPLE, SPLIT, BOTH_SPLIT], ids=["simple", "split", "both-split"])
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (5, 0), (1, 1), (4, 4), (5, 7)])
def test_sums_of_empty_rows_are_zero(body, shape):
    x = np.random.default_rng(0).integers(-3, 4, shape).astype(np.float32)
    y = np.full(shape[0], np.nan, np.float32)
    run_text(ROWS.replace("BODY", body), x, y)
    np.testing.assert_array_equal(y, x.sum(axis=1))


@pytest.mark.parametrize("schedule", [True, False])
@pytest.mark.parametrize("body", [LATE, SECOND_PART, DOWN])
def test_the_init_runs_in_the_first_instance_wherever_that_is(body, schedule):
    text, options = ROWS.replace("BODY", body), KernelOptions(schedule=schedule)
    for rows, columns in ((3, 5), (3, 1), (1, 2)):
        x, y = np.ones((rows, columns), np.float32), np.full(rows, 7, np.float32)
        native, reference = run_both(text, [x, y], {"n": rows, "m": columns}, options=options)
        np.testing.assert_array_equal(reference[1], np.full(rows, 1 if body is DOWN else 7 + columns - 1))
        np.testing.assert_array_equal(native[1], reference[1])


NOTHING = f"""
  %c0 = arith.constant 0 : index
  tir.for (%i) in (%n) {{
    tir.block "row" (%vi = spatial %i in %n) {{
      %t = arith.minsi %vi, %c0 : index
      tir.for (%r) in (%t) {{
        tir.block "sum" (%vr = reduce %r in %c0) {{ {INIT} }}
      }}
    }}
  }}
"""


def test_the_init_of_a_reduction_over_nothing_runs_for_all_elements():
    """A loop that may have no iteration, and has none in the first row, is no reason to leave it out."""
    x, y = np.ones((3, 4), np.float32), np.full(3, 7, np.float32)
    native, reference = run_both(ROWS.replace("BODY", NOTHING), [x, y], {"n": 3, "m": 4})
    np.testing.assert_array_equal(reference[1], [0, 0, 0])
    np.testing.assert_array_equal(native[1], reference[1])


def test_no_init_where_the_loops_have_no_iteration():
    x, y = np.ones((3, 4), np.float32), np.full(3, 7, np.float32)
    native, reference = run_both(ROWS.replace("BODY", SHORTER), [x, y], {"n": 3, "m": 4})
    np.testing.assert_array_equal(reference[1], [7, 1, 2])
    np.testing.assert_array_equal(native[1], reference[1])


def test_elements_that_the_loops_begin_again():
    x, y = np.ones((2, 3), np.float32), np.full(2, 7, np.float32)
    native, reference = run_both(ROWS.replace("BODY", AGAIN), [x, y], {"n": 2, "m": 3})
    np.testing.assert_array_equal(reference[1], [1 + 4 + 4, 1 + 4 + 4])
    np.testing.assert_array_equal(native[1], reference[1])


@pytest.mark.parametrize("factors", [[2, None], [None, 4], [3, None, 2], [None, "m + 1"], ["2 * m + 1", None, 2]])
def test_parts_of_loops_inside_of_the_reduction_tell_elements_apart(factors):
    sch = Schedule(parse_prim_func(ROWS.replace("BODY", SIMPLE)))
    (block,) = sch.get_blocks()
    rows, columns = sch.get_loops(block)
    sch.reorder(columns, rows)
    parts = sch.split(rows, factors)
    found = init_placement(block.op)
    assert found is not None
    assert len(found.loops) == len(parts)
    for part in parts:
        sch.parallel(part)


def test_a_condition_that_leaves_out_what_would_be_begun_again():
    body = """
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %thirds = tir.dim ceildiv(n, 3)
  tir.for (%r, %j, %u, %w) in (%m, %thirds, %c2, %c2) {
    %a = arith.muli %j, %c3 : index
    %b = arith.muli %u, %c2 : index
    %p = arith.addi %b, %w : index
    %i = arith.addi %a, %p : index
    %part = arith.cmpi slt, %p, %c3 : index
    %rest = arith.cmpi slt, %i, %n : index
    %in = arith.andi %part, %rest : i1
    tir.block "sum" (%vi = spatial %i in %n, %vr = reduce %r in %m) where %in { INIT }
  }
""".replace("INIT", INIT)
    found = placement(body)
    assert found is not None
    assert len(found.conditions) == 2
