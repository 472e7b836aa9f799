"""reindex, pad_einsum and decompose_padding."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import elementwise, k, m, matmul, n, scheduled
from tests.tir_dialect.schedule.test_loops import condition, refuses
from tests.tir_dialect.schedule.test_storage import allocations
from tir_dialect import te
from tir_dialect.schedule import Schedule

A = te.placeholder((n, m), "i32", "A")


def convolution():
    x = te.placeholder((2 * n + 1, m), "i32", "X")
    w = te.placeholder((3, k), "i32", "W")
    r = te.reduce_axis(3, "r")
    out = te.compute((n, k, m), lambda i, c, j: te.sum(x[2 * i + r, j] * w[r, c], r), name="C")
    return te.create_prim_func([x, w, out], name="convolution")


def test_reindex_of_a_window():
    def transform(sch):
        copy = sch.reindex(sch.get_block("C"), "X")
        assert copy.name == "X_reindex"

    sch = scheduled(convolution(), transform)
    assert allocations(sch) == {"X_reindex": "!tir.buffer<[n, m, 3], i32>"}


def test_reindex_of_both_sides():
    def transform(sch):
        block = sch.get_block("C")
        sch.reindex(block, 0, "read")
        sch.reindex(block, 1, "read")
        sch.reindex(block, 0, "write")

    sch = scheduled(convolution(), transform)
    assert allocations(sch)["C_reindex"] == "!tir.buffer<[n, k, m], i32>"


def test_reindex_of_reversed_reads():
    spread = te.compute((n, m), lambda i, j: A[n - 1 - i, m - 1 - j], name="S")
    scheduled(te.create_prim_func([A, spread]), lambda sch: sch.reindex(sch.get_block("S"), 0))


def sums_of_sums():
    """Rows of sums, each of which a second sum reads as soon as it is there."""
    x = te.placeholder((n, m, k), "i32", "X")
    r, q = te.reduce_axis(k, "r"), te.reduce_axis(m, "q")
    b = te.compute((n, m), lambda i, j: te.sum(x[i, j, r], r), name="B")
    c = te.compute((n,), lambda i: te.sum(b[i, q], q), name="C")
    return te.create_prim_func([x, c], name="sums_of_sums")


@pytest.mark.parametrize("depth", [0, 1])
def test_reindex_beside_other_users(depth):
    def transform(sch):
        sch.compute_at("B", sch.get_loops(sch.get_block("C"))[depth])
        sch.reindex_cache_write("B", 0, "local", lambda i, j, r: (j, i))
        sch.reindex_cache_read("C", 0, "local", lambda i, q: (i, q // 2, q % 2))
        sch.reindex_cache_write("C", 0, "local", lambda i, q: i)

    sch = scheduled(sums_of_sums(), transform)
    assert sorted(allocations(sch)) == ["B", "B_local", "C_local"]


GUARDED = """
tir.prim_func @f[%n](%A: !tir.buffer<[n], i32>, %Y: !tir.buffer<[n, 3], i32>) {
  %c3 = arith.constant 3 : index
  tir.for (%i, %r) in (%n, %c3) {
    %s = arith.addi %i, %r : index
    %inside = arith.cmpi slt, %s, %n : index
    WHERE
      %p = arith.addi %vi, %vr : index
      %a = tir.load %A[%p]
      tir.store %a, %Y[%vi, %vr]
    END
  }
}
"""


@pytest.mark.parametrize(
    ("before", "behind", "message"),
    [
        ("", "where %inside", 'block "B" has a condition that is not about the ends of its iterators'),
        ("tir.if %inside {", "", "block \"B\" stands in a 'tir.if'"),
    ],
)
def test_reindex_of_what_is_guarded(before, behind, message):
    """Other instances than those that run might be outside of the buffer."""
    head = f'{before} tir.block "B" (%vi = spatial %i in %n, %vr = spatial %r in %c3) {behind} {{'
    func = parse_prim_func(GUARDED.replace("WHERE", head).replace("END", "} }" if before else "}"))
    refuses(Schedule(func), message, "reindex", "B", "A")


def test_reindex_of_some_instances():
    text = """
    tir.prim_func @f[%n](%A: !tir.buffer<[n], i32>, %Y: !tir.buffer<[n, n], i32>) {
      tir.for (%i) in (%n) {
        tir.block "B" (%vi = spatial %i in %n, %vj = spatial %i in %n) {
          %p = arith.subi %vi, %vj : index
          %a = tir.load %A[%p]
          tir.store %a, %Y[%vi, %vj]
        }
      }
    }
    """
    message = 'the loops of block "B" do not take its iterators through all values'
    refuses(Schedule(parse_prim_func(text)), message, "reindex", "B", "A")


def test_reindex_of_what_a_block_inside_accesses():
    sch = Schedule(elementwise())
    outer = sch.blockize(sch.get_loops(sch.get_block("B"))[1])
    message = 'block "B_o" uses buffer "B" in block "B", which is inside of it; name that block'
    refuses(sch, message, "reindex", outer, 0, "write")


def test_reindex_refusals():
    sch = Schedule(elementwise())
    block = sch.get_block("B")
    refuses(sch, 'expected access "read" or "write", got "both"', "reindex", block, 0, "both")
    two = te.compute((n, m), lambda i, j: A[i, j] + A[n - 1 - i, j], name="B")
    sch = Schedule(te.create_prim_func([A, two]))
    refuses(sch, 'block "B" uses buffer "A" at 2 places', "reindex", sch.get_block("B"), 0)
    padded = te.compute((n, m + 1), lambda i, j: te.if_then_else(j > 0, A[i, j - 1], 0), name="B")
    sch = Schedule(te.create_prim_func([A, padded]))
    refuses(sch, 'block "B" uses buffer "A" in vectors or under a condition', "reindex", sch.get_block("B"), 0)


@settings(max_examples=10)
@given(st.sampled_from([1, 4]), st.sampled_from([1, 8]), st.sampled_from([1, 2]))
def test_padding_of_a_matmul(rows, columns, inner):
    def transform(sch):
        block = sch.get_block("C")
        sch.pad_einsum(block, [rows, columns, inner])
        i, j, r = sch.get_loops(block)
        sch.tile(i, j, [rows, columns])
        sch.split(r, [None, inner])

    sch = scheduled(matmul(), transform)
    assert condition(sch.func, "C") is None
    padded = {
        name
        for name, factors in (("A_pad", rows * inner), ("B_pad", inner * columns), ("C_pad", rows * columns))
        if factors > 1
    }
    assert allocations(sch).keys() == padded


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_padding_of_floats(dtype):
    scheduled(matmul(dtype), lambda sch: sch.pad_einsum(sch.get_block("C"), [4, 8, 2]))


def test_padding_of_a_wide_accumulator():
    a, b = te.placeholder((n, k), "i8", "A"), te.placeholder((k, m), "i8", "B")
    r = te.reduce_axis(k, "r")
    c = te.compute((n, m), lambda i, j: te.sum(te.cast(a[i, r], "i32") * te.cast(b[r, j], "i32"), r), name="C")
    scheduled(te.create_prim_func([a, b, c]), lambda sch: sch.pad_einsum(sch.get_block("C"), [4, 8, 2]))


def test_padding_refusals():
    sch = Schedule(matmul())
    block = sch.get_block("C")
    refuses(sch, "expected 3 factors of at least 1, got [4, 4]", "pad_einsum", block, [4, 4])
    refuses(sch, "expected 3 factors of at least 1, got [4, 4, 0]", "pad_einsum", block, [4, 4, 0])
    sch.split(sch.get_loops(block)[0], [None, 4])
    refuses(sch, 'block "C" has a condition, pad it before its loops are split', "pad_einsum", block, [4, 4, 4])
    sch = Schedule(elementwise())
    refuses(sch, 'block "B" has no init', "pad_einsum", sch.get_block("B"), [4, 4])


def test_padding_refuses_what_zeros_do_not_hide():
    r = te.reduce_axis(m, "r")
    scale = te.placeholder((n,), "i32", "scale")
    scaled = te.compute((n,), lambda i: te.sum(A[i, r] * scale[i], r), name="B")
    sch = Schedule(te.create_prim_func([A, scale, scaled]))
    message = 'reduce iterator "vr" does not occur in the indices of buffer "scale"'
    refuses(sch, message, "pad_einsum", sch.get_block("B"), [1, 4])
    sch.pad_einsum(sch.get_block("B"), [4, 1])
    squares = te.compute((n,), lambda i: te.sum(A[i, r] + 1, r), name="B")
    sch = Schedule(te.create_prim_func([A, squares]))
    refuses(
        sch, "block \"B\" multiplies by 'arith.addi', expected elements only", "pad_einsum", sch.get_block("B"), [1, 4]
    )
    top = te.compute((n,), lambda i: te.max(A[i, r], r), name="B")
    sch = Schedule(te.create_prim_func([A, top]))
    refuses(sch, 'block "B" does not add up one result', "pad_einsum", sch.get_block("B"), [1, 4])
    sch = Schedule(convolution())
    refuses(sch, 'reads buffer "X" at other indices than iterators', "pad_einsum", sch.get_block("C"), [4, 1, 1, 1])


def test_copies_at_the_indices_that_a_map_gives():
    def transform(sch):
        sch.reindex_cache_read("C", 0, "local", lambda i, j, r: (r // 2, i, r % 2))
        sch.reindex_cache_write("C", "C", "global", lambda i, j, r: j + 16 * i)
        message = 'index map (i, j, r) -> (j) uses "j", which is not in the indices of the access'
        refuses(sch, message, "reindex_cache_read", "C", "A_local", "local", "(i, j, r) -> (j)")

    sizes = [{"n": 3, "m": 5, "k": 7}, {"n": 1, "m": 16, "k": 2}]
    scheduled(matmul(m=(1, 16)), transform, sizes)


def padded(otherwise=lambda i, j: 7):
    """A copy between borders, and a stencil over it."""

    def element(i, j):
        inside = (i >= 1) & (i < n + 1) & (j >= 2) & (j <= m + 1)
        return te.if_then_else(inside, A[i - 1, j - 2], otherwise(i, j))

    p = te.compute((n + 2, m + 3), element, name="P")
    c = te.compute((n, m), lambda i, j: p[i, j] + p[i + 2, j + 3], name="C")
    return te.create_prim_func([A, c], name="padded")


@pytest.mark.parametrize("position", [0, 1])
def test_decompose_padding(position):
    def transform(sch):
        block = sch.get_block("P")
        assert sch.can_decompose_padding(block, sch.get_loops(block)[position])
        made = sch.decompose_padding(block, sch.get_loops(block)[position])
        assert made.name == "P_pad_const"

    sch = scheduled(padded(), transform)
    assert (sch.get_block("P").op.condition is None) == (position == 0)


@pytest.mark.parametrize("position", [0, 2])
def test_decompose_padding_of_a_tile(position):
    def transform(sch):
        i, j = sch.get_loops(sch.get_block("C"))
        outer = sch.tile(i, j, [2, 4])[1]
        block = sch.get_block("P")
        sch.compute_at(block, outer)
        sch.decompose_padding(block, sch.get_loops(block)[position])
        sch.vectorize(sch.get_loops("P_pad_const")[-1])

    scheduled(
        padded(lambda i, j: te.cast(i + 2 * j, "i32")),
        transform,
        [{"n": 3, "m": 5}, {"n": 4, "m": 4}, {"n": 0, "m": 1}],
    )


def test_decompose_padding_refusals():
    sch = Schedule(elementwise())
    assert not sch.can_decompose_padding(sch.get_block("B"), sch.get_loops("B")[0])
    refuses(
        sch, 'block "B" does not choose what it stores by a condition', "decompose_padding", "B", sch.get_loops("B")[0]
    )
    sch = Schedule(padded(lambda i, j: A[0, 0]))
    refuses(sch, "the padding of block \"P\" comes from 'tir.load'", "decompose_padding", "P", sch.get_loops("P")[0])
    sch = Schedule(padded())
    message = 'loop "i" is not around block "P"'
    refuses(sch, message, "decompose_padding", "P", sch.get_loops("C")[0])
    sch.compute_at("P", sch.get_loops("C")[0])
    sch.parallel(sch.get_loops("C")[0])
    message = 'buffer "P" is allocated in parallel loop "i"'
    refuses(sch, message, "decompose_padding", "P", sch.get_loops("P")[0])


def test_where_there_is_no_padding():
    inside = te.compute((n, m), lambda i, j: te.if_then_else(te.all(i >= 0, j < m), A[i, j], 0), name="P")
    sch = Schedule(te.create_prim_func([A, inside]))
    loop = sch.get_loops("P")[0]
    refuses(sch, 'block "P" stores no padding, its condition always holds', "decompose_padding", "P", loop)
    assert not sch.can_decompose_padding("P", loop)
