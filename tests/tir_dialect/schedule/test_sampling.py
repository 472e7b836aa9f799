"""Choices at random, queries, and the order of iterators."""

from __future__ import annotations

from math import prod

import pytest

from tests.tir_dialect.schedule.support import elementwise, matmul, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect import te
from tir_dialect.schedule import Schedule, ScheduleError, Trace

A = te.placeholder((24, 60), "i32", "A")


def doubled():
    b = te.compute((24, 60), lambda i, j: A[i, j] + 1, name="B")
    return te.create_prim_func([A, te.compute((24, 60), lambda i, j: b[i, j] * 2, name="C")])


def test_samples_are_replayed_as_they_were_drawn():
    def transform(sch):
        factor = sch.sample_categorical([2, 3, 5], [0.2, 0.3, 0.5])
        for loop in sch.get_loops("C"):
            tiles = sch.sample_perfect_tile(loop, 3, max_innermost_factor=4)
            assert prod(tiles) in (24, 60)
            assert tiles[-1] <= 4
            outer, *_ = sch.split(loop, tiles)
            sch.split(outer, [None, factor])
        sch.compute_at("B", sch.sample_compute_location("B"))

    sch = scheduled(doubled(), transform, [{}])
    assert "decision" in sch.trace.as_python()


def test_decisions_may_be_given_and_are_checked():
    sch = Schedule(doubled())
    loop = sch.get_loops("C")[0]
    assert sch.sample_perfect_tile(loop, 2, decision=[6, 4]) == [6, 4]
    assert sch.sample_categorical([7, 8], [0.5, 0.5], decision=1) == 8
    assert sch.sample_compute_location("B", decision=0) is loop
    refuses(sch, "expected 2 factors of 24, got [5, 4]", "sample_perfect_tile", loop, 2, decision=[5, 4])
    refuses(sch, "expected a decision of 0 to 1, got 2", "sample_categorical", [7, 8], [0.5, 0.5], decision=2)
    refuses(sch, "expected a probability for each candidate", "sample_categorical", [7, 8], [1.0])
    refuses(sch, 'expected "candidates" to be Sequence[int]', "sample_categorical", ["a", "b"], [0.5, 0.5])
    for weights in ([0, 0], [-1, 2], [float("nan"), 1]):
        message = f"expected probabilities of at least 0, and not of 0 only, got {weights}"
        refuses(sch, message, "sample_categorical", [7, 8], weights)
    refuses(sch, "expected a max_innermost_factor of at least 1, got 0", "sample_perfect_tile", loop, 2, 0)
    refuses(sch, 'no block in loops reads what block "C" writes', "sample_compute_location", "C")
    rows = Schedule(matmul())
    refuses(rows, "expected a loop of constant extent", "sample_partitioned_tile", rows.get_loops("C")[0], 2)
    message = "expected [None, 1] for a loop whose extent is not constant, got [2, 1]"
    refuses(rows, message, "sample_perfect_tile", rows.get_loops("C")[0], 2, decision=[2, 1])


def test_a_tile_of_a_symbolic_extent_is_what_is_left():
    def transform(sch):
        factors = sch.sample_perfect_tile(sch.get_loops("C")[0], n=3)
        assert factors == [None, 1, 1]
        sch.split(sch.get_loops("C")[0], factors)

    sch = scheduled(matmul(), transform)
    assert "_, v" in sch.trace.as_python()
    exec(sch.trace.as_python(), {"sch": (again := Schedule(matmul()))})
    assert str(again.func) == str(sch.func)


