"""decompose_reduction and fuse_reduction_epilogue."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import NOT_EMPTY, elementwise, k, m, matmul, n, row_sum, run, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect import te
from tir_dialect.schedule import Schedule


def test_parts_of_a_reduction_keep_what_is_said_of_it():
    sch = Schedule(matmul())
    sch.annotate(sch.get_block("C"), "note", 1)
    partial = sch.rfactor(sch.split(sch.get_loops("C")[2], [None, 4])[1])
    init = sch.decompose_reduction("C", sch.get_loops("C")[2])
    assert [sch.get(block).annotations for block in (partial, init)] == [
        sch.get(sch.get_block("C_update")).annotations
    ] * 2


@pytest.mark.parametrize("position", [0, 1, 2])
def test_decompose_at_any_loop_outside_the_reduction(position):
    def transform(sch):
        block = sch.get_block("C")
        init = sch.decompose_reduction(block, sch.get_loops(block)[position])
        assert init.name == "C_init"
        assert block.op.init is None

    scheduled(matmul(), transform)


@settings(max_examples=12)
@given(st.permutations([0, 1, 2, 3, 4, 5]))
def test_decompose_in_any_order_of_split_loops(order):
    def transform(sch):
        block = sch.get_block("C")
        i, j, r = sch.get_loops(block)
        nest = [*sch.split(i, [None, 4]), *sch.split(j, [None, 8]), *sch.split(r, [None, 2])]
        sch.reorder(*(nest[position] for position in order))
        first_reduced = min(order.index(4), order.index(5))
        sch.vectorize(nest[3])
        sch.decompose_reduction(block, sch.get_loops(block)[first_reduced])

    scheduled(matmul(), transform)


def test_decomposed_reduction_over_nothing():
    sch = Schedule(matmul("i32"))
    block = sch.get_block("C")
    sch.decompose_reduction(block, sch.get_loops(block)[0])
    result = run(sch.func, {"n": 3, "m": 4, "k": 0})[2]
    np.testing.assert_array_equal(result, np.zeros((3, 4)))


def test_decompose_of_an_arg_reduction():
    a = te.placeholder((n, m), "i32", "A")
    r = te.reduce_axis(m, "r")
    argmax = te.comm_reducer(
        lambda x, y: (te.maximum(x[0], y[0]), te.select(x[0] >= y[0], x[1], y[1])),
        lambda value, index: (te.min_value(value), 0),
    )
    outs = te.compute((n,), lambda i: argmax((a[i, r], te.cast(r, "i64")), r), name="B")
    func = te.create_prim_func([a, *outs])
    scheduled(func, lambda sch: sch.decompose_reduction(sch.get_block("B"), sch.get_loops(sch.get_block("B"))[1]))


def test_decompose_refusals():
    sch = Schedule(elementwise())
    refuses(
        sch, 'block "B" has no init', "decompose_reduction", sch.get_block("B"), sch.get_loops(sch.get_block("B"))[0]
    )
    sch = Schedule(matmul(k=(1, None)))
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    r0, r1 = sch.split(r, [None, 2])
    refuses(sch, 'loop "r1" is inside of loop "r0", which is reduced over', "decompose_reduction", block, r1)
    sch.fuse(j, r0)
    refuses(sch, 'drives spatial and reduce iterators of block "C"', "decompose_reduction", block, i)


def test_decompose_needs_a_loop_around_the_block():
    a = te.placeholder((n, m), "i32", "A")
    r = te.reduce_axis(m, "r")
    b = te.compute((n,), lambda i: te.sum(a[i, r], r), name="B")
    c = te.compute((n,), lambda i: b[i] * 2, name="C")
    sch = Schedule(te.create_prim_func([a, c]))
    block = sch.get_block("B")
    loop = sch.get_loops(sch.get_block("C"))[0]
    refuses(sch, 'loop "i" is not around block "B"', "decompose_reduction", block, loop)
    sch.compute_at(block, loop)
    refuses(sch, 'buffer "B" is allocated in loop "i"', "decompose_reduction", block, loop)
    sch.decompose_reduction(block, sch.get_loops(block)[1])


def test_updates_may_not_run_more_often():
    sch = Schedule(matmul())
    block = sch.get_block("C")
    copy = sch.cache_write(block, 0)
    sch.decompose_reduction(block, sch.get_loops(block)[2])
    message = 'block "C_update" updates what it reads, so it may not run more often'
    refuses(sch, message, "compute_at", block, sch.get_loops(copy)[0])


def test_row_sums():
    scheduled(row_sum(), lambda sch: sch.decompose_reduction(sch.get_block("B"), sch.get_loops(sch.get_block("B"))[0]))


def product_with_epilogue(epilogue=lambda t, c, i, j: t[i, j] + c[j] * 2, reducer=te.sum, turned=False):
    """A product whose result is combined with a row."""
    a, b, c = te.placeholder((n, k), "i32", "A"), te.placeholder((k, m), "i32", "B"), te.placeholder((m,), "i32", "c")
    r = te.reduce_axis(k, "r")
    t = te.compute((n, m), lambda i, j: reducer(a[i, r] * b[r, j], r), name="T")
    if turned:
        d = te.compute((m, n), lambda j, i: epilogue(t, c, i, j), name="D")
    else:
        d = te.compute((n, m), lambda i, j: epilogue(t, c, i, j), name="D")
    return te.create_prim_func([a, b, c, d], name="product")


@pytest.mark.parametrize("turned", [False, True])
def test_fuse_reduction_epilogue(turned):
    def transform(sch):
        i, _, r = sch.get_loops("T")
        _, inner = sch.split(i, [None, 4])
        sch.reorder(r, inner)
        sch.fuse_reduction_epilogue("T", "D")
        sch.decompose_reduction("T", r)

    sch = scheduled(product_with_epilogue(turned=turned), transform)
    assert [block.name for block in sch.get_blocks()] == ["T_init", "T_update"]


def test_fuse_reduction_epilogue_of_a_maximum():
    func = product_with_epilogue(lambda t, c, i, j: te.maximum(c[j], t[i, j]), te.max)
    scheduled(func, lambda sch: sch.fuse_reduction_epilogue(sch.get_block("T"), sch.get_block("D")), NOT_EMPTY)


def test_a_product_that_begins_with_a_bias_is_not_padded():
    sch = Schedule(product_with_epilogue())
    sch.fuse_reduction_epilogue("T", "D")
    message = 'block "T" begins with elements of a buffer, which end where the padding begins'
    refuses(sch, message, "pad_einsum", sch.get_block("T"), [2, 2, 2])


def test_fuse_reduction_epilogue_refusals():
    clipped = Schedule(product_with_epilogue(lambda t, c, i, j: te.maximum(t[i, j], 0)))
    message = "expected block \"D\" to combine the result by 'arith.addi' with another value, got 'arith.maxsi'"
    refuses(clipped, message, "fuse_reduction_epilogue", "T", "D")
    twice = Schedule(product_with_epilogue(lambda t, c, i, j: t[i, j] + t[i, j] * c[j]))
    refuses(twice, 'block "D" uses the result in what it combines it with', "fuse_reduction_epilogue", "T", "D")
    sch = Schedule(product_with_epilogue())
    sch.cache_read("D", "T")
    refuses(sch, 'block "T_global" uses buffer "T", too', "fuse_reduction_epilogue", "T", "D")


INNER_SIZES = """
tir.prim_func @inner(%A: !tir.buffer<[4, 6], i32>, %C: !tir.buffer<[4], i32>) {
  %c4 = arith.constant 4 : index
  tir.for (%i) in (%c4) {
    %c6 = arith.constant 6 : index
    tir.for (%r) in (%c6) {
      %four = arith.constant 4 : index
      %six = arith.constant 6 : index
      tir.block "C" (%vi = spatial %i in %four, %vr = reduce %r in %six) {
        tir.init {
          %zero = arith.constant 0 : i32
          tir.store %zero, %C[%vi]
        }
        %c = tir.load %C[%vi]
        %a = tir.load %A[%vi, %vr]
        %s = arith.addi %c, %a : i32
        tir.store %s, %C[%vi]
      }
    }
  }
}
"""


@pytest.mark.parametrize(
    "transform",
    [
        lambda sch: sch.decompose_reduction("C", sch.get_loops("C")[0]),
        lambda sch: sch.rfactor(sch.get_loops("C")[1], 0),
        lambda sch: sch.reindex("C", "A"),
        lambda sch: sch.reorder(*reversed(sch.get_loops("C"))),
    ],
)
def test_sizes_that_are_computed_in_loops(transform):
    scheduled(parse_prim_func(INNER_SIZES), transform, [{}])


OWN_MEMORY = """
tir.prim_func @f[%n, %m](%A: !tir.buffer<[n, m], i32>, %B: !tir.buffer<[n], i32>) {
  tir.for (%i, %j) in (%n, %m) {
    tir.block "B" (%vi = spatial %i in %n, %vj = reduce %j in %m) {
      tir.init {
        %u = tir.alloc_buffer : !tir.buffer<[1], i32>
        %zero = arith.constant 0 : index
        %five = arith.constant 5 : i32
        tir.store %five, %u[%zero]
        %y = tir.load %u[%zero]
        tir.store %y, %B[%vi]
      }
      %t = tir.alloc_buffer : !tir.buffer<[1], i32>
      %c0 = arith.constant 0 : index
      %a = tir.load %A[%vi, %vj]
      %d = arith.addi %a, %a : i32
      tir.store %d, %t[%c0]
      %b = tir.load %B[%vi]
      %x = tir.load %t[%c0]
      %s = arith.addi %b, %x : i32
      tir.store %s, %B[%vi]
    }
  }
}"""


@pytest.mark.parametrize("position", [0, 1])
def test_decompose_reduction_of_a_block_with_memory_of_its_own(position):
    """What the init allocates goes with it, what the update allocates stays."""
    func = parse_prim_func(OWN_MEMORY).clone()
    sch = scheduled(func, lambda sch: sch.decompose_reduction("B", sch.get_loops("B")[position]))
    texts = {block.name: str(block.op) for block in sch.get_blocks()}
    assert texts.keys() == {"B_init", "B_update"}
    assert all(text.count("tir.alloc_buffer") == 1 for text in texts.values())


ODD_SIZES = tuple({"n": n, "m": m} for n in (0, 1, 3) for m in (0, 1, 4))


SUM = """
tir.prim_func @sum[%n, %m](%A: !tir.buffer<[n, m], i32>, %B: !tir.buffer<[n], i32>) {
  tir.for (%i, %j) in (%n, %m) {
    tir.block "B" (%v = spatial %i in %n, %w = reduce %j in %m) {
      tir.init {
        %zero = arith.constant 0 : i32
        tir.store %zero, %B[%v]
      }
      %a = tir.load %A[%v, %w]
      %b = tir.load %B[%v]
      %s = arith.addi %a, %b : i32
      tir.store %s, %B[%v]
    }
  }
}
"""


@pytest.mark.parametrize("size", ["m", "2 * m", "m + 1"])
def test_reductions_over_nothing_that_are_split_twice(size):
    def transform(sch):
        _, j = sch.get_loops("B")
        outer, _ = sch.split(j, [None, 3])
        sch.split(outer, [None, 4])

    text = SUM.replace("[n, m]", f"[n, {size}]").replace("%m", "%e").replace("[%n, %e]", "[%n, %m]")
    text = text.replace("  tir.for", f"  %e = tir.dim {size}\n  tir.for")
    scheduled(parse_prim_func(text), transform, ODD_SIZES)


def test_rfactor_in_a_block():
    def transform(sch):
        _, inner = sch.split(sch.get_loops("B")[1], [None, 4])
        sch.blockize(inner)
        sch.rfactor(sch.get_loops("B")[0])

    scheduled(
        parse_prim_func(
            SUM.replace("[n, m]", "[n, 4 * m]")
            .replace("%m", "%e")
            .replace("[%n, %e]", "[%n, %m]")
            .replace("  tir.for", "  %e = tir.dim 4 * m\n  tir.for")
        ),
        transform,
        ODD_SIZES,
    )


MAXIMUM = """
tir.prim_func @maximum[%n, %m](%A: !tir.buffer<[n, m], i32>, %B: !tir.buffer<[1], i32>) {
  %c1 = arith.constant 1 : index
  tir.for (%u, %i, %j) in (%c1, %n, %m) {
    tir.block "B" (%o = spatial %u in %c1, %v = reduce %i in %n, %w = reduce %j in %m) {
      tir.init {
        %least = arith.constant -100 : i32
        tir.store %least, %B[%o]
      }
      %a = tir.load %A[%v, %w]
      %b = tir.load %B[%o]
      %s = arith.maxsi %a, %b : i32
      tir.store %s, %B[%o]
    }
  }
}
"""


def test_partial_results_of_an_empty_outer_reduction():
    def transform(sch):
        sch.rfactor(sch.split(sch.get_loops("B")[2], [None, 3])[0])

    scheduled(parse_prim_func(MAXIMUM), transform, tuple({"n": n, "m": m} for n in (0, 2) for m in (0, 4)))


NEIGHBOURS = """
tir.prim_func @neighbours[%n, %m](%A: !tir.buffer<[n, m], i32>, %B: !tir.buffer<[n], i32>, %C: !tir.buffer<[n], i32>) {
  %zero = arith.constant 0 : i32
  tir.for (%i) in (%n) {
    tir.block "C" (%v = spatial %i in %n) {
      %b = tir.load %B[%v]
      tir.store %b, %C[%v]
    }
    tir.for (%j) in (%m) {
      tir.block "B" (%v = spatial %i in %n, %w = reduce %j in %m) {
        tir.init {
          tir.store %zero, %B[%v]
        }
        %a = tir.load %A[%v, %w]
        %b = tir.load %B[%v]
        %s = arith.addi %a, %b : i32
        tir.store %s, %B[%v]
      }
    }
  }
}
"""


def test_decompose_reduction_in_loops_in_which_others_read_the_result():
    sch = Schedule(parse_prim_func(NEIGHBOURS))
    outer, _ = sch.get_loops(sch.get_block("B"))
    message = 'block "C" reads in loop "i" what buffer "B" was before'
    refuses(sch, message, "decompose_reduction", sch.get_block("B"), outer)
    sizes = tuple({"n": n, "m": m} for n in (0, 1, 4) for m in (0, 3))
    inside = scheduled(
        parse_prim_func(NEIGHBOURS), lambda sch: sch.decompose_reduction("B", sch.get_loops("B")[1]), sizes
    )
    assert len(inside.get_blocks()) == 3
    first, second = NEIGHBOURS.index('    tir.block "C"'), NEIGHBOURS.index("    tir.for (%j)")
    last = NEIGHBOURS.rindex("  }\n}")
    behind = NEIGHBOURS[:first] + NEIGHBOURS[second:last] + NEIGHBOURS[first:second] + NEIGHBOURS[last:]
    scheduled(parse_prim_func(behind), lambda sch: sch.decompose_reduction("B", sch.get_loops("B")[0]), sizes)
