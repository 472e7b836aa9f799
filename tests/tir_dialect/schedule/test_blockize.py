"""blockize."""

from __future__ import annotations

import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import (
    NOT_EMPTY,
    blur,
    check_same,
    elementwise,
    m,
    matmul,
    n,
    row_sum,
    scheduled,
)
from tests.tir_dialect.schedule.test_loops import loops, refuses
from tests.tir_dialect.schedule.test_reductions import product_with_epilogue
from tir_dialect import te
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.schedule import Schedule

SIZES = ({"n": 4, "m": 8, "k": 2}, {"n": 8, "m": 16, "k": 4}, {"n": 12, "m": 8, "k": 6})


def tiled_matmul(sch, factors=(4, 8, 2)):
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    (i0, i1), (j0, j1), (r0, r1) = (
        sch.split(loop, [None, factor]) for loop, factor in zip((i, j, r), factors, strict=True)
    )
    sch.reorder(i0, j0, r0, i1, j1, r1)
    return block, i1


def test_blockize_of_a_tile_of_an_elementwise_block():
    def transform(sch):
        block = sch.get_block("B")
        i, j = sch.get_loops(block)
        _, _, i1, _ = sch.tile(i, j, [4, 8])
        outer = sch.blockize(i1)
        assert outer.name == "B_o"
        assert [loop.name for loop in sch.get_loops(outer)] == ["i0", "j0"]
        assert [loop.name for loop in sch.get_loops(block)] == ["i1", "j1"]

    scheduled(elementwise(), transform)


def test_blockize_of_a_reduction_moves_its_init():
    def transform(sch):
        block, loop = tiled_matmul(sch)
        outer = sch.blockize(loop)
        assert block.op.init is None
        assert outer.op.init is not None

    scheduled(matmul(), transform)


def test_primitives_inside_and_outside_of_the_new_block():
    def transform(sch):
        block, loop = tiled_matmul(sch)
        outer = sch.blockize(loop)
        i0, _, r0 = sch.get_loops(outer)
        sch.parallel(i0)
        sch.decompose_reduction(outer, r0)
        i1, j1, r1 = sch.get_loops(block)
        sch.reorder(r1, i1, j1)
        sch.vectorize(j1)
        sch.unroll(r1)
        refuses(sch, '"i1" and "i0" are not in the same block', "reorder", i0, i1)

    scheduled(matmul(), transform)


def test_blockize_of_everything():
    def transform(sch):
        sch.blockize(sch.get_loops(sch.get_block("B"))[0])

    sch = scheduled(row_sum(), transform)
    assert loops(sch.func) == ["i", "i", "r"]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_blockize_at_each_loop(position):
    scheduled(matmul(), lambda sch: sch.blockize(sch.get_loops(sch.get_block("C"))[position]))


def test_blockize_of_exact_tiles_has_no_condition():
    a = te.placeholder((4 * n, 8 * m), "i32", "A")
    b = te.compute((4 * n, 8 * m), lambda i, j: a[i, j] * 2, name="B")

    def transform(sch):
        i, j = sch.get_loops(sch.get_block("B"))
        sch.blockize(sch.tile(i, j, [4, 8])[2])

    sch = scheduled(te.create_prim_func([a, b]), transform)
    assert sch.get_block("B").op.condition is None


def test_blockize_refusals():
    sch = Schedule(elementwise())
    i, j = sch.get_loops(sch.get_block("B"))
    sch.merge(i, sch.get_loops(sch.get_block("C"))[0])
    refuses(sch, 'expected one block in loop "i", and loops only around it', "blockize", i)
    sch = Schedule(matmul())
    block, _ = tiled_matmul(sch)
    nest = sch.get_loops(block)
    sch.reorder(nest[3], nest[0])
    message = 'iterator "vi" of block "C" starts at'
    refuses(sch, message, "blockize", sch.get_loops(block)[1])
    assert j.name == "j"


