"""rfactor."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import SIZES, elementwise, m, matmul, n, row_sum, run, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect import te
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.schedule import Schedule

A = te.placeholder((n, m), "i32", "A")


def blocks(sch):
    return [op.block_name.data for op in sch.func.walk() if isinstance(op, BlockOp)]


def reduction(reduce, **options):
    r = te.reduce_axis(m, "r")
    b = te.compute((n,), lambda i: reduce(A[i, r], r, **options), name="B")
    return te.create_prim_func([A, b])


def arg_maximum():
    r = te.reduce_axis(m, "r")
    argmax = te.comm_reducer(
        lambda x, y: (
            te.maximum(x[0], y[0]),
            te.select((x[0] > y[0]) | ((x[0] == y[0]) & (x[1] < y[1])), x[1], y[1]),
        ),
        lambda value, index: (te.min_value(value), te.max_value(index)),
    )
    outs = te.compute((n,), lambda i: argmax((A[i, r], te.cast(r, "i64")), r), name="B")
    return te.create_prim_func([A, *outs])


def factored(sch, position, factor=4, axis=0):
    block = sch.get_block("B")
    loops = sch.split(sch.get_loops(block)[-1], [None, factor])
    return sch.rfactor(loops[position], axis)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("reduce", [te.sum, te.max, te.min])
def test_rfactor_of_row_reductions(reduce, position, axis):
    sch = scheduled(reduction(reduce), lambda sch: factored(sch, position, axis=axis))
    assert blocks(sch)[-2:] == ["B_rf", "B"]


@pytest.mark.parametrize("position", [0, 1])
def test_rfactor_of_an_arg_reduction(position):
    scheduled(arg_maximum(), lambda sch: factored(sch, position))


def test_rfactor_of_a_whole_loop_over_rows():
    def transform(sch):
        sch.rfactor(sch.get_loops(sch.get_block("B"))[1])

    scheduled(row_sum(), transform)


@pytest.mark.parametrize("axis", [0, 1])
def test_rfactor_of_a_loop_with_one_iteration(axis):
    sch = scheduled(row_sum(), lambda sch: factored(sch, 1, factor=1, axis=axis))
    assert blocks(sch)[-2:] == ["B_rf", "B"]


def test_rfactor_of_a_matmul():
    def transform(sch):
        i, j, r = sch.get_loops(sch.get_block("C"))
        r0, r1 = sch.split(r, [None, 2])
        sch.reorder(r0, i, j, r1)
        sch.rfactor(r0)

    scheduled(matmul(), transform)


def test_rfactor_of_a_reduction_over_everything():
    r, s = te.reduce_axis(n, "r"), te.reduce_axis(m, "s")
    b = te.compute((), lambda: te.sum(A[r, s], [r, s]), name="B")
    func = te.create_prim_func([A, b])

    def rows(sch):
        loop = sch.get_loops(sch.get_block("B"))[0]
        sch.rfactor(loop)
        sch.parallel(sch.get_loops(sch.get_block("B_rf"))[0])

    def lanes(sch):
        fused = sch.fuse(*sch.get_loops(sch.get_block("B")))
        _, inner = sch.split(fused, [None, 8])
        sch.rfactor(inner)
        sch.vectorize(sch.get_loops(sch.get_block("B_rf"))[-1])

    scheduled(func, rows)
    scheduled(func, lanes)


def test_partial_results_of_one_row_at_a_time():
    def transform(sch):
        partial = factored(sch, 1, 8)
        block = sch.get_block("B")
        row = sch.get_loops(partial)[0]
        sch.reverse_compute_at(block, row)
        sch.vectorize(sch.get_loops(partial)[-1])
        sch.parallel(row)

    scheduled(row_sum(), transform)


def test_rfactor_with_a_condition_in_the_value():
    r = te.reduce_axis(m, "r")
    b = te.compute((n,), lambda i: te.sum(A[i, r], r, where=r <= i), name="B")
    scheduled(te.create_prim_func([A, b]), lambda sch: factored(sch, 1))


def test_partial_results_that_no_instance_reaches():
    sch = Schedule(row_sum())
    factored(sch, 1, 8)
    sizes = {"n": 2, "m": 3, "k": 1}
    np.testing.assert_array_equal(run(sch.func, sizes)[1], run(row_sum(), sizes)[1])


def test_rfactor_refusals():
    sch = Schedule(elementwise())
    refuses(sch, 'block "B" has no init', "rfactor", sch.get_loops(sch.get_block("B"))[0])
    sch = Schedule(row_sum())
    i, r = sch.get_loops(sch.get_block("B"))
    refuses(sch, 'loop "i" does not drive reduce iterators of block "B"', "rfactor", i)
    refuses(sch, "expected a factor axis of -2 to 1, got 2", "rfactor", r, 2)
    sch = Schedule(row_sum(m=(1, None)))
    fused = sch.fuse(*sch.get_loops(sch.get_block("B")))
    refuses(sch, 'loop "ir" drives spatial and reduce iterators of block "B"', "rfactor", fused)


def test_rfactor_refuses_combinations_that_it_cannot_take_apart():
    twice = te.comm_reducer(lambda x, y: x + y + y * y, lambda dtype: 0, name="odd")
    r = te.reduce_axis(m, "r")
    b = te.compute((n,), lambda i: twice(A[i, r], r), name="B")
    sch = Schedule(te.create_prim_func([A, b]))
    refuses(
        sch,
        'block "B" does not combine each accumulator with one value',
        "rfactor",
        sch.get_loops(sch.get_block("B"))[1],
    )


@pytest.mark.parametrize(
    ("combine", "start", "message"),
    [
        (lambda x, y: x - y, 0, 'the init of block "B" is not neutral for its combination'),
        (lambda x, y: x + y, 1, 'the init of block "B" is not neutral for its combination'),
        (lambda x, y: x + y + x * x * y, 0, 'the combination of block "B" is not associative'),
    ],
)
def test_parts_of_what_is_no_sum_are_refused(combine, start, message):
    r = te.reduce_axis(m, "r")
    b = te.compute((n,), lambda i: te.comm_reducer(combine, lambda dtype: start)(A[i, r], r), name="B")
    sch = Schedule(te.create_prim_func([A, b]))
    refuses(sch, message, "rfactor", sch.get_loops(sch.get_block("B"))[1])


def test_the_first_of_equal_values_needs_the_order():
    first = te.comm_reducer(
        lambda x, y: (te.maximum(x[0], y[0]), te.select(x[0] >= y[0], x[1], y[1])),
        lambda value, index: (te.min_value(value), te.max_value(index)),
    )
    r = te.reduce_axis(m, "r")
    outs = te.compute((n,), lambda i: first((A[i, r], te.cast(r, "i64")), r), name="B")
    func = te.create_prim_func([A, *outs])
    scheduled(func, lambda sch: factored(sch, 0, axis=-1))
    sch = Schedule(func)
    _, inner = sch.split(sch.get_loops("B")[1], [None, 4])
    refuses(sch, 'the result of block "B" depends on the order', "rfactor", inner)


def test_loops_over_part_of_the_result_are_refused():
    sch = Schedule(
        parse_prim_func("""
        tir.prim_func @part(%A: !tir.buffer<[8, 8], i32>, %B: !tir.buffer<[8], i32>) {
          %c4 = arith.constant 4 : index
          %c8 = arith.constant 8 : index
          tir.for (%i, %r) in (%c4, %c8) {
            tir.block "B" (%vi = spatial %i in %c8, %vr = reduce %r in %c8) {
              tir.init {
                %zero = arith.constant 0 : i32
                tir.store %zero, %B[%vi]
              }
              %b = tir.load %B[%vi]
              %a = tir.load %A[%vi, %vr]
              %s = arith.addi %b, %a : i32
              tir.store %s, %B[%vi]
            }
          }
        }""")
    )
    refuses(sch, 'do not reach all values of the spatial iterators of block "B"', "rfactor", sch.get_loops("B")[1])


def test_sizes_have_a_remainder():
    assert any(sizes["m"] % 4 for sizes in SIZES)


def test_rfactor_of_rows_in_pairs_is_refused_where_the_last_pair_may_be_half_a_pair():
    """The second step runs over all pairs, and would write a row that is not there."""
    sch = Schedule(row_sum())
    sch.transform_block_layout("B", "(i, j) -> (floordiv(i, 2), mod(i, 2), j)")
    refuses(sch, "do not reach all values of the spatial iterators", "rfactor", sch.get_loops("B")[2], 0)
