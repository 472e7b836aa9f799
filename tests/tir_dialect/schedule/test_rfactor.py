"""rfactor."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import SIZES, check_same, elementwise, m, matmul, n, row_sum, run, scheduled
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
    refuses(sch, 'loop "i" does not drive reduce iterators of block "B"', "rfactor", sch.get_loops("B")[0])
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


def test_loops_over_part_of_the_result():
    part = parse_prim_func("""
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
    before, sch = part.clone(), Schedule(part)
    sch.rfactor(sch.get_loops("B")[1])
    check_same(before, part, [{}])  # rows that the loops do not reach stay as they are


def test_sizes_have_a_remainder():
    assert any(sizes["m"] % 4 for sizes in SIZES)


def test_rfactor_of_rows_in_pairs_where_the_last_pair_may_be_half_a_pair():
    def transform(sch):
        sch.transform_block_layout("B", "(i, j) -> (floordiv(i, 2), mod(i, 2), j)")
        sch.rfactor(sch.get_loops("B")[2], 0)

    scheduled(row_sum(), transform)


def names(loops):
    return [loop.name for loop in loops]


@pytest.mark.parametrize("factored_first", [False, True])
def test_partial_results_are_combined_in_the_loops_of_the_reduction(factored_first):
    def transform(sch):
        i, r = sch.get_loops("B")
        i0, i1 = sch.split(i, [None, 4])
        r0, r1 = sch.split(r, [None, 2])
        sch.reorder(*((r1, i0) if factored_first else (i0, r0, r1)), i1)
        sch.rfactor(r1)

    sch = scheduled(row_sum(), transform)
    assert names(sch.get_loops("B")) == (["r1", "i0", "i1"] if factored_first else ["i0", "r1", "i1"])


def row_scale():
    """Rows divided by what a later block takes of their sum, and the sum of that."""
    r, q = te.reduce_axis(m, "r"), te.reduce_axis(m, "q")
    b = te.compute((n,), lambda i: te.sum(A[i, r], r), name="B")
    c = te.compute((n, m), lambda i, j: A[i, j] * b[i], name="C")
    d = te.compute((n,), lambda i: te.max(c[i, q], q), name="D")
    return te.create_prim_func([A, d])


@pytest.mark.parametrize("axis", [0, 1])
def test_a_result_that_is_used_in_the_loops_is_combined_there(axis):
    def transform(sch):
        row = sch.get_loops("D")[0]
        sch.compute_at("C", row)
        sch.compute_at("B", row)
        partial = factored(sch, 1, axis=axis)
        assert sch.get_loops(partial)[0] is sch.get_loops("B")[0] is row
        sch.parallel(row)

    sch = scheduled(row_scale(), transform)
    assert blocks(sch) == ["B_rf_init", "B_rf", "B", "C", "D"]


def test_a_result_of_several_rows_that_is_used_in_the_loops():
    def transform(sch):
        outer, _ = sch.split(sch.get_loops("D")[0], [None, 3])
        sch.compute_at("C", outer)
        sch.compute_at("B", outer)
        factored(sch, 0)

    scheduled(row_scale(), transform)


def test_rfactor_refuses_a_result_that_is_used_before_it_is_complete():
    sch = Schedule(
        parse_prim_func("""
        tir.prim_func @seen(%A: !tir.buffer<[8], i32>, %B: !tir.buffer<[], i32>, %C: !tir.buffer<[8], i32>) {
          %c8 = arith.constant 8 : index
          %c2 = arith.constant 2 : index
          %c4 = arith.constant 4 : index
          tir.for (%r) in (%c2) {
            tir.for (%s) in (%c4) {
              %first = arith.muli %r, %c4 : index
              %at = arith.addi %first, %s : index
              tir.block "B" (%vr = reduce %at in %c8) {
                tir.init {
                  %zero = arith.constant 0 : i32
                  tir.store %zero, %B[]
                }
                %b = tir.load %B[]
                %a = tir.load %A[%vr]
                %t = arith.addi %b, %a : i32
                tir.store %t, %B[]
              }
            }
            tir.block "C" (%vi = spatial %r in %c8) {
              %b = tir.load %B[]
              tir.store %b, %C[%vi]
            }
          }
        }""")
    )
    message = 'block "C" uses the result of block "B" in loop "r", which is reduced over'
    refuses(sch, message, "rfactor", sch.get_loops("B")[1])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("reduce", [te.sum, te.prod, te.max, te.min])
