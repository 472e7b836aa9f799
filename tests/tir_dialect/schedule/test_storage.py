"""cache_read, cache_write, set_scope, storage_align."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import NOT_EMPTY, elementwise, k, m, matmul, n, row_sum, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect import te
from tir_dialect.ops.memory import AllocBufferOp, LoadOp
from tir_dialect.schedule import Schedule

A = te.placeholder((n, m), "i32", "A")


def allocations(sch):
    return {op.buffer.name_hint: str(op.buffer.type) for op in sch.func.walk() if isinstance(op, AllocBufferOp)}


@pytest.mark.parametrize("which", [0, 1, "A", "B"])
def test_cache_read(which):
    def transform(sch):
        copy = sch.cache_read(sch.get_block("C"), which, "local")
        assert copy.name == ("A_local" if which in (0, "A") else "B_local")

    scheduled(matmul(), transform)


@pytest.mark.parametrize(("which", "name"), [(0, "A_local"), (1, "I_local"), (2, "B_local")])
def test_what_is_read_comes_before_what_tells_its_place(which, name):
    places, b = te.placeholder((n,), "i64", "I"), te.placeholder((n,), "i32", "B")
    c = te.compute((n, m), lambda i, j: A[te.minimum(te.maximum(places[i], 0), 0), j] + b[i], name="C")
    func = te.create_prim_func([A, places, b, c])
    scheduled(func, lambda sch: sch.cache_read("C", which, "local").name == name or pytest.fail(name), NOT_EMPTY)


@settings(max_examples=10)
@given(st.sampled_from([2, 4]), st.sampled_from([2, 8]), st.integers(0, 2))
def test_packing_a_tile_of_a_matmul(rows, columns, position):
    def transform(sch):
        block = sch.get_block("C")
        i, j, r = sch.get_loops(block)
        i0, j0, i1, j1 = sch.tile(i, j, [rows, columns])
        sch.reorder(i0, j0, r, i1, j1)
        loop = (i0, j0, r)[position]
        for which in ("A", "B"):
            sch.compute_at(sch.cache_read(block, which), loop)

    sch = scheduled(matmul(), transform)
    assert set(allocations(sch)) == {"A_global", "B_global"}


@pytest.mark.parametrize("position", [None, 0, 1])
def test_cache_write(position):
    def transform(sch):
        block = sch.get_block("C")
        copy = sch.cache_write(block, 0, "local")
        if position is not None:
            sch.reverse_compute_at(copy, sch.get_loops(block)[position])

    sch = scheduled(matmul(), transform)
    assert list(allocations(sch)) == ["C_local"]


@pytest.mark.parametrize("readers", [["C"], ["D"], ["C", "D"]])
def test_consumers_of_a_written_cache(readers):
    B = te.compute((n, m), lambda i, j: A[i, j] * 2, "B")
    C, D = (te.compute((n, m), lambda i, j, f=f: B[i, j] + f, name) for f, name in ((1, "C"), (2, "D")))
    sch = scheduled(te.create_prim_func([A, B, C, D]), lambda sch: sch.cache_write("B", 0, "local", readers))
    for name in "CD":
        (buffer,) = {op.buffer.name_hint for op in sch.get_block(name).op.walk() if isinstance(op, LoadOp)}
        assert buffer == ("B_local" if name in readers else "B")
    refuses(
        Schedule(te.create_prim_func([A, B, C])),
        'expected a block that reads buffer "C"',
        "cache_write",
        "C",
        0,
        "local",
        ["B"],
    )


def test_consumers_that_need_more_than_the_cache():
    text = """
    tir.prim_func @f[%n in [2, 64]](%A: !tir.buffer<[n], i32>, %Y: !tir.buffer<[n], i32>, %s: i32) {
      %half = tir.dim n - 1
      tir.for (%i) in (%half) {
        tir.block "part" (%v = spatial %i in %half) {
          tir.store %s, %A[%v]
        }
      }
      tir.for (%i) in (%n) {
        tir.block "all" (%v = spatial %i in %n) {
          %a = tir.load %A[%v]
          tir.store %a, %Y[%v]
        }
      }
    }
    """
    sch = Schedule(parse_prim_func(text))
    refuses(
        sch,
        'block "all" reads elements of buffer "A" that the cache does not have',
        "cache_write",
        "part",
        0,
        "local",
        ["all"],
    )
    swapped = te.compute((n, m), lambda i, j: A[i, j], "B")
    refuses(Schedule(te.create_prim_func([A, swapped])), 'got "B"', "cache_write", "B", 0, "global", ["B"])


@pytest.mark.parametrize("readers", [[], ["C"], ["D"], ["C", "D"]])
def test_consumers_in_and_behind_the_loops(readers):
    """`B` and `C` share rows; `D` reads all of them afterwards: the cache outlives the loop if `D` reads it."""
    B = te.compute((n, m), lambda i, j: A[i, j] * 2, "B")
    C, D = (te.compute((n, m), lambda i, j, f=f: B[i, j] + f, name) for f, name in ((1, "C"), (2, "D")))

    def transform(sch):
        sch.reverse_compute_at("C", sch.get_loops(sch.get_block("B"))[0])
        sch.cache_write("B", 0, "local", readers)

    sch = scheduled(te.create_prim_func([A, B, C, D]), transform)
    for name in "CD":
        (buffer,) = {op.buffer.name_hint for op in sch.get_block(name).op.walk() if isinstance(op, LoadOp)}
        assert buffer == ("B_local" if name in readers else "B")


NEXT = """
tir.prim_func @f[%n in [1, 64]](%A: !tir.buffer<[n], i32>, %B: !tir.buffer<[n], i32>, %Y: !tir.buffer<[n], i32>) {
  %last = tir.dim n - 1
  tir.for (%i) in (%n) {
    tir.block "double" (%v = spatial %i in %n) {
      %a = tir.load %A[%v]
      %b = arith.addi %a, %a : i32
      tir.store %b, %B[%v]
    }
    tir.block "next" (%v = spatial %i in %n) {
      %c1 = arith.constant 1 : index
      %w = arith.addi %v, %c1 : index
      %x = arith.minsi %w, %last : index
      %b = tir.load %B[%x]
      tir.store %b, %Y[%v]
    }
  }
}
"""


def test_consumers_of_what_a_later_iteration_writes():
    message = 'block "next" reads elements of buffer "B" that the cache does not have'
    refuses(Schedule(parse_prim_func(NEXT)), message, "cache_write", "double", 0, "local", ["next"])
    scheduled(parse_prim_func(NEXT), lambda sch: sch.cache_write("double", 0, "local"), NOT_EMPTY)


@pytest.mark.parametrize("bound", ["n", "m"])
def test_cache_write_under_a_condition(bound):
    """A condition that keeps the store inside of the buffer is none for the copy; another one is."""
    text = f"""
    tir.prim_func @f[%n, %m](%A: !tir.buffer<[n + 8], i32>, %B: !tir.buffer<[n], i32>) {{
      %more = tir.dim n + 8
      tir.for (%i) in (%more) {{
        tir.block "B" (%v = spatial %i in %more) {{
          %below = arith.cmpi slt, %v, %{bound} : index
          %inside = arith.cmpi slt, %v, %n : index
          %both = arith.andi %below, %inside : i1
          tir.if %both {{
            %a = tir.load %A[%v]
            tir.store %a, %B[%v]
          }}
        }}
      }}
    }}
    """
    sch = scheduled(parse_prim_func(text), lambda sch: sch.cache_write("B", 0, "local"))
    assert allocations(sch) == {"B_local": '!tir.buffer<[n], i32, scope = "local">'}
    assert (sch.get_block("B_local").op.condition is None) == (bound == "n")


def test_accumulating_a_tile_in_local_memory():
    def transform(sch):
        block = sch.get_block("C")
        copy = sch.cache_write(block, "C", "local")
        i, j, r = sch.get_loops(block)
        i0, j0, i1, j1 = sch.tile(i, j, [4, 8])
        sch.reorder(i0, j0, r, i1, j1)
        sch.reverse_compute_at(copy, j0)
        sch.decompose_reduction(block, r)
        sch.parallel(i0)

    scheduled(matmul(), transform)


def test_cache_of_an_intermediate():
    def transform(sch):
        sch.cache_read(sch.get_block("C"), "B", "local")
        sch.cache_write(sch.get_block("B"), 0, "local")

    scheduled(elementwise(), transform)


def test_cache_write_of_a_part_of_the_buffer():
    def body(b, ins, outs):
        (x,), (y,) = ins, outs
        with b.block("rest", ("spatial", n, "i")) as (i,):
            b.store(y, i, 7)
        with b.block("part", ("spatial", n // 2, "i")) as (i,):
            b.store(y, i, x[i, 0])

    (y,) = te.extern([((n,), "i32")], [A], body, name="Y")
    sch = Schedule(te.create_prim_func([A, y]))
    refuses(sch, 'block "rest" writes buffer "Y", too', "cache_write", sch.get_block("part"), 0)


def test_cache_write_of_half_of_a_buffer():
    half = te.compute((n, m), lambda i, j: A[i, j] * 2, name="H")
    func = te.create_prim_func([A, half])
    scheduled(func, lambda sch: sch.cache_write(sch.get_block("H"), "H", "local"))


def test_cache_refusals():
    sch = Schedule(matmul())
    block = sch.get_block("C")
    refuses(sch, 'expected a buffer that block "C" reads, got 2; it reads "A", "B"', "cache_read", block, 2)
    refuses(sch, 'expected a buffer that block "C" writes, got \'A\'; it writes "C"', "cache_write", block, "A")
    at = te.placeholder((n,), "i32", "at")

    def body(b, ins, outs):
        (x, where), (y,) = ins, outs
        with b.block("scatter", ("spatial", n, "i")) as (i,):
            b.store(y, where[i], x[i, 0])

    (y,) = te.extern([((m,), "i32")], [A, at], body)
    sch = Schedule(te.create_prim_func([A, at, y]))
    refuses(sch, 'block "scatter" writes scattered elements', "cache_write", sch.get_block("scatter"), 0)


def test_cache_read_of_a_buffer_that_changes():
    def body(b, ins, outs):
        (x,), (y,) = ins, outs
        with b.for_range(0, n, name="i"), b.block("step", ("scan", n, "j")) as (j,):
            b.store(y, j, te.if_then_else(j > 0, y[j - 1], 0) + x[j, 0])

    (y,) = te.extern([((n,), "i32")], [A], body)
    sch = Schedule(te.create_prim_func([A, y]))
    refuses(sch, 'block "step" writes buffer "extern"', "cache_read", sch.get_block("step"), "extern")


def test_set_scope():
    sch = scheduled(elementwise(), lambda sch: sch.set_scope(sch.get_block("B"), 0, "local"))
    assert allocations(sch) == {"B": '!tir.buffer<[n, m], i32, scope = "local">'}
    sch = scheduled(elementwise(), lambda sch: sch.set_scope(sch.get_block("C"), "B", "local"))
    assert allocations(sch) == {"B": '!tir.buffer<[n, m], i32, scope = "local">'}
    refuses(sch, 'buffer "C" is a parameter or a view', "set_scope", sch.get_block("C"), 0, "local")


def test_storage_align():
    sch = scheduled(elementwise(), lambda sch: sch.storage_align(sch.get_block("B"), 0, 0, 16, 1))
    assert allocations(sch) == {"B": "!tir.buffer<[n, m], i32, strides = [16 * floordiv(m + 14, 16) + 1, 1]>"}
    block = sch.get_block("B")
    refuses(sch, "expected an axis of 0 to 0, got 1", "storage_align", block, 0, 1, 16)
    refuses(
        sch, "expected a factor of at least 1 and an offset below it, got 4 and 4", "storage_align", block, 0, 0, 4, 4
    )


def test_storage_align_keeps_inner_strides():
    b = te.compute((n, k, m), lambda i, p, j: A[i, j] * 2, name="B")
    c = te.compute((n, k, m), lambda i, p, j: b[i, p, j] + 1, name="C")
    sch = scheduled(te.create_prim_func([A, c]), lambda sch: sch.storage_align(sch.get_block("B"), 0, 0, 8))
    assert allocations(sch) == {"B": "!tir.buffer<[n, k, m], i32, strides = [8 * floordiv(k * m + 7, 8), m, 1]>"}


def test_row_sum_is_unchanged():
    assert Schedule(row_sum()).get_block("B").name == "B"


STAGES = """
tir.prim_func @stages[%n](%A: !tir.buffer<[n, 8], i32>, %C: !tir.buffer<[n, 8], i32>) {
  %B = tir.alloc_buffer : !tir.buffer<[n, 8], i32>
  %c8 = arith.constant 8 : index
  %two = arith.constant 2 : i32
  tir.for (%i) in (%n) {
    tir.for (%j) in (%c8) {
      tir.block "B" (%vi = spatial %i in %n, %vj = spatial %j in %c8) {
        %a = tir.load %A[%vi, %vj]
        %b = arith.muli %a, %two : i32
        tir.store %b, %B[%vi, %vj]
      }
    }
    tir.for (%j1) in (%c8) {
      tir.block "C" (%vi = spatial %i in %n, %vj = spatial %j1 in %c8) {
        %b = tir.load %B[%vi, %vj]
        %a = tir.load %A[%vi, %vj]
        %c = arith.addi %a, %b : i32
        tir.store %c, %C[%vi, %vj]
      }
    }
  }
}"""


def test_copies_inside_of_the_loops_that_make_and_use_a_buffer():
    def transform(sch):
        sch.cache_read("C", "B", "local")
        sch.cache_write("B", "B")
        sch.cache_read("B", "A", "global", consumer_blocks=["C"])

    sch = scheduled(parse_prim_func(STAGES), transform, [{"n": 3}, {"n": 0}])
    assert {"A_global", "B_global", "B_local"} < allocations(sch).keys()


UPDATE = """
tir.prim_func @update(%A: !tir.buffer<[8], i32>) {
  %c8 = arith.constant 8 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1 : i32
  tir.for (%i) in (%c8) {
    tir.block "update" (%vi = spatial %i in %c8) {
      %a = tir.load %A[%vi]
      %b = arith.addi %a, %one : i32
      tir.store %b, %A[%vi]
    }
  }
}"""

PARTS = """
tir.prim_func @parts(%A: !tir.buffer<[8], i32>) {
  %c8 = arith.constant 8 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1 : i32
  tir.for (%i) in (%c8) {
    tir.block "outer" (%vi = spatial %i in %c8) {
      %low = arith.cmpi slt, %vi, %c4 : index
      tir.block "inner" () where %low {
        tir.store %one, %A[%vi]
      }
    }
  }
}"""


def test_a_copy_behind_a_block_holds_all_that_is_written_back():
    refuses(Schedule(parse_prim_func(UPDATE)), 'updates buffer "A" without an init', "cache_write", "update", 0)
    sch = scheduled(parse_prim_func(PARTS), lambda sch: sch.cache_write("outer", 0))
    assert sch.get_block("A_global").op.condition is not None


TWICE = """
tir.prim_func @twice[%n](%A: !tir.buffer<[n, 3], i32>, %C: !tir.buffer<[n, 3], i32>) {
  %c3 = arith.constant 3 : index
  tir.for (%i) in (%n) {
    tir.for (%j) in (%c3) {
      tir.block "B" (%vi = spatial %i in %n, %vj = spatial %j in %c3) {
        %a = tir.load %A[%vi, %vj]
        %b = arith.addi %a, %a : i32
        tir.store %b, %A[%vi, %vj]
      }
    }
    tir.for (%k) in (%c3) {
      tir.block "C" (%vi = spatial %i in %n, %vj = spatial %k in %c3) {
        %a = tir.load %A[%vi, %vj]
        tir.store %a, %C[%vi, %vj]
      }
    }
  }
}
"""


def test_cache_inplace():
    def transform(sch):
        there, back = sch.cache_inplace(sch.get_block("B"), "A", "local")
        assert [sch.extent(loop.op).constant_value for loop in sch.get_loops(there)[1:]] == [1, 3]
        sch.vectorize(sch.get_loops(back)[-1])

    sch = scheduled(parse_prim_func(TWICE), transform, [{"n": 4}, {"n": 0}])
    assert list(allocations(sch)) == ["A_local"]


def test_cache_inplace_refusals():
    sch = Schedule(parse_prim_func(TWICE))
    message = 'block "C" does not write buffer "A", use cache_read'
    refuses(sch, message, "cache_inplace", sch.get_block("C"), 0)
