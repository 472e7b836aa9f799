"""Reductions that go on in each iteration of a loop of their producer, and those of which an instance runs again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import home, k, m, n, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect import te
from tir_dialect.schedule import Schedule

A = te.placeholder((n, m), "i32", "A")


def sums_of_rows():
    b = te.compute((n, m), lambda i, j: A[i, j] * 2, name="B")
    r = te.reduce_axis(m, "r")
    return te.create_prim_func([A, te.compute((n,), lambda i: te.sum(b[i, r], r), name="C")])


def sums_of_products():
    """The rows of a product are reduced, with a factor, over two axes."""
    w, v = te.placeholder((m, k), "i32", "W"), te.placeholder((k, 3), "i32", "V")
    r, q, p = te.reduce_axis(m, "r"), te.reduce_axis(k, "q"), te.reduce_axis(3, "p")
    b = te.compute((n, k), lambda i, j: te.sum(A[i, r] * w[r, j], r), name="B")
    c = te.compute((n,), lambda i: te.sum(te.maximum(b[i, q], 0) * v[q, p], (q, p)), name="C")
    return te.create_prim_func([A, w, v, c])


def first_maxima():
    first = te.comm_reducer(
        lambda a, b: (te.select(a[1] >= b[1], a[0], b[0]), te.maximum(a[1], b[1])),
        lambda d, e: (te.const(-1, d), te.min_value(e)),
        name="first_maximum",
    )
    b = te.compute((n, m), lambda i, j: A[i, j] * A[i, j], name="B")
    r = te.reduce_axis(m, "r")
    c, d = te.compute((n,), lambda i: first((te.cast(r, "i32"), b[i, r]), axis=r), name="C")
    return te.create_prim_func([A, c, d])


@pytest.mark.parametrize("make", [sums_of_rows, first_maxima])
@pytest.mark.parametrize("factor", [None, 1, 4])
def test_a_loop_that_produces_part_of_a_row(make, factor):
    def transform(sch):
        i, j = sch.get_loops("B")
        j = j if factor is None else sch.split(j, [None, factor])[0]
        sch.reverse_compute_at("C", j)
        assert sch.get_loops("C")[:2] == (i, j)

    sch = scheduled(make(), transform)
    assert home(sch, "B") == ("j" if factor is None else "j0")


@pytest.mark.slow
@settings(max_examples=12)
@given(st.sampled_from([1, 2, 4]), st.sampled_from([2, 3, 8]), st.integers(0, 3), st.booleans())
def test_tiles_of_a_product(rows, columns, position, swapped):
    def transform(sch):
        nest = sch.tile(*sch.get_loops("B")[:2], [rows, columns])
        if swapped:
            sch.reorder(nest[1], nest[0])
        sch.reverse_compute_at("C", sch.get_loops("B")[position])

    scheduled(sums_of_products(), transform)


def test_later_steps_on_a_reduction_in_parts():
    def transform(sch):
        i, j = sch.get_loops("B")
        outer, _ = sch.split(j, [None, 4])
        sch.reverse_compute_at("C", outer)
        sch.parallel(i)
        sch.vectorize(sch.get_loops("B")[-1])
        sch.unroll(sch.get_loops("C")[-1])
        sch.decompose_reduction("C", outer)

    scheduled(sums_of_rows(), transform)


def test_a_reduction_over_packed_data():
    b = te.compute((n, m, 4), lambda i, j, p: A[i, j] * te.cast(p + 1, "i32"), name="B")
    r = te.reduce_axis(4 * m, "r")
    func = te.create_prim_func([A, te.compute((n,), lambda i: te.sum(b[i, r // 4, r % 4], r), name="C")])
    for position in (1, 2):
        scheduled(func, lambda sch, p=position: sch.reverse_compute_at("C", sch.get_loops("B")[p]))


def test_iterations_that_run_in_any_order_share_the_result():
    sch = Schedule(sums_of_rows())
    j = sch.get_loops("B")[1]
    sch.parallel(j)
    refuses(sch, 'the iterations of loop "j" are not independent', "reverse_compute_at", "C", j)


def test_one_loop_over_rows_and_what_is_reduced():
    sch = Schedule(sums_of_rows())
    loop = sch.fuse(*sch.get_loops("B"))
    message = 'the init of block "C" could come after a part of the reduction'
    refuses(sch, message, "reverse_compute_at", "C", loop)


AGAIN = """
tir.prim_func @f[%n, %m](%A: !tir.buffer<[n, m], i32>, %C: !tir.buffer<[n], i32>) {{
  %two = arith.constant 2 : index
  %B = tir.alloc_buffer : !tir.buffer<[n, m], i32>
  tir.for ({0}) in ({1}) {{
    tir.block "B" (%v = spatial %i in %n, %w = spatial %j in %m) {{
      %a = tir.load %A[%v, %w]
      tir.store %a, %B[%v, %w]
    }}
  }}
  tir.for ({2}) in ({3}) {{
    tir.block "C" (%v = spatial %i in %n, %w = reduce %r in %m) {{
      tir.init {{
        %zero = arith.constant 0 : i32
        tir.store %zero, %C[%v]
      }}
      %b = tir.load %B[%v, %w]
      %c = tir.load %C[%v]
      %d = arith.addi %b, %c : i32
      tir.store %d, %C[%v]
    }}
  }}
}}
"""
PLAIN = "%i, %j", "%n, %m"


def test_parts_that_are_produced_again():
    func = parse_prim_func(AGAIN.format("%i, %q, %j", "%n, %two, %m", "%i, %r", "%n, %m"))
    sch = Schedule(func)
    message = 'several iterations of loop "q" may run the same instance of block "C"'
    refuses(sch, message, "reverse_compute_at", "C", sch.get_loops("B")[2])
    for position in (0, 1):
        scheduled(func, lambda sch, p=position: sch.reverse_compute_at("C", sch.get_loops("B")[p]))


def test_instances_that_run_twice_do_so_elsewhere():
    """What is added twice would be added once."""
    func = parse_prim_func(AGAIN.format(*PLAIN, "%i, %r, %q", "%n, %m, %two"))
    message = 'several iterations of loop "q" may run the same instance of block "C"'
    for position in (0, 1):
        sch = Schedule(func.clone())
        refuses(sch, message, "reverse_compute_at", "C", sch.get_loops("B")[position])


def test_reductions_that_add_twice_are_not_computed_elsewhere():
    text = AGAIN.format(*PLAIN, "%i, %r, %q", "%n, %m, %two").replace('"C"', '"S"')
    text = text.replace("%C: !tir.buffer<[n], i32>", "%D: !tir.buffer<[n], i32>")
    text = text.replace("%B = tir", "%C = tir.alloc_buffer : !tir.buffer<[n], i32>\n  %B = tir")
    last = """
  tir.for (%i) in (%n) {
    tir.block "D" (%v = spatial %i in %n) {
      %c = tir.load %C[%v]
      tir.store %c, %D[%v]
    }
  }
}
"""
    sch = Schedule(parse_prim_func(text.rstrip().removesuffix("}") + last))
    message = 'several iterations of loop "q" may run the same instance of block "S"'
    refuses(sch, message, "compute_at", "S", sch.get_loops("D")[0])