PAIR = """
tir.prim_func @f[%n, %m](%A: !tir.buffer<[n, 2 * m], i32>, %B: !tir.buffer<[n, m], i32>, %C: !tir.buffer<[n, m], i32>) {
  tir.for (%i) in (%n) {
    tir.for (%j) in (%m) {
      tir.block "B" (%vi = spatial %i in %n, %vj = spatial %j in %m) {
        %a = tir.load %A[%vi, %vj]
        tir.store %a, %B[%vi, %vj]
      }
    }
    %back = arith.subi %n, %i : index
    %c1 = arith.constant 1 : index
    %last = arith.subi %back, %c1 : index
    tir.for (%j) in (%m) {
      tir.block "C" (%vi = spatial %last in %n, %vj = spatial %j in %m) {
        %b = tir.load %A[%vi, %vj]
        tir.store %b, %C[%vi, %vj]
      }
    }
  }
}
"""


def test_blockize_of_several_blocks():
    """One block for both, in which the loops around are iterators, also where indices are computed from these."""

    def transform(sch):
        outer = sch.blockize([sch.get_block("B"), sch.get_block("C")])
        assert (outer.name, [it.kind.value for it in outer.op.iterators]) == ("outer_B_C_", ["spatial"])
        (i,) = sch.get_loops(outer)
        assert [loop.name for loop in sch.get_loops(sch.get_block("C"))] == ["j"]
        sch.parallel(sch.split(i, [None, 2])[0])

    scheduled(parse_prim_func(PAIR), transform)


def test_blockize_of_what_a_loaded_value_decides():
    text = PAIR.replace("%A: !tir.buffer<[n, 2 * m], i32>", "%A: !tir.buffer<[n, 2 * m], i64>").replace(
        "%last = arith.subi %back, %c1 : index",
        "%p = tir.load %A[%i, %c1] %q = arith.index_cast %p : i64 to index",
    )
    text = text.replace("spatial %last", "opaque %q").replace("[n, m], i32", "[n, m], i64")
    sch = Schedule(parse_prim_func(text))
    refuses(sch, "the blocks use what 'tir.load' gives in the loops around them", "blockize", [sch.get_block("C")])
    refuses(sch, "expected a loop or at least one block, got none", "blockize", [])


def test_tiles_that_may_be_empty():
    def transform(sch):
        sch.blockize(sch.split(sch.get_loops("B")[1], [7, None])[1])

    scheduled(elementwise(), transform)


def test_all_of_an_axis_that_may_be_empty_is_one_tile():
    def transform(sch):
        loop = sch.get_loops("B")[0]
        sch.blockize(loop)
        sch.blockize(loop)

    scheduled(blur(), transform)
    scheduled(row_sum(), transform)


def test_copies_in_a_block_are_of_what_an_instance_updates():
    def transform(sch):
        sch.blockize(sch.get_loops("C")[2])
        sch.cache_inplace("C", 0, "local")

    scheduled(matmul(), transform)


def test_blocks_in_an_init_stay_there():
    def transform(sch):
        sch.fuse_reduction_epilogue("T", "D")
        sch.blockize(sch.get_loops("T")[1])
        message = "expected blocks that are all in the init of a block, or all behind it"
        refuses(sch, message, "blockize", [sch.get_block("T_init"), sch.get_block("T")])
        sch.reindex("T_init", 0, "read")

    scheduled(product_with_epilogue(), transform)


def test_an_init_stays_in_front_of_a_loop_that_may_have_no_iteration():
    sch = Schedule(row_sum())
    message = 'block "B" has an init and is reduced over loop "r", which may have no iteration'
    refuses(sch, message, "blockize", [sch.get_block("B")])
    sch.decompose_reduction("B", sch.get_loops(sch.get_block("B"))[1])
    sch.blockize([sch.get_block("B_update")])
    check_same(row_sum(), sch.func)
    sch = scheduled(
        row_sum(),
        lambda sch: (
            sch.read_at(sch.get_loops("B")[1], "B", 0, "local"),
            sch.split(sch.get_loops("B")[1], [7, None, 1]),
        ),
    )
    assert not any(isinstance(op, IfOp) for op in sch.func.walk()), "the init would be inside of it"
    scheduled(row_sum(m=(1, 64)), lambda sch: sch.blockize([sch.get_block("B")]), NOT_EMPTY)


