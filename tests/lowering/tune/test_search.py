"""What a search tries, and how it decides what is faster."""

from itertools import chain, groupby, islice

import pytest

from lowering.compiler.tuning_database import Choice
from lowering.kernels.gemm.tiling import chosen_tile, tiling
from lowering.parsing import parse_module
from lowering.tune.search import Bench, Race, agree, candidates, is_gain
from lowering.tune.tuner import record_calls
from tests.lowering.tune.support import MAP, ONE, arrays, groups
from tir_dialect.target import Target


@pytest.mark.slow
@pytest.mark.parametrize(("text", "number"), [(ONE, 3), (MAP, 8)])
def test_whatever_is_tried_gives_the_same_values(text: str, number: int):
    target = Target.host()
    calls = {call: 1 for m in (7, 33) for call in record_calls(parse_module(text), "main", arrays(m))}
    (group,) = groups(text).values()
    bench = Bench(group, calls, target)
    want = bench.results(bench.compile(None))
    tried = list(islice(candidates(group[0], target, seed=7), number))
    assert len(tried) == number
    for choice in tried:
        assert agree(bench.results(bench.compile(choice)), want), choice.describe()


def test_candidates_depend_on_the_seed_only():
    (group, *_) = groups(MAP).values()
    first, again, other = (
        [choice.text() for choice in islice(candidates(group[0], Target.host(), seed), 6)] for seed in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.slow
@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"tile_rows": 3, "tile_vectors": 1}, marks=pytest.mark.slow),
        {"tile_rows": 2, "tile_vectors": 4, "tile_steps": 8},
        {"tile_rows": 14, "tile_vectors": 1, "unpacked_rows": 1, "cores": 1},
        pytest.param({"unpacked_rows": 1 << 20}, marks=pytest.mark.slow),
        {"tile_rows": 1, "tile_vectors": 3, "task_percent": 1},
    ],
)
def test_every_tile_is_right_for_any_sizes(facts: dict[str, int]):
    target = Target.host()
    calls = {call: 1 for size in (1, 6, 33) for call in record_calls(parse_module(ONE), "main", arrays(size))}
    (group,) = groups(ONE).values()
    bench = Bench(group, calls, target)
    made = bench.compile(Choice(facts=tuple(sorted(facts.items()))))
    assert agree(bench.results(made), bench.results(bench.compile(None)))


def test_the_tile_that_is_chosen():
    usual, host = Target.parse("x86-64-v3"), Target.parse("x86-64-v3 tile-rows=4 tile-vectors=3 tile-steps=2")
    assert chosen_tile(usual) == usual.usual_tile == (2, (6, 4), 4)
    assert chosen_tile(host) == (3, (4, 2), 2)
    assert chosen_tile(Target.parse("x86-64-v3 tile-rows=1")) == (2, (1,), 4)
    assert chosen_tile(Target.parse("x86-64-v4 tile-rows=9")) == (2, (9, 8, 4), 2)
    assert [tiling(host, 4, tile=chosen_tile(host)).nr, tiling(host, 4).nr] == [24, 16]


def test_mixtures_are_made_of_what_changes_something():
    (group,) = groups(ONE.replace("[m, m]", "[96, 96]").replace("@main[%m]", "@main")).values()
    target = Target.parse("x86-64-v3 cores=2")
    found = list(islice(candidates(group[0], target, 1, lambda: Choice(facts=(("cores", 1),))), 36))
    assert len({choice.text() for choice in found}) == 36
    facts = [dict(choice.facts) for choice in found if choice.trace is None]
    single = [each for each in facts if len(each) == 1 or each.keys() == {"tile_rows", "tile_vectors"}]
    assert {"cores", "tile_rows", "tile_steps", "unpacked_rows"} <= {*chain(*single)}
    assert "map_vectors" not in {*chain(*facts)}, "it is no map"
    mixed = [each for each in facts if each not in single]
    assert mixed
    assert all(each["cores"] == 1 for each in mixed)
    assert any(choice.trace is not None for choice in found)


def test_numbers_of_threads_can_be_left_out():
    (group,) = groups(MAP).values()
    target = Target.parse("x86-64-v3 cores=2")
    every, some = (list(islice(candidates(group[0], target, 1, threads=threads), 12)) for threads in (True, False))
    assert any("cores" in choice.text() for choice in every)
    assert len(some) == 12
    assert not any("cores" in choice.text() or "task_percent" in choice.text() for choice in some)
    assert all("parallel" in choice.text() for choice in some if choice.trace is not None)


def test_what_counts_as_faster():
    even, faster, slower = [(1.0, 1.0)] * 10, [(1.0, 0.5)] * 10, [(1.0, 1.1)] * 10
    assert is_gain(Race([1], [faster]))
    assert is_gain(Race([1, 5], [faster, even])) is False  # most calls take as long as they did
    assert is_gain(Race([9, 1], [faster, slower])) is False  # one size would pay for the others
    assert is_gain(Race([1], [[(1.0, 0.9)] * 6 + [(1.0, 1.2)] * 4])) is False  # won too few rounds
    assert Race([3, 1], [faster, slower]).seconds == (4.0, 2.6)


def test_both_are_measured_in_turns():
    (group,) = groups(MAP).values()
    bench = Bench(group, record_calls(parse_module(MAP), "main", arrays(4)), Target.host())
    order: list[str] = []
    race = bench.race(lambda *_: order.append("a"), lambda *_: order.append("b"), 3)
    assert race.counts == [1]
    assert len(race.calls[0]) == 3
    assert [key for key, _ in groupby(order)] == ["b", "a", "b", "a", "b"]
