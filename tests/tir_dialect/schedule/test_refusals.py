"""What primitives refuse and is refused nowhere else in the tests: one program each, and what the error says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import elementwise, k, m, n
from tests.tir_dialect.schedule.test_loops import refuses
from tests.tir_dialect.schedule.texts import GET, SET, block, lines, loop, nest, sums
from tir_dialect import te
from tir_dialect.schedule import Schedule

A = te.placeholder((n, m), "i32", "A")

REDUCTION = """
tir.prim_func @f[%n, %m](
  %A: !tir.buffer<[n, m], i32>, %X: !tir.buffer<[n, m], i32>, %B: !tir.buffer<[n], i32>, %D: !tir.buffer<[n], i32>
) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  tir.for (%i, %r) in (%n, %m) {{
    tir.block "B" (%vi = spatial %i in %n, %vr = reduce %r in %m) {{
      tir.init {{
        {start}
      }}
      %a = tir.load %A[%vi, %vr]
      %x = tir.load %X[%vi, %vr]
      {update}
    }}
  }}
}}
"""
START = "tir.store %zero, %B[%vi]"
BOTH = "tir.store %zero, %B[%vi] tir.store %zero, %D[%vi]"
SUM = "%b = tir.load %B[%vi] %s = arith.addi %b, %a : i32 tir.store %s, %B[%vi]"
REDUCTIONS = [
    (START, SUM + " %again = tir.load %B[%vi]", 'block "B" loads a result that it has stored'),
    (START, SUM.replace("load %B[%vi]", "load %B[%vr]"), 'block "B" loads and stores its results at different indices'),
    (
        BOTH,
        SUM + " %d = tir.load %D[%vi] %t = arith.addi %d, %x : i32 tir.store %x, %D[%vi]",
        'block "B" stores a value that does not depend on the accumulator',
    ),
    (
        BOTH,
        SUM + " %d = tir.load %D[%vi] %t = arith.addi %d, %a : i32 tir.store %t, %D[%vi]",
        'block "B" does not combine each accumulator with one value of its type',
    ),
    (
        START,
        "%b = tir.load %B[%vi] %at = arith.index_cast %b : i32 to index %y = tir.load %A[%at, %vr] "
        "%s = arith.addi %b, %y : i32 tir.store %s, %B[%vi]",
        "block \"B\" combines its values by 'tir.load', expected pure ops",
    ),
    (
        START,
        SUM + " %d = tir.load %D[%vi] %t = arith.addi %d, %x : i32 tir.store %t, %D[%vi]",
        'the init of block "B" does not store each of its results',
    ),
    (
        "%y = tir.load %A[%vi, %c0] tir.store %y, %B[%vi]",
        SUM,
        'the init of block "B" stores a value that is not constant',
    ),
]


@pytest.mark.parametrize(("start", "update", "message"), REDUCTIONS)
def test_updates_that_are_no_combination(start: str, update: str, message: str):
    sch = Schedule(parse_prim_func(REDUCTION.format(start=start, update=update)))
    refuses(sch, message, "rfactor", sch.get_loops("B")[1], 0)


COPY = block("P", "%a = tir.load %A[%vi, %vj] tir.store %a, %B[%vi, %vj]", "%i %n", "%j %m")
LINE = block("P", "%a = tir.load %A[%c0, %vj] tir.store %a, %T[%vj]", "%j %m")
READ = block("Q", "%t = tir.load %T[%vj] tir.store %t, %B[%vi, %vj]", "%i %n", "%j %m")
ROW = block("P", "tir.store %zero, %B[%vi, %c0]", "%i %n")
NEXT = "%q = arith.subi %k, %c1 : index " + block("Q", "tir.store %zero, %B[%vq, %c1]", "%q %n")


def test_reorder_refuses_statements_outside_of_blocks():
    sch = nest(f"tir.for (%i, %j) in (%n, %m) {{ {COPY} tir.store %zero, %T[%j] }}")
    i, j = sch.get_loops("P")
    refuses(sch, "the loops hold 'tir.store' outside of a block, expected blocks only", "reorder", j, i)


def test_reorder_refuses_blocks_that_share_elements():
    sch = nest(f"tir.for (%i, %j) in (%n, %m) {{ {LINE} {READ} }}")
    i, j = sch.get_loops("P")
    refuses(sch, 'blocks "P" and "Q" share elements of', "reorder", j, i)


def test_reorder_refuses_loops_with_neighbours():
    sch = nest(f"tir.for (%i) in (%n) {{ tir.for (%j) in (%m) {{ {LINE} }} tir.for (%j) in (%m) {{ {READ} }} }}")
    i, j = sch.get_loops("P")
    refuses(sch, 'expected loop "i" to hold loop "j" alone', "reorder", j, i)


def test_merge_refuses_loops_that_begin_elsewhere():
    sch = nest(f"tir.for (%i) in (%n) {{ {ROW} }} tir.for (%k) in (%c1 to %more) {{ {NEXT} }}")
    refuses(sch, 'loops "i" and "k" begin at 0 and 1', "merge", sch.get_loops("P")[0], sch.get_loops("Q")[0])


def test_fuse_refuses_bounds_that_depend():
    sch = nest(f"tir.for (%i) in (%n) {{ tir.for (%j) in (%c0 to %i) {{ {COPY} }} }}")
    refuses(sch, 'the bounds of loop "j" depend on loop "i"', "fuse", *sch.get_loops("P"))


def test_fuse_refuses_extents_that_may_be_negative():
    sch = nest(f"tir.for (%i) in (%rest) {{ tir.for (%j) in (%m) {{ {COPY} }} }}")
    refuses(sch, 'the extent of loop "i" is not known to be at least 0', "fuse", *sch.get_loops("P"))


def test_blockize_refuses_values_that_others_use():
    use = block("R", "tir.store %kept, %B[%vi, %c1]", "%i %n")
    other = block("Q", "tir.store %zero, %B[%vi, %c0]", "%i %n")
    sch = nest(f"tir.for (%i) in (%n) {{ {ROW} %kept = tir.load %T[%c0] {other} {use} }}")
    blocks = [sch.get_block(name) for name in "PQ"]
    refuses(sch, "a value of 'tir.load' between the blocks is used outside of them", "blockize", blocks)


def test_transform_block_layout_refuses_loops_that_hold_more():
    sch = nest(f"tir.for (%i, %j) in (%n, %m) {{ {LINE} {READ} }}")
    refuses(sch, 'expected loops that hold block "P" alone', "transform_block_layout", "P", lambda j: (j,))


def test_index_maps_that_are_none():
    sch = Schedule(elementwise())
    for primitive, arguments in {
        "transform_block_layout": ("C", "(i, j)"),
        "reindex_cache_read": ("C", 0, "local", "(i, j)"),
        "annotate_buffer_access": ("C", 0, "read", "(i, j)"),
        "transform_layout": ("C", ("write", 0), "(i, j)"),
    }.items():
        refuses(sch, "->", primitive, *arguments)


def test_a_decision_beyond_the_loops():
    refuses(Schedule(elementwise()), "expected a decision of 0 to 1, got 2", "sample_compute_location", "B", 2)


def test_numbers_of_more_than_64_bits():
    sch = Schedule(elementwise())
    i, j = sch.get_loops("C")
    refuses(sch, "expected numbers between -2**62 and 2**62, got 36893488147419103232", "split", i, [None, 2**65])
    refuses(sch, "expected numbers between", "split", i, [None, te.var("n") * 2**65])
    refuses(sch, "expected numbers between", "annotate", i, ann_key="key", ann_val=-(2**70))
    refuses(sch, "expected factors with a product of at most 2**62", "split", j, [None, 2**40, 2**40])


def epilogue(compute: Callable[..., object], *shape: object) -> Schedule:
    a, d = te.placeholder((n, m), "i32", "A"), te.placeholder((n,), "i32", "D")
    r = te.reduce_axis(m, "r")
    b = te.compute((n,), lambda i: te.sum(a[i, r], r), name="B")
    c = te.compute(shape or (n,), lambda *i: compute(b, d, *i), name="C")
    return Schedule(te.create_prim_func([a, d, c]))


@pytest.mark.parametrize(
    ("sch", "message"),
    [
        (lambda: epilogue(lambda b, d, i: b[i] + b[0]), 'expected block "C" to load buffer "B" once, got 2 loads'),
        (lambda: epilogue(lambda b, d, i: b[n - 1 - i] + d[i]), 'block "C" loads at other indices than its iterators'),
        (lambda: epilogue(lambda b, d, i: b[i] + d[i], n - 1), 'block "C" covers n - 1 of n elements of buffer "B"'),
        (lambda: epilogue(lambda b, d, i, j: b[i] + d[i], n, 2), 'block "C" loads at other indices than its iterators'),
    ],
)
def test_epilogues_of_other_elements(sch: Callable[[], Schedule], message: str):
    refuses(sch(), message, "fuse_reduction_epilogue", "B", "C")


def test_an_epilogue_of_a_block_without_init():
    sch = epilogue(lambda b, d, i: b[i] + d[i])
    sch.decompose_reduction("B", sch.get_loops("B")[1])
    refuses(sch, 'block "B_update" has no init', "fuse_reduction_epilogue", "B_update", "C")


def test_pad_einsum_refuses_other_loops():
    a, r = te.placeholder((8, k), "i32", "A"), te.reduce_axis(k, "r")
    sch = Schedule(te.create_prim_func([a, te.compute((8,), lambda i: te.sum(a[i, r], r), name="C")]))
    sch.split(sch.get_loops("C")[0], (2, 4))
    refuses(
        sch, 'iterator "vi" of block "C" is not the variable of a loop over its extent 8', "pad_einsum", "C", [3, 4]
    )


def test_pad_einsum_refuses_loops_that_hold_more():
    a, b = te.placeholder((n, k), "i32", "A"), te.placeholder((k, m), "i32", "B")
    twice = te.compute((n, k), lambda i, r: a[i, r] * 2, name="T")
    r = te.reduce_axis(k, "r")
    c = te.compute((n, m), lambda i, j: te.sum(twice[i, r] * b[r, j], r), name="C")
    sch = Schedule(te.create_prim_func([a, b, c]))
    sch.compute_at("T", sch.get_loops("C")[0])
    refuses(sch, 'the loops of block "C" hold other blocks', "pad_einsum", "C", [4] * 3)


def chain(*stages: tuple[str, str]) -> Schedule:
    """Blocks over one axis between `x`, a temporary `t` and `y`: each stores the value of a text at `i`."""

    def body(b, ins, outs):
        (x,), (y,) = ins, outs
        t = b.alloc((n,), "i32", "T")
        buffers = {"x": x, "y": y, "t": t}
        for name, what in stages:
            target, _, value = what.partition(" = ")
            with b.block(name, ("spatial", n, "i")) as (i,):
                b.store(buffers[target], i, eval(value, {}, {**buffers, "i": i, "n": n}))

    x = te.placeholder((n,), "i32", "X")
    (y,) = te.extern([((n,), "i32")], [x], body, name="E")
    return Schedule(te.create_prim_func([x, y]))


WRITE, USE, AGAIN = ("T", "t = x[i]"), ("Y", "y = t[i]"), ("Z", "t = x[i] + 1")


@pytest.mark.parametrize(
    ("stages", "primitive", "block", "loop", "message"),
    [
        ((WRITE, ("Y", "y = x[i]")), "compute_at", "T", "Y", 'nothing in loop "i" reads what block "T" writes'),
        ((WRITE, AGAIN, USE), "compute_at", "T", "Y", 'buffer "T" is also written by block "Z"'),
        ((USE, WRITE), "compute_at", "T", "Y", 'block "T" comes after loop "i"'),
        ((WRITE, ("Z", "y = x[i]"), USE), "reverse_compute_at", "Y", "Z", 'nothing in loop "i" writes what block "Y"'),
        ((WRITE, AGAIN, USE), "reverse_compute_at", "Y", "T", 'block "Z" writes buffer "T" before block "Y"'),
        (
            (WRITE, ("Z", "y = x[i]"), USE),
            "reverse_compute_at",
            "Y",
            "T",
            'block "Z" uses an output of block "Y" before it',
        ),
    ],
)
def test_moves_past_other_accesses(stages, primitive: str, block: str, loop: str, message: str):
    sch = chain(*stages)
    refuses(sch, message, primitive, sch.get_block(block), sch.get_loops(loop)[0])


@pytest.mark.parametrize(
    ("stages", "primitive", "arguments", "message"),
    [
        ((WRITE, AGAIN, USE), "reverse_compute_inline", ("Y",), 'buffer "T" has 2 writes, expected one scalar store'),
        ((("T", "t = t[i] + x[i]"), USE), "compute_inline", ("T",), 'block "T" reads what it writes'),
        (
            (USE, WRITE),
            "cache_write",
            ("T", 0, "local", ["Y"]),
            'block "Y" reads buffer "T" before block "T" writes it',
        ),
    ],
)
def test_results_that_change(stages, primitive: str, arguments, message: str):
    refuses(chain(*stages), message, primitive, *arguments)


LATE = block(
    "Y",
    "%t = tir.load %T[%vj] %k = arith.trunci %late : i64 to i32 %s = arith.addi %t, %k : i32 tir.store %s, %Y[%vj]",
    "%j %n",
)
MASKED = sums(where="where %on", before="%on = tir.load %M[%i]")
NO_COMPARISON = 'block "T" has a condition that is no comparison of indices'


@pytest.mark.parametrize(
    ("body", "message"),
    [(MASKED, NO_COMPARISON), (sums("%c1 to %n"), 'expected loop "r" to run from 0 to a size')],
)
def test_rfactor_refuses_other_domains(body: str, message: str):
    sch = lines(body)
    refuses(sch, message, "rfactor", sch.get_loops("T")[1], 0)


def test_decompose_reduction_refuses_conditions_from_memory():
    sch = lines(MASKED)
    refuses(sch, NO_COMPARISON, "decompose_reduction", "T", sch.get_loops("T")[0])


@pytest.mark.parametrize(
    ("body", "primitive", "arguments", "message"),
    [
        (sums() + sums(name="U"), "cache_write", ("T", 0, "local"), 'block "U" writes buffer "T", too'),
        (sums() + sums(name="U"), "reindex", ("T", ("write", 0)), 'block "U" uses buffer "T", too'),
        (
            loop("%v = tir.load %T[%c0] : vector<4xi32> " + SET) + loop(GET, "j"),
            "compute_inline",
            ("T",),
            "expected scalar loads only",
        ),
    ],
)
def test_buffers_that_others_use(body: str, primitive: str, arguments, message: str):
    refuses(lines(body), message, primitive, *arguments)


@pytest.mark.parametrize(
    ("body", "primitive", "moved", "beside", "message"),
    [
        (
            loop("%x = tir.load %X[%i] tir.store %x, %T[%i] " + block("P", "%p = tir.load %X[%vi]", "%i %n"))
            + loop(GET, "j"),
            "reverse_compute_at",
            "Y",
            "P",
            "buffer \"T\" is written by a 'tir.store' outside of a block",
        ),
        (
            loop(SET) + "%c = tir.load %M[%c0] tir.if %c { " + loop(GET, "j") + " }",
            "compute_at",
            "T",
            "Y",
            'loop "j" stands in a \'tir.if\' without block "T"',
        ),
        (
            loop(SET.replace("spatial", "opaque")) + loop(GET, "j"),
            "compute_at",
            "T",
            "Y",
            'block "T" has an iterator of kind opaque, expected spatial and reduce ones only',
        ),
        (
            loop(SET) + "%late = tir.load %K[%c0] " + loop(LATE, "j"),
            "reverse_compute_at",
            "Y",
            "T",
            'block "Y" uses a value of \'tir.load\' that is computed after loop "i"',
        ),
    ],
)
def test_blocks_that_stay(body: str, primitive: str, moved: str, beside: str, message: str):
    sch = lines(body)
    refuses(sch, message, primitive, sch.get_block(moved), sch.get_loops(beside)[0])