def test_what_follows_several_blocks_is_always_the_same():
    """Constants come in the order in which uses are changed, which is that of the text."""
    a = te.placeholder((n, m), "i32", "A")
    b = te.compute((2 * n, m), lambda i, j: a[i // 2, j] + te.cast(i, "i32"), name="B")
    func = te.create_prim_func([a, te.compute((n, m), lambda i, j: b[i * 2, j] + b[2 * i + 1, j], name="C")])

    def scheduled_text() -> str:
        sch = Schedule(func.clone())
        sch.blockize([sch.get_block("C"), sch.get_block("B")])
        sch.transform_layout("B", 0, "(i, j) -> (floordiv(i + 1, 4), j, mod(i + 1, 4))", 0)
        return str(sch.func)

    assert len({scheduled_text() for _ in range(16)}) == 1


def test_loops_around_a_block_of_several_with_conditions():
    """Blocks inside refer to its iterators, whatever becomes of the loops."""

    def wrapped(sch):
        i, _ = sch.get_loops("B")
        sch.split(i, [None, 4])
        return sch.blockize([sch.get_block("B")])

    def fused(sch):
        outer, inner, _ = sch.get_loops(wrapped(sch))
        sch.fuse(outer, inner)

    def parted(sch):
        sch.loop_partition(sch.get_loops(wrapped(sch))[0], ["floordiv(n, 8)"])

    scheduled(elementwise(), fused)
    scheduled(elementwise(), parted)


TRIANGLE = """
tir.prim_func @triangle[%n](%A: !tir.buffer<[n, n], i32>, %B: !tir.buffer<[n], i32>) {
  tir.for (%i) in (%n) {
    tir.for (%r) in (%i) {
      tir.block "B" (%v = spatial %i in %n, %w = reduce %r in %n) {
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
}
"""


def test_an_init_that_an_empty_loop_leaves_out_is_not_run():
    sch = Schedule(parse_prim_func(TRIANGLE))
    message = 'the loops may leave out the init of block "B"'
    refuses(sch, message, "blockize", sch.get_loops("B")[0])


def test_an_init_of_a_loop_that_may_be_empty_is_not_run():
    text = TRIANGLE.replace("tir.for (%r) in (%i)", "tir.for (%z, %r) in (%half, %n)").replace(
        "[n], i32>) {", "[n], i32>) {\n%one = arith.constant 1 : index\n%half = tir.dim min(n, 1)", 1
    )
    sch = Schedule(parse_prim_func(text))
    refuses(sch, 'loop "z" may be empty, but the init of "B" would run', "blockize", sch.get_loops("B")[1])


def test_bounds_of_loops_inside_do_not_depend_on_those_outside():
    func = parse_prim_func("""
tir.prim_func @bounds[%n](%A: !tir.buffer<[n], i32>) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  tir.for (%i) in (%n) {
    %end = arith.addi %i, %c1 : index
    tir.for (%j) in (%i to %end) {
      tir.block "A" (%v = spatial %i in %n) {
        tir.store %zero, %A[%v]
      }
    }
  }
}
""")
    sch = Schedule(func)
    refuses(sch, 'the bounds of loop "j" depend on loops outside', "blockize", sch.get_loops("A")[1])


def test_tiles_that_cannot_be_counted_where_they_are_empty():
    a = te.placeholder((2 * n,), "i32", "A")
    sch = Schedule(te.create_prim_func([a, te.compute((2 * n,), lambda i: a[i] * 2, name="B")]))
    _, inner = sch.split(sch.get_loops("B")[0], [2, None])
    first, _ = sch.loop_partition(inner, [1, None])
    refuses(sch, "the loops inside may have no iteration", "blockize", first)
