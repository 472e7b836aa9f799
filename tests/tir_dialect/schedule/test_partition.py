"""loop_partition and merge."""

from __future__ import annotations

import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import elementwise, k, m, matmul, n, row_sum, scheduled
from tests.tir_dialect.schedule.test_compute_location import softmax
from tests.tir_dialect.schedule.test_loops import condition, loops, refuses
from tir_dialect import te
from tir_dialect.schedule import Schedule

A = te.placeholder((n, m), "i32", "A")


def test_partition_separates_the_remainder():
    def transform(sch):
        _, j = sch.get_loops(sch.get_block("B"))
        j0, _ = sch.split(j, [None, 4])
        main, _ = sch.loop_partition(j0, ["floordiv(m, 4)"])
        sch.vectorize(sch.get_loops(sch.get_child_blocks(main)[0])[-1])

    sch = scheduled(elementwise(), transform)
    assert condition(sch.func, "B_j00") is None
    assert condition(sch.func, "B_j01") is not None


def test_partition_at_several_points():
    def transform(sch):
        i, _ = sch.get_loops(sch.get_block("B"))
        parts = sch.loop_partition(i, ["floordiv(n, 4)", "floordiv(n, 2) - floordiv(n, 4)", None])
        assert [part.name for part in parts] == ["i0", "i1", "i2"]
        assert sch.get_loops(sch.get_block("B_i2"))[0] is parts[2]
        sch.parallel(parts[1])

    scheduled(elementwise(), transform)


def test_partition_of_a_decomposed_reduction():
    def transform(sch):
        block = sch.get_block("C")
        r = sch.get_loops(block)[2]
        sch.decompose_reduction(block, r)
        r0, _ = sch.split(r, [None, 4])
        sch.loop_partition(r0, ["floordiv(k, 4)"])

    scheduled(matmul(), transform)


@pytest.mark.parametrize("lengths", [[3], [3, 5], [3, None], [None, 3], [5, None, 3], [2, 3, None, 4, 1]])
def test_partition_where_a_size_decides_what_fits(lengths):
    def transform(sch):
        for loop in (sch.get_loops("B")[0], sch.get_loops("C")[1]):
            assert len(sch.loop_partition(loop, lengths)) == len(lengths) + (None not in lengths)

    scheduled(elementwise(), transform)


def test_partition_of_what_does_not_fit_is_refused():
    b = te.compute((n, 5), lambda i, j: A[i, j] * 2, name="B")
    sch = Schedule(te.create_prim_func([A, b]))
    message = "what is left, -3, is not known to be at least 0"
    refuses(sch, message, "loop_partition", sch.get_loops("B")[1], [8, None])


def test_partition_refusals():
    sch = Schedule(row_sum())
    i, r = sch.get_loops(sch.get_block("B"))
    refuses(sch, "expected at least one length and at most one None", "loop_partition", i, [])
    for length in (0, -2):
        refuses(sch, f"expected lengths of at least 1, got {length}", "loop_partition", i, [length, None])
    refuses(sch, "expected at least two parts, got one with all n iterations", "loop_partition", i, ["n"])
    refuses(sch, "the length of a part, n - 4, is not known to be at least 0", "loop_partition", i, ["n - 4"])
    refuses(sch, 'length q uses "q", which is no symbol', "loop_partition", i, ["q"])
    message = 'block "B" has an init and is reduced over loop "r"; use decompose_reduction first'
    refuses(sch, message, "loop_partition", r, ["floordiv(m, 2)"])
    sch.parallel(i)
    refuses(sch, 'expected a serial loop, got parallel loop "i"', "loop_partition", i, [0])


@pytest.mark.parametrize("depth", [1, 2])
def test_merge_of_stages(depth):
    def transform(sch):
        for level in range(depth):
            sch.merge(*(sch.get_loops(sch.get_block(name))[level] for name in ("B", "C")))
        sch.parallel(sch.get_loops(sch.get_block("B"))[0])

    sch = scheduled(elementwise(), transform)
    assert loops(sch.func) == (["i", "j", "j"] if depth == 1 else ["i", "j"])


def test_merge_takes_the_loops_around_along():
    def transform(sch):
        first, second = (sch.get_loops(sch.get_block(name)) for name in ("B", "C"))
        sch.merge(first[1], second[1])
        sch.parallel(first[0])
        sch.vectorize(sch.split(first[1], [None, 4])[1])

    sch = scheduled(elementwise(), transform)
    assert loops(sch.func) == ["i", "j0", "j1"]