def test_inner_factors_are_multiples():
    def transform(sch):
        for seed, loop in enumerate(sch.get_loops("C")):
            sch.random.seed(seed)
            tiles = sch.sample_partitioned_tile(loop, 4, 2, 4)
            assert prod(tiles) in (24, 60)
            assert prod(tiles[2:]) % 4 == 0
            sch.split(loop, tiles)

    scheduled(doubled(), transform, [{}])
    sch = Schedule(doubled())
    loop = sch.get_loops("C")[0]
    assert sch.sample_partitioned_tile(loop, 3, 0, 12)[0] % 12 == 0
    assert sch.sample_partitioned_tile(loop, 2, 1, 3, [4, 6]) == [4, 6]
    for message, arguments in (
        ("expected a partition position of 0 to 1 and a divisor of 24, got 2 and 1", (2, 2)),
        ("expected a partition position of 0 to 1 and a divisor of 24, got 1 and 5", (2, 1, 5)),
        ("expected inner factors with a multiple of 4, got [8, 3]", (2, 1, 4, [8, 3])),
        ("expected 2 factors of 24, got [5, 4]", (2, 1, 4, [5, 4])),
        ("expected 2 factors of 24, got [-6, -4]", (2, 1, 4, [-6, -4])),
    ):
        refuses(sch, message, "sample_partitioned_tile", loop, *arguments)


def test_what_follows_from_a_decision_follows_another_one():
    sch = Schedule(doubled())
    loop = sch.get_loops("C")[0]
    outer, inner = sch.sample_perfect_tile(loop, 2, 16, [6, 4])
    sch.split(loop, [outer, inner])
    sch.annotate("C", "unroll", sch.sample_categorical([16, 64], [0.5, 0.5], decision=1))
    text = sch.trace.as_python()
    assert "v2, v3 = sch.sample_perfect_tile(l0, 2, 16, decision=[6, 4])" in text
    assert "sch.split(l0, [v2, v3])" in text
    (tile, _) = sch.trace.decisions
    assert sch.trace.decisions[tile] == (6, 4)
    other = Schedule(doubled())
    Trace.from_json(sch.trace.with_decision(tile, [3, 8]).as_json()).replay(other)
    by_hand = Schedule(doubled())
    by_hand.split(by_hand.get_loops("C")[0], [3, 8])
    by_hand.annotate("C", "unroll", 64)
    assert str(other.func) == str(by_hand.func)
    with pytest.raises(ValueError, match=r"that draws \(sample_perfect_tile, sample_cat.*\), got l0, "):
        sch.trace.with_decision(sch.trace.insts[0], [3, 8])
    with pytest.raises(ScheduleError, match=r"expected 2 factors of 24, got \[5, 5\]"):
        sch.trace.with_decision(tile, [5, 5]).replay(Schedule(doubled()))
    elsewhere = Schedule(doubled())
    elsewhere.split(elsewhere.get_loops("C")[0], [None, inner])
    assert elsewhere.trace.as_python().endswith(".split(l0, [None, 4])\n")


def test_producers_consumers_and_outputs():
    sch = Schedule(elementwise())
    assert [block.name for block in sch.get_producers("C")] == ["B"]
    assert [block.name for block in sch.get_consumers("B")] == ["C"]
    assert sch.get_consumers("C") == ()
    assert [block.name for block in sch.get_output_blocks()] == ["C"]


def test_the_order_of_iterators_changes_nothing():
    def transform(sch):
        sch.reorder_block_iter_var("C", [2, 0, 1])
        assert [value.name_hint for value in sch.get_block("C").op.body.block.args] == ["vr", "vi", "vj"]
        refuses(sch, "expected the numbers 0 to 2 in any order, got [0, 1]", "reorder_block_iter_var", "C", [0, 1])

    scheduled(matmul(), transform)


def test_a_primitive_that_does_not_exist():
    schedule = Schedule(matmul())
    with pytest.raises(AttributeError, match=r'no primitive "set_axis_separator": memory has one dimension'):
        _ = schedule.set_axis_separator
    with pytest.raises(AttributeError, match='has no attribute "splitt"') as raised:
        _ = schedule.splitt
    assert (raised.value.name, raised.value.obj) == ("splitt", schedule)  # from which Python suggests "split"


def test_a_schedule_names_its_functions():
    assert repr(Schedule(matmul())) == "Schedule(@matmul)"
    with pytest.raises(TypeError, match=r"schedule: expected a tir\.prim_func or a module, got int"):
        Schedule(3)
