"""Split, fuse, reorder, tile, unit loops."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import (
    NOT_EMPTY,
    elementwise,
    matmul,
    n,
    row_sum,
    scan,
    scheduled,
)
from tir_dialect import te
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.schedule import Schedule, ScheduleError


def loops(func):
    return [op.induction_var.name_hint for op in func.walk() if isinstance(op, ForOp)]


def condition(func, name):
    return next(op for op in func.walk() if isinstance(op, BlockOp) and op.block_name.data == name).condition


def refuses(schedule, message, primitive, *args, **kwargs):
    """The primitive refuses with this message and leaves the function as it is."""
    before, trace = str(schedule.func), schedule.trace.as_python()
    with pytest.raises(ScheduleError, match=re.escape(message)):
        getattr(schedule, primitive)(*args, **kwargs)
    assert str(schedule.func) == before
    assert schedule.trace.as_python() == trace


@settings(max_examples=8)
@given(st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=3), st.integers(0, 3))
def test_split_of_any_loop_by_any_factors(factors, position):
    def transform(sch):
        for loop in sch.get_loops(sch.get_block("C")):
            wanted = list(factors)
            wanted.insert(min(position, len(wanted)), None)
            assert len(sch.split(loop, wanted)) == len(wanted)

    scheduled(matmul(), transform)


def test_split_that_divides_needs_no_condition():
    a = te.placeholder((8 * n,), "i32", "A")
    func = te.create_prim_func([a, te.compute((8 * n,), lambda i: a[i] + 1, name="B")])
    sch = scheduled(func, lambda sch: sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 4]))
    assert condition(sch.func, "B") is None
    sch = scheduled(func, lambda sch: sch.split(sch.get_loops(sch.get_block("B"))[0], ["n", 2, "4"]))
    assert condition(sch.func, "B") is None
    sch = scheduled(func, lambda sch: sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 3]))
    assert condition(sch.func, "B") is not None
    sch = Schedule(func)
    message = "expected factors of 8 * n, since no condition is wanted"
    refuses(sch, message, "split", sch.get_loops("B")[0], [None, 3], disable_predication=True)


def test_split_of_statements_outside_of_blocks():
    a = te.placeholder((n,), "i32", "A")

    def body(b, ins, outs):
        (x,), (y,) = ins, outs
        with b.for_range(1, n, name="i") as i:
            b.store(y, i, x[i] + x[i - 1])
        b.store(y, 0, x[0])

    (y,) = te.extern([((n,), "i32")], [a], body, name="Y")
    func = te.create_prim_func([a, y])
    sch = Schedule(func.clone())
    loop = sch.loop(next(op for op in sch.func.walk() if isinstance(op, ForOp)))
    sch.split(loop, [None, 4])
    from tests.tir_dialect.schedule.support import check_same

    check_same(func, sch.func)


def test_split_keeps_annotations_on_the_outer_loop():
    def transform(sch):
        (i, _) = sch.get_loops(sch.get_block("C"))
        sch.annotate(i, "note", 1)
        sch.split(i, [None, 4])

    sch = scheduled(elementwise(), transform)
    outer = sch.get_loops(sch.get_block("C"))[0]
    assert "note" in outer.op.annotations.data


def test_split_refusals():
    sch = Schedule(matmul())
    i, j, _ = sch.get_loops(sch.get_block("C"))
    refuses(sch, "expected at least two factors and at most one None, got [4]", "split", i, [4])
    refuses(sch, "expected at least two factors and at most one None, got [None, None]", "split", i, [None, None])
    refuses(sch, "expected factors of at least 1, got 0", "split", i, [None, 0])
    refuses(sch, "expected factors of at least 1, got n", "split", i, [None, "n"])
    refuses(sch, 'factor q uses "q", which is no symbol of the function', "split", i, [None, "q"])
    refuses(sch, "expected factors that cover all n iterations, got 32", "split", i, [4, 8])
    refuses(sch, "expected a dimension: an integer, a symbol, a function or '(', in 'a+'", "split", i, [None, "a+"])
    sch.parallel(j)
    refuses(sch, 'expected a serial loop, got parallel loop "j"', "split", j, [None, 2])
    sch.split(i, [None, 2])
    message = 'loop "i" is no longer in the function, use the handles of what replaced it'
    refuses(sch, message, "split", i, [None, 2])


def test_annotations_of_fused_loops():
    sch = Schedule(elementwise())
    i, j = sch.get_loops(sch.get_block("B"))
    sch.annotate(i, "a", 1)
    sch.annotate(j, "b", 2)
    notes = sch.get(sch.fuse(i, j)).annotations.data
    assert {key: value.value.data for key, value in notes.items()} == {"a": 1, "b": 2}
    i, j = sch.get_loops(sch.get_block("C"))
    sch.annotate(i, "a", 1)
    sch.annotate(j, "a", 2)
    message = 'expected one annotation "a", got 2 : i64 of loop "j" and 1 : i64 outside of it'
    refuses(sch, message, "fuse", i, j)


def test_fuse_of_a_nest():
    def transform(sch):
        fused = sch.fuse(*sch.get_loops(sch.get_block("C"))[:2])
        assert loops(sch.func) == ["ij", "r"]
        sch.split(fused, [None, 4])

    scheduled(matmul(), transform)


def test_fuse_undoes_split():
    def transform(sch):
        i, _ = sch.get_loops(sch.get_block("C"))
        sch.fuse(*sch.split(i, [None, 4]))

    sch = scheduled(elementwise(), transform)
    block = sch.get_block("C").op
    assert block.bindings[0] is sch.get_loops(sch.get_block("C"))[0].op.induction_var


def test_fuse_of_all_loops_of_a_reduction():
    func = row_sum(m=(1, None))
    scheduled(func, lambda sch: sch.fuse(*sch.get_loops(sch.get_block("B"))), NOT_EMPTY)
    sch = Schedule(row_sum())
    message = 'loop "r" of the reduction "B" may be empty, and its init would not run; use decompose_reduction first'
    refuses(sch, message, "fuse", *sch.get_loops(sch.get_block("B")))
    i, r = sch.get_loops("B")
    first, _ = sch.split(r, [7, None])
    refuses(sch, 'loop "r1" of the reduction "B" may be empty', "fuse", i, first)


def test_fuse_refusals():
    sch = Schedule(matmul())
    i, j, r = sch.get_loops(sch.get_block("C"))
    refuses(sch, "expected at least two loops, got 1", "fuse", i)
    refuses(sch, 'expected loop "i" to hold loop "r" alone', "fuse", i, r)
    refuses(sch, 'expected loop "j" to hold loop "i" alone', "fuse", j, i)
    sch.parallel(i)
    refuses(sch, 'expected a serial loop, got parallel loop "i"', "fuse", i, j)


@settings(max_examples=8)
@given(st.permutations([0, 1, 2]))
def test_reorder_of_a_reduction(order):
    def transform(sch):
        nest = sch.get_loops(sch.get_block("C"))
        sch.reorder(*(nest[position] for position in order))
        assert loops(sch.func) == ["ijr"[position] for position in order]

    scheduled(matmul(), transform)


@settings(max_examples=8)
@given(st.permutations([0, 1, 2, 3, 4, 5]))
def test_reorder_of_split_loops(order):
    def transform(sch):
        i, j, r = sch.get_loops(sch.get_block("C"))
        nest = [*sch.split(i, [None, 4]), *sch.split(j, [None, 8]), *sch.split(r, [None, 2])]
        sch.reorder(*(nest[position] for position in order))

    scheduled(matmul(), transform)


def test_reorder_leaves_the_loops_between():
    def transform(sch):
        i, _, r = sch.get_loops(sch.get_block("C"))
        sch.reorder(r, i)
        assert loops(sch.func) == ["r", "j", "i"]

    scheduled(matmul(), transform)


def test_reorder_refusals():
    sch = Schedule(elementwise())
    i, j = sch.get_loops(sch.get_block("B"))
    i2, _ = sch.get_loops(sch.get_block("C"))
    refuses(sch, 'expected at least two different loops, got "i"', "reorder", i)
    refuses(sch, 'expected at least two different loops, got "i", "i"', "reorder", i, i)
    refuses(sch, "are not in one nest", "reorder", i, i2)
    sch = Schedule(scan())
    i, j = sch.get_loops(sch.get_block("scan"))
    refuses(
        sch,
        'loop "j" drives an iterator of kind scan of block "scan", expected spatial and reduce ones only',
        "reorder",
        j,
        i,
    )


def test_reorder_refuses_an_init_that_could_come_too_late():
    sch = Schedule(matmul(k=(1, None)))
    i, j, r = sch.get_loops(sch.get_block("C"))
    fused = sch.fuse(j, r)
    refuses(sch, "so its init could come too late", "reorder", fused, i)


def test_tile():
    def transform(sch):
        i, j, _ = sch.get_loops(sch.get_block("C"))
        sch.tile(i, j, [4, 8])
        assert loops(sch.func) == ["i0", "j0", "i1", "j1", "r"]

    scheduled(matmul(), transform)


def test_tile_refusals():
    sch = Schedule(matmul())
    i, j, _ = sch.get_loops(sch.get_block("C"))
    refuses(sch, "tile: expected two factors, got 1", "tile", i, j, [4])
    refuses(sch, 'tile: expected loop "i" to be inside of loop "i"', "tile", i, i, [4, 8])
    refuses(sch, "tile: expected factors of at least 1, got 0", "tile", i, j, [4, 0])


def test_add_unit_loop():
    def transform(sch):
        block = sch.get_block("B")
        sch.add_unit_loop(block)
        sch.add_unit_loop(sch.get_loops(block)[0])
        assert loops(sch.func) == ["u", "i", "r", "u"]

    scheduled(row_sum(), transform)


def test_get_block_names_the_blocks_there_are():
    with pytest.raises(ScheduleError, match=re.escape('expected the name of a block, got "D"; there are "B", "C"')):
        Schedule(elementwise()).get_block("D")


def test_bounds_that_are_computed_in_the_loops_stay_in_front_of_them():
    func = parse_prim_func("""
    tir.prim_func @f(%B: !tir.buffer<[3, 5, 4], i32>) {
      %c3 = arith.constant 3 : index
      tir.for (%i) in (%c3) {
        %c5 = arith.constant 5 : index
        tir.for (%j) in (%c5) {
          %one = arith.constant 1 : index
          %end = arith.addi %i, %one : index
          tir.for (%k) in (%end) {
            tir.block "B" (%vi = spatial %i in %c3, %vj = spatial %j in %c5, %vk = spatial %k in %end) {
              %x = arith.index_cast %vk : index to i32
              tir.store %x, %B[%vi, %vj, %vk]
            }
          }
        }
      }
    }""")

    def transform(sch):
        i, j, k = sch.get_loops("B")
        sch.reorder(k, j)
        assert loops(sch.func) == ["i", "k", "j"]
        refuses(sch, 'the bounds of loop "k" depend on loop "i", which would be inside of it', "reorder", k, i)

    scheduled(func, transform, [{}])