def test_merge_refuses_nests_that_hold_more():
    sch = Schedule(elementwise())
    sch.reverse_compute_at(sch.get_block("C"), sch.get_loops(sch.get_block("B"))[0])
    own = [sch.get_loops(sch.get_block(name))[1] for name in ("B", "C")]
    assert sch.merge(*own) is own[0]
    b = te.compute((n, m), lambda i, j: A[i, j] * 2, name="B")
    c = te.compute((n, m), lambda i, j: A[i, j] + 1, name="C")
    d = te.compute((n, m), lambda i, j: b[i, j] + c[i, j], name="D")
    sch = Schedule(te.create_prim_func([A, d]))
    nests = {name: sch.get_loops(sch.get_block(name)) for name in "BCD"}
    sch.merge(nests["B"][0], nests["C"][0])
    refuses(sch, 'loop "i" holds more than loop "j"', "merge", nests["B"][1], nests["D"][1])
    shared = te.compute((n, m), lambda i, j: b[i, m - 1 - j] + 1, name="E")
    sch = Schedule(te.create_prim_func([A, shared]))
    nests = {name: sch.get_loops(sch.get_block(name)) for name in "BE"}
    refuses(sch, 'share elements of buffer "B" across iterations', "merge", nests["B"][1], nests["E"][1])


def test_merge_of_all_stages_over_rows():
    def transform(sch):
        names = ("top", "shifted", "total", "out")
        row = sch.merge(*(sch.get_loops(sch.get_block(name))[0] for name in names))
        sch.parallel(row)

    scheduled(softmax(), transform)


def test_merge_refusals():
    sch = Schedule(softmax())
    top, shifted = (sch.get_loops(sch.get_block(name)) for name in ("top", "shifted"))
    refuses(sch, "expected at least two loops, got 1", "merge", top[0])
    refuses(sch, 'loop "i" does not come right after loop "i"', "merge", shifted[0], top[0])
    refuses(sch, 'loops "i" and "j" stand in 0 and 1 loops of their own', "merge", top[0], shifted[1])
    row = sch.merge(top[0], shifted[0])
    assert row is top[0]
    refuses(sch, 'the loops share elements of buffer "top" across iterations', "merge", top[1], shifted[1])
    sch = Schedule(row_sum())
    i, _ = sch.get_loops(sch.get_block("B"))
    sch.annotate(i, "note", 1)
    refuses(sch, 'expected loops without annotations, got "note" of loop "i"', "merge", i, i)


def test_merge_refuses_other_extents_and_neighbours():
    b = te.compute((n, m), lambda i, j: A[i, j] * 2, name="B")
    c = te.compute((m, n), lambda j, i: b[i, j] + 1, name="C")
    d = te.compute((n, m), lambda i, j: b[n - 1 - i, j] + c[j, i], name="D")
    sch = Schedule(te.create_prim_func([A, d]))
    nests = {name: sch.get_loops(sch.get_block(name)) for name in "BCD"}
    refuses(sch, 'loops "i" and "j" have extents n and m', "merge", nests["B"][0], nests["C"][0])
    sch.reorder(*nests["C"][::-1])
    refuses(sch, "share elements of buffer", "merge", *(sch.get_loops(sch.get_block(name))[0] for name in "BCD"))
    sch.merge(sch.get_loops(sch.get_block("B"))[0], sch.get_loops(sch.get_block("C"))[0])
    assert k.as_symbol == "k"


def test_merge_of_loops_with_an_allocation_between():
    text = """
    tir.prim_func @copies[%n](%A: !tir.buffer<[n], i32>, %C: !tir.buffer<[n], i32>) {
      %T = tir.alloc_buffer : !tir.buffer<[n], i32>
      tir.for (%i) in (%n) {
        tir.block "T" (%v = spatial %i in %n) {
          %a = tir.load %A[%v]
          tir.store %a, %T[%v]
        }
      }
      %U = tir.alloc_buffer : !tir.buffer<[n], i32>
      tir.for (%i) in (%n) {
        tir.block "U" (%v = spatial %i in %n) {
          %t = tir.load %T[%v]
          tir.store %t, %U[%v]
          tir.store %t, %C[%v]
        }
      }
    }
    """

    def transform(sch):
        sch.merge(sch.get_loops("T")[0], sch.get_loops("U")[0])

    scheduled(parse_prim_func(text), transform, ({"n": 0}, {"n": 3}))
