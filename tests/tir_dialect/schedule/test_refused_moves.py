"""What primitives refuse that move or inline blocks, or make blocks of loops: one program each, and what is said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.test_loops import refuses
from tests.tir_dialect.schedule.texts import GET, SET, block, lines, loop, nest, sums
from tir_dialect.schedule import Schedule

PLACE = "%k = tir.load %K[%c0] %e = arith.index_cast %k : i64 to index "
"""An index from memory."""


def first(name: str) -> Callable[[Schedule], object]:
    """The outermost loop of a block."""
    return lambda sch: sch.get_loops(name)[0]


def test_split_refuses_bounds_from_memory():
    sch = lines(f"{PLACE} tir.for (%i) in (%e) {{ {SET} }}")
    message = 'the bounds of loop "i" are not expressions of sizes and loop variables'
    refuses(sch, message, "split", sch.get_loops("T")[0], [None, 4])


def test_compute_at_refuses_extents_from_memory():
    sch = lines(f"{PLACE} tir.for (%i) in (%e) {{ {SET.replace('in %n', 'in %e')} }} {loop(GET, 'j')}")
    message = 'the extent of iterator "vi" of block "T" comes from memory, expected an expression of sizes'
    refuses(sch, message, "compute_at", "T", sch.get_loops("Y")[0])


def test_reverse_compute_at_refuses_elements_that_are_written_again():
    again = block("U", "tir.store %zero, %T[%vk]", "%k %n")
    sch = lines(loop(loop(again, "k") + loop(SET), "t") + loop(GET, "j"))
    message = 'block "U" writes elements of buffer "T" again in another iteration'
    refuses(sch, message, "reverse_compute_at", "Y", sch.get_loops("T")[1])


def test_reverse_compute_at_refuses_writers_behind_the_loop():
    start = block("P", "tir.store %zero, %U[%vi, %vj]", "%i %n", "%j %m")
    copy = block("Q", "%a = tir.load %A[%vi, %vk] tir.store %a, %U[%vi, %vk]", "%i %n", "%k %m")
    read = block("R", "%u = tir.load %U[%vi, %vj] tir.store %u, %B[%vi, %vj]", "%i %n", "%j %m")
    rows = f"tir.for (%i) in (%n) {{ tir.for (%j) in (%m) {{ {start} }} tir.for (%k) in (%m) {{ {copy} }} }}"
    sch = nest(f"%U = tir.alloc_buffer : !tir.buffer<[n, m], i32> {rows} tir.for (%i, %j) in (%n, %m) {{ {read} }}")
    message = 'block "Q" writes buffer "U" behind loop "j"'
    refuses(sch, message, "reverse_compute_at", "R", sch.get_loops("P")[1])
    sch.reverse_compute_at("R", sch.get_loops("Q")[1])


def test_reverse_compute_at_refuses_a_diagonal():
    square = block("P", "tir.store %zero, %A[%vi, %vj]", "%i %n", "%j %m")
    diagonal = (
        "(%va = spatial %k in %n, %vb = spatial %k in %n) { %a = tir.load %A[%va, %vb] tir.store %a, %B[%va, %vb] }"
    )
    program = f'tir.for (%i, %j) in (%n, %m) {{ {square} }} tir.for (%k) in (%n) {{ tir.block "Q" {diagonal} }}'
    sch = nest(program.replace("%m", "%n"))
    message = 'block "Q" may not run for all of [0 to n, 0 to n], so in loop "i" it may have other instances'
    refuses(sch, message, "reverse_compute_at", "Q", sch.get_loops("P")[0])


CONDITIONAL = "%on = tir.load %M[%vj] %y = tir.if %on -> (i32) { %t = tir.load %T[%vj] tir.yield %t } else "
CONDITIONAL += "{ tir.yield %zero } tir.store %y, %Y[%vj]"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (loop(SET) + loop(block("Y", CONDITIONAL, "%j %n"), "j"), 'block "Y" reads buffer "T" under a condition'),
        (
            loop(SET) + block("Y", "%t = tir.load %T[%c0] tir.store %t, %Y[%c0]"),
            'block "Y" covers 1 of n elements of buffer "T"',
        ),
        (
            loop(SET) + loop(f"%on = tir.load %M[%j] tir.if %on {{ {GET} }}", "j"),
            "block \"Y\" stands in a 'tir.if' without its producer",
        ),
        (
            loop("%x = tir.load %X[%i] tir.store %x, %T[%i]") + loop(GET, "j"),
            'block "Y" reads 0 allocated buffers that nobody else reads, expected one',
        ),
        (
            sums().replace("%t = tir.load", "tir.reads %X[%vr] tir.writes %T[%vi] %t = tir.load") + loop(GET, "j"),
            'buffer "T" is used by \'tir.writes\' in block "T", expected loads and stores of single elements',
        ),
    ],
)
def test_reverse_compute_inline_refuses(body: str, message: str):
    refuses(lines(body), message, "reverse_compute_inline", "Y")


def test_reverse_compute_inline_in_a_branch_with_the_producer():
    sch = lines(loop(f"%on = tir.load %M[%i] tir.if %on {{ {SET} {GET.replace('%j', '%i')} }}"))
    sch.reverse_compute_inline("Y")
    assert len(sch.get_blocks()) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            f"{PLACE} {loop(SET.replace('spatial %i', 'spatial %e'))}",
            'the binding of iterator "vi" of block "T" is no expression of loop variables',
        ),
        (
            f"tir.for (%i) in (%c1 to %n) {{ {SET} }}",
            'expected the loops inside to move iterator "vi" of block "T" over a tile, 0 to a size, got 1 to n',
        ),
        (
            loop(f"%on = arith.cmpi slt, %i, %c1 : index {SET.replace('in %n) {', 'in %n) where %on {')}"),
            'block "T" has a condition on the loops inside that is not about the end of an iterator',
        ),
    ],
)
def test_blockize_refuses(body: str, message: str):
    sch = lines(body)
    refuses(sch, message, "blockize", sch.get_loops("T")[0])


def test_transform_block_layout_refuses_branches():
    sch = lines(loop(f"%on = tir.load %M[%i] tir.if %on {{ {SET} }}"))
    refuses(sch, 'expected loops that hold block "T" alone', "transform_block_layout", "T", lambda i: (i,))


WINDOWS = """
tir.prim_func @f[%n](%X: !tir.buffer<[n + 2], i32>, %Y: !tir.buffer<[n], i32>, %Z: !tir.buffer<[n], i32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %more = tir.dim n + 2
  %zero = arith.constant 0 : i32
  %T = tir.alloc_buffer : !tir.buffer<[n + 2], i32>
  tir.for (%i) in (%n) {{
    tir.for (%k) in (%c3) {{
      %v = arith.addi %i, %k : index
      tir.block "T" (%vt = spatial %v in %more) {{
        %x = tir.load %X[%vt]
        {store}
      }}
    }}
    tir.block "Y" (%vi = spatial %i in %n) {{
      %p = tir.load %T[%vi]
      %l = arith.addi %vi, %c2 : index
      %q = tir.load %T[%l]
      %s = arith.addi %p, %q : i32
      tir.store %s, %Y[%vi]
    }}
    {inside}
  }}
  {behind}
}}
"""
"""Each iteration needs three elements of `T`."""

STORE = "tir.store %x, %T[%vt]"
MIRRORED = "%top = arith.addi %n, %c1 : index %at = arith.subi %top, %vt : index tir.store %x, %T[%at]"
OWN = "%own = tir.load %T[%vt] %both = arith.addi %x, %own : i32 tir.store %both, %T[%vt]"
COPY = "%t = tir.load %T[%vi] tir.store %t, %Z[%vi]"


@pytest.mark.parametrize(
    ("store", "inside", "behind", "message"),
    [
        (OWN, "", "", 'block "T" updates what it reads'),
        (MIRRORED, "", "", 'block "T" stores to buffer "T" at other indices than its iterators, each once'),
        (STORE, block("U", "tir.store %zero, %T[%vi]", "%i %n"), "", 'block "U" writes buffer "T", too'),
        (
            STORE,
            "",
            loop(block("U", COPY, "%i %n")),
            'block "U" reads buffer "T" outside of the loops behind block "T"',
        ),
        (
            STORE,
            block("U", COPY.replace("%T[%vi]", "%T[%c0]"), "%i %n"),
            "",
            'block "U" reads buffer "T" outside of a window of 3 elements',
        ),
        (
            STORE,
            block("U", "%o = tir.load %X[%vi] %w = arith.addi %o, %o : i32 tir.store %w, %X[%vi]", "%i %n"),
            "",
            'block "U" may give an element of buffer "X" another value',
        ),
    ],
)
def test_rolling_buffer_refuses(store: str, inside: str, behind: str, message: str):
    sch = Schedule(parse_prim_func(WINDOWS.format(store=store, inside=inside, behind=behind)))
    refuses(sch, message, "rolling_buffer", "T", 0)