@pytest.mark.parametrize("dtype", ["i32", "ui8", "f32"])
def test_partial_results_of_a_block_without_init_start_with_the_neutral_value(reduce, dtype):
    x, r = te.placeholder((n, m), dtype, "X"), te.reduce_axis(m, "r")
    b = te.compute((n,), lambda i: reduce(x[i, r], r), name="B")

    def transform(sch):
        row, _ = sch.get_loops("B")
        sch.decompose_reduction("B", row)
        inner = sch.split(sch.get_loops("B_update")[1], [None, 4])[1]
        sch.rfactor(inner)

    scheduled(te.create_prim_func([x, b]), transform)


def test_rfactor_of_partial_results():
    def transform(sch):
        _, r1, r2 = sch.split(sch.get_loops("B")[1], [None, 2, 4])
        lanes = sch.rfactor(r2, 1)
        assert next(loop for loop in sch.get_loops(lanes) if loop is r1)
        sch.rfactor(r1, 0)

    sch = scheduled(row_sum(), transform)
    assert blocks(sch) == ["B_rf_init", "B_rf_rf_init", "B_rf_rf", "B_rf", "B"]


def test_rfactor_refuses_updates_that_are_repeated():
    sch = Schedule(
        parse_prim_func("""
        tir.prim_func @twice(%A: !tir.buffer<[8], i32>, %B: !tir.buffer<[], i32>) {
          %c2 = arith.constant 2 : index
          %c8 = arith.constant 8 : index
          tir.for (%t, %r) in (%c2, %c8) {
            tir.block "B" (%vr = reduce %r in %c8) {
              %b = tir.load %B[]
              %a = tir.load %A[%vr]
              %s = arith.addi %b, %a : i32
              tir.store %s, %B[]
            }
          }
        }""")
    )
    refuses(sch, 'loop "t" repeats the updates of block "B"', "rfactor", sch.get_loops("B")[1])


def test_rfactor_refuses_a_block_without_init_whose_neutral_value_is_not_known():
    sch = Schedule(arg_maximum())
    sch.decompose_reduction("B", sch.get_loops("B")[0])
    message = 'block "B_update" has no init, and no neutral value of its combination is known'
    refuses(sch, message, "rfactor", sch.get_loops("B_update")[1])


@pytest.mark.parametrize(
    ("place", "message"),
    [("floordivsi %r, %c2", "several iterations of loop"), ("addi %r, %c2", "the first iteration of the loops")],
)
def test_a_reduction_that_does_not_start_in_the_first_iteration_alone_is_refused(place, message):
    sch = Schedule(
        parse_prim_func(f"""
        tir.prim_func @starts(%A: !tir.buffer<[8], i32>, %B: !tir.buffer<[], i32>) {{
          %c2 = arith.constant 2 : index
          %c4 = arith.constant 4 : index
          %c8 = arith.constant 8 : index
          tir.for (%r) in (%c4) {{
            %at = arith.{place} : index
            tir.block "B" (%vr = reduce %at in %c8) {{
              tir.init {{
                %zero = arith.constant 0 : i32
                tir.store %zero, %B[]
              }}
              %b = tir.load %B[]
              %a = tir.load %A[%vr]
              %s = arith.addi %b, %a : i32
              tir.store %s, %B[]
            }}
          }}
        }}""")
    )
    refuses(sch, message, "rfactor", sch.get_loops("B")[0])
    refuses(sch, message, "decompose_reduction", sch.get_block("B"), sch.get_loops("B")[0])


def test_rfactor_of_parts_whose_length_a_size_says():
    def transform(sch):
        sch.rfactor(sch.split(sch.get_loops("B")[1], [4, None])[0])

    scheduled(row_sum(), transform)


def test_rfactor_beside_a_loop_that_only_a_condition_uses():
    def transform(sch):
        sch.add_unit_loop("B")
        sch.split(sch.get_loops("B")[2], [None, 8])
        sch.rfactor(sch.get_loops("B")[1])

    scheduled(row_sum(), transform)
